"""Starting the streaming query that a description declares."""

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.lake.at_rest import time_steps
from spark_jobs.lake.notes import is_at_rest, read_plan
from spark_jobs.queries.initial_state import first_rows
from spark_jobs.queries.manifests import read_manifest
from spark_jobs.queries.output import ASAP, BatchContext, Start, outputs_of, start_query
from spark_jobs.queries.places import checkpoint_batches, checkpoint_in_use, checkpoint_key
from spark_jobs.queries.query import Query
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.session import using
from spark_jobs.spark.write_delta import add_columns

_NOTHING: Mapping[str, str] = MappingProxyType({})
_ROWS_AT_ONCE: Final = 1_000_000
"""The rows of a table that a query begins with in one batch."""
_log = logging.getLogger(__name__)


def start(
    query: Query,
    lake: OpenLake,
    *,
    records: DataFrame | None = None,
    trigger: Start = ASAP,
    within: BatchContext = nullcontext,
    version: int | None = None,
    conf: Mapping[str, str] = _NOTHING,
) -> StreamingQuery:
    """Starts ``query``; the first batch of a checkpoint begins with the initial state that its manifest names.

    Args:
        query: the query.
        lake: the tables that it reads must exist there.
        records: the input from outside (see :mod:`spark_jobs.ingest`), for a query that reads no table.
        trigger: when its batches start.
        within: returns a context manager for the note of a batch, within which that is written.
        version: of its checkpoint; by default the one in use.
        conf: Spark settings for this start, beyond those that the query declares.
    """
    used = version or checkpoint_in_use(lake, query.name)
    sides = [records] if records is not None else _streams(lake, query, used)
    sides, initial = first_rows(lake, query, used, sides)
    rows = query.rows(lake.settings, sides, initial)
    add_columns(lake, query.writes, rows)
    outputs = outputs_of(query, lake.settings, lake, read_manifest(lake, query.name, used))
    with using(lake.spark, {**query.spark_conf, **conf}):
        return start_query(rows, lake, query, start=trigger, within=within, version=used, outputs=outputs)


def _streams(lake: OpenLake, query: Query, version: int) -> list[DataFrame]:
    """A stream for each time that ``query`` reads its table, in steps through rows that it begins with."""
    table, steps = query.table_read, list[int]()
    until = lake.newest_commit(table.path) if table and _is_at_rest(lake, query, version) else None
    if table and until is not None:
        steps = time_steps(lake, table, until, _ROWS_AT_ONCE)
        if steps:
            _log.info(
                "%s: begins with the rows of %s up to version %s, in %d steps of event time",
                *(query.name, table.path, until, len(steps) + 1),
            )
    return [lake.stream(table, steps) for table in query.reads]


def _is_at_rest(lake: OpenLake, query: Query, version: int) -> bool:
    """Whether the next batch of a checkpoint reads rows that were there when it began."""
    planned = checkpoint_batches(lake, query.name, version, "offsets")
    if not planned:
        return True
    plan = read_plan(lake.files.read(f"{checkpoint_key(query.name, version)}/offsets/{planned[-1]}") or b"")
    return any(is_at_rest(offset) for offset in plan.reached)
