"""Starting the streaming query that a description declares."""

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.config.durations import time_of_us
from spark_jobs.contract.tables import Table
from spark_jobs.errors import CheckpointError
from spark_jobs.ingest.files_read import forget_moved_files
from spark_jobs.lake.at_rest import time_steps
from spark_jobs.lake.notes import BatchPlan, is_at_rest, read_plan, version_reached
from spark_jobs.queries.initial_state import first_rows
from spark_jobs.queries.manifests import read_manifest
from spark_jobs.queries.output import ASAP, BatchContext, Start, outputs_of, start_query
from spark_jobs.queries.places import checkpoint_batches, checkpoint_in_use, checkpoint_key
from spark_jobs.queries.query import Query
from spark_jobs.queries.resume_point import lost_commit
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
    if records is not None:
        forget_moved_files(lake, checkpoint_key(query.name, used))
    sides = [records] if records is not None else _streams(lake, query, used)
    sides, initial = first_rows(lake, query, used, sides)
    rows = query.rows(lake.settings, sides, initial)
    add_columns(lake, query.writes, rows)
    outputs = outputs_of(query, lake.settings, lake, read_manifest(lake, query.name, used))
    with using(lake.spark, {**query.spark_conf, **conf}):
        return start_query(rows, lake, query, start=trigger, within=within, version=used, outputs=outputs)


def _streams(lake: OpenLake, query: Query, version: int) -> list[DataFrame]:
    """A stream for each time that ``query`` reads its table, in steps through rows that it begins with.

    Raises:
        CheckpointError: the log of the table has lost what comes next.
    """
    table = query.table_read
    if table is None:
        return []
    plan, steps = _last_plan(lake, query, version), list[int]()
    if plan is None or any(map(is_at_rest, plan.reached)):
        steps = _steps(lake, query, table)
    elif lost := lost_commit(lake, table, min(map(version_reached, plan.reached))):
        raise CheckpointError(
            f"query {query.name} was down for longer than tables.log_retention: the log of {table.path} of {lake.root} "
            f"no longer has version {lost}, the first that it has not read. The rows that came since are all there: "
            f"`adloom checkpoints reset {query.name}` goes on with them"
        )
    manifest = read_manifest(lake, query.name, version)
    after = time_of_us(manifest.received_after_us) if manifest and manifest.received_after_us else None
    streams = [lake.stream(table, steps) for table in query.reads]
    return streams if after is None else [rows.where(F.col("ingest_time") > F.lit(after)) for rows in streams]


def _steps(lake: OpenLake, query: Query, table: Table) -> list[int]:
    newest = lake.newest_commit(table.path)
    steps = [] if newest is None else time_steps(lake, table, newest, _ROWS_AT_ONCE)
    if steps:
        _log.info(
            "%s: begins with the rows of %s up to version %d, in %d steps of event time",
            *(query.name, table.path, newest, len(steps) + 1),
        )
    return steps


def _last_plan(lake: OpenLake, query: Query, version: int) -> BatchPlan | None:
    """The plan of the last batch of a checkpoint; None: it has none."""
    planned = checkpoint_batches(lake, query.name, version, "offsets")
    if not planned:
        return None
    return read_plan(lake.files.read(f"{checkpoint_key(query.name, version)}/offsets/{planned[-1]}") or b"")
