"""The streaming queries: a folder each, whose module ``query`` declares all there is to know about it as ``QUERY``.

Jobs, manifests, preflight, resets, drains, the ledger, status, validation, help and docs use what is declared there.
A folder that is added here takes part in all of them. See CONTRIBUTING.md, "A new query".
"""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

from spark_jobs import queries
from spark_jobs.contract.tables import CREDIT_TABLES, DAYS, MARKS, REPAIR_TABLES, Table
from spark_jobs.errors import SettingsError
from spark_jobs.queries.jobs import JOB_NAMES
from spark_jobs.queries.query import Query

_OUTSIDE = ("spark_jobs.ingest",)
"""Packages elsewhere that are a query: what arrives is a room of its own."""


def _declared() -> list[Query]:
    folders = (f"{queries.__name__}.{module.name}" for module in iter_modules(queries.__path__) if module.ispkg)
    found = (f"{folder}.query" for folder in (*folders, *_OUTSIDE) if find_spec(f"{folder}.query"))
    return [import_module(name).QUERY for name in found]


def _in_flow_order(found: list[Query]) -> tuple[Query, ...]:
    """Each query after those that write what it reads; else by job, then by name."""
    writers = {query.writes: query for query in found}

    def depth(query: Query) -> int:
        return 1 + depth(writers[query.reads[0]]) if query.reads else 0

    return tuple(sorted(found, key=lambda query: (JOB_NAMES.index(query.job), depth(query), query.name)))


QUERIES = _in_flow_order(_declared())
"""All of them, in the order in which rows flow."""
QUERIES_OF_JOB = {job: tuple(query.name for query in QUERIES if query.job == job) for job in JOB_NAMES}
"""By job, the names of its queries in the order in which rows flow."""
JOB_OF_QUERY = {query.name: query.job for query in QUERIES}
"""By name of a query, its job; in the order in which rows flow."""
TABLES = tuple(query.writes for query in QUERIES)
"""The tables of a lake, in the order in which rows flow."""
TABLES_BY_NAME = {table.name: table for table in TABLES}
VALIDATED_TABLES = (*TABLES, *CREDIT_TABLES)
"""Those that validation has rules for and the contract promises; the tables of credit only where credit is computed."""
MAINTAINED_TABLES = {table.name: table for table in (*VALIDATED_TABLES, MARKS, *REPAIR_TABLES, DAYS)}
"""By name, the tables that get new files all the time: all of a lake."""
SHOWN_TABLES = {table.name: table for table in (*VALIDATED_TABLES, *REPAIR_TABLES, MARKS, DAYS)}
"""By name, the tables that people may look at: also those that no query writes."""
_BY_NAME = {query.name: query for query in QUERIES}


def find_query(name: str) -> Query:
    """The query called ``name``.

    Raises:
        SettingsError: it is unknown.
    """
    if name not in _BY_NAME:
        raise SettingsError(f"no query {name!r}; the queries are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def find_table(name: str) -> Table:
    """The table called ``name``, of those that are maintained.

    Raises:
        SettingsError: it is unknown.
    """
    if name not in MAINTAINED_TABLES:
        raise SettingsError(f"no table {name!r}; the tables are {', '.join(MAINTAINED_TABLES)}")
    return MAINTAINED_TABLES[name]


def queries_of(job: str) -> tuple[Query, ...]:
    """The queries of ``job``, in the order in which rows flow."""
    return tuple(query for query in QUERIES if query.job == job)


def readers_of(table: Table) -> tuple[Query, ...]:
    """The queries that read ``table``."""
    return tuple(query for query in QUERIES if table in query.reads)


def writer_of(table: Table) -> Query:
    """The query that writes ``table``."""
    return next(query for query in QUERIES if query.writes == table)
