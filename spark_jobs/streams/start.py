"""Starting the streaming query that a description declares."""

from collections.abc import Mapping
from contextlib import nullcontext
from types import MappingProxyType

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.queries.initial_state import first_rows
from spark_jobs.queries.manifests import read_manifest
from spark_jobs.queries.output import ASAP, BatchContext, Start, outputs_of, start_query
from spark_jobs.queries.places import checkpoint_in_use
from spark_jobs.queries.query import Query
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.session import using
from spark_jobs.spark.write_delta import add_columns

_NOTHING: Mapping[str, str] = MappingProxyType({})


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
    sides = [records] if records is not None else [lake.stream(table) for table in query.reads]
    used = version or checkpoint_in_use(lake, query.name)
    sides, initial = first_rows(lake, query, used, sides)
    rows = query.rows(lake.settings, sides, initial)
    add_columns(lake, query.writes, rows)
    outputs = outputs_of(query, lake.settings, lake, read_manifest(lake, query.name, used))
    with using(lake.spark, {**query.spark_conf, **conf}):
        return start_query(rows, lake, query, start=trigger, within=within, version=used, outputs=outputs)
