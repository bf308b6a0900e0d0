"""A lake to query, and its rows as Python has them."""

from contextlib import closing
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.lake.as_of import AsOf
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.store.arrow import row_store
from spark_jobs.sql.lake_sql import LakeSql
from tests.support.equality import generate_source
from tests.support.runs import run_in

NOW = AsOf()


def queried_lake(spark: SparkSession, folder: Path) -> Lake:
    """A lake in ``folder`` after two runs: several versions of each table. Its path has a space."""
    source, found = generate_source(folder / "all", events=2000, seed=11), open_lake(str(folder / "a lake"))
    first, *others = sorted(source.iterdir())
    assert others
    (folder / "first").mkdir()
    first.rename(folder / "first" / first.name)
    run_in(spark, Settings(), found, folder / "first", drain=False)
    run_in(spark, Settings(), found, source, drain=True, measure=True)
    return found


def open_sql(lake: Lake, as_of: AsOf = NOW) -> "closing[LakeSql]":
    """SQL over ``lake``."""
    return closing(LakeSql(lake, row_store(lake, S3Settings()), as_of))


def rows_of(lake: Lake, statement: str, as_of: AsOf = NOW) -> list[dict[str, Any]]:
    """The rows of ``statement``, by column."""
    with open_sql(lake, as_of) as sql:
        rows = sql.run(statement)
        assert rows is not None
        found: list[dict[str, Any]] = rows.to_arrow_table().to_pylist()
        return found


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    """``rows`` in an order that does not depend on how they came."""
    return sorted(repr(row) for row in rows)
