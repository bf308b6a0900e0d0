"""``docs/tables.md``: every table and view, and their columns."""

from infra.docs import bounds
from infra.docs.markdown import code, page, table
from spark_jobs.contract.tables import Table
from spark_jobs.queries.registry import SHOWN_TABLES
from spark_jobs.sql.views import VIEWS, View

_HEAD = """\
These are the Delta tables of a lake, below its root. All times are UTC with microseconds. Column names and types are a
public contract. Below the tables come the [views](#views), which are computed when they are asked for.

What else lies in a lake is listed in [How it works](architecture.md#what-lies-in-a-lake), and
[below](#what-bounds-their-size) what bounds its size."""

_VIEWS = """\
## Views

Common questions, answered by SQL over the tables, for `adloom sql`, `adloom show` and `adloom export`: see
[Query gold](query-gold.md)."""

_BOUNDS = """\
## What bounds their size

Tables grow with what their rows stand for: adloom deletes no row that is right. `adloom maintain` removes old plans and
files that were replaced longer ago than `tables.file_retention`. Commits go after `tables.log_retention`, and with them
the [checkpoints of the log](performance.md#checkpoints-of-a-log), of which each commit adds at most 256 KiB once there
are 90,000 files. In an object store, what was deleted or replaced stays for another 7 days as an old version, and
nothing of it after that; an unfinished upload stays for 7 days, in MinIO for one."""


def tables_page() -> str:
    """The page: one section per table, and one per view."""
    tables = map(_section, SHOWN_TABLES.values())
    return page("Tables", _HEAD, *tables, _VIEWS, *map(_view, VIEWS.values()), _BOUNDS, _bounds())


def _bounds() -> str:
    """The bound of each table, then of each folder."""
    folders = {f"{folder}/": bound for folder, bound in bounds.FOLDERS.items()}
    return table(("path", "bound"), [(code(path), bound) for path, bound in (bounds.TABLES | folders).items()])


def _section(described: Table) -> str:
    columns = ", ".join(map(code, described.partition_by))
    partitions = f"Partitioned by {columns}." if columns else "Not partitioned."
    name = "" if described.path.endswith(described.name) else f" On the command line it is called `{described.name}`."
    rows = [(code(column.name), code(column.sql_type), column.meaning) for column in described.columns]
    text = f"## {described.path}\n\n{described.meaning} {partitions}{name}\n\n"
    return text + table(("column", "type", "meaning"), rows)


def _view(described: View) -> str:
    rows = [(code(name), meaning) for name, meaning in described.columns]
    return f"### {described.name}\n\n{described.meaning}\n\n" + table(("column", "meaning"), rows)
