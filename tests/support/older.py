"""Tables as an earlier version of adloom declared them."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib import import_module

from spark_jobs.contract.tables import Table


@contextmanager
def tables_without(columns: Collection[str], *tables: Table) -> Iterator[None]:
    """Within it, ``tables`` are declared without ``columns``."""
    # It would derive from them, when it is imported, what holds for the tests that follow.
    import_module("spark_jobs.ingest.judge")
    now = {table.path: table.columns for table in tables}
    for table in tables:
        object.__setattr__(table, "columns", tuple(one for one in table.columns if one.name not in columns))
    try:
        yield
    finally:
        for table in tables:
            object.__setattr__(table, "columns", now[table.path])
