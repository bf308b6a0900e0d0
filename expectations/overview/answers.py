"""Small answers of views, for the overview page."""

from typing import Any

from spark_jobs.sql.lake_sql import LakeSql


def rows_of(sql: LakeSql, statement: str) -> list[dict[str, Any]]:
    """The rows that the query ``statement`` gives, by column."""
    rows = sql.run(statement)
    assert rows is not None  # noqa: S101 it is a query
    found: list[dict[str, Any]] = rows.to_arrow_table().to_pylist()
    return found
