"""``docs/tables.md``: every table and its columns."""

from infra.docs.markdown import code, page, table
from spark_jobs.contracts.tables import Table
from spark_jobs.queries import SHOWN_TABLES

_HEAD = """\
These are the Delta tables of a lake, below its root. All times are UTC with microseconds. Column names and types are a
public contract.

What else lies in a lake is listed in [How it works](architecture.md#what-lies-in-a-lake)."""


def tables_page() -> str:
    """The page: one section per table."""
    return page("Tables", _HEAD, *map(_section, SHOWN_TABLES.values()))


def _section(described: Table) -> str:
    columns = ", ".join(map(code, described.partition_by))
    partitions = f"Partitioned by {columns}." if columns else "Not partitioned."
    name = "" if described.path.endswith(described.name) else f" On the command line it is called `{described.name}`."
    rows = [(code(column.name), code(column.sql_type), column.meaning) for column in described.columns]
    text = f"## {described.path}\n\n{described.meaning} {partitions}{name}\n\n"
    return text + table(("column", "type", "meaning"), rows)
