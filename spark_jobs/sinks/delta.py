"""Writing to the Delta tables of the lake, each batch exactly once."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.choices import Trigger
from spark_jobs.contracts.commits import CommitNote, commit_notes, read_plan
from spark_jobs.contracts.durations import milliseconds
from spark_jobs.contracts.lake import Lake, checkpoint_key
from spark_jobs.contracts.sections import JobSettings
from spark_jobs.contracts.tables import Table
from spark_jobs.queries import Query
from spark_jobs.sinks.transaction import append_once

_PROPERTIES = {
    # Validation reads what is new since the last validated version; for appends the feed costs nothing.
    "delta.enableChangeDataFeed": "true",
}
Start = Mapping[str, Any]
"""When a query starts its batches, as Spark's ``trigger`` takes it."""
AVAILABLE_NOW: Start = {"availableNow": True}
"""To the end of what the source holds now; then the query ends."""
ASAP: Start = {"processingTime": "200 milliseconds"}
"""One batch after the other; so often a query that has nothing to do looks for new versions of its source."""

Within = Callable[[], AbstractContextManager[object]]
"""What a batch is written within: made anew for each."""
Write = Callable[[DataFrame, Lake, Table, CommitNote], None]
"""How the rows of a batch get into a table; the commit bears the note."""


class Output(Protocol):
    """A place that batches are written to, and that remembers the last one."""

    def has(self, note: CommitNote) -> bool:
        """Whether the batch of ``note`` is there already."""
        ...

    def write(self, rows: DataFrame, note: CommitNote) -> None:
        """Writes the rows of a batch, and with them in one step that it is there."""
        ...


def start_of(settings: JobSettings, query: Query) -> Start:
    """What the setting ``job.trigger`` asks for, for the batches of ``query``."""
    interval = settings.follow_interval if query.is_followed else settings.trigger_interval
    every: Start = {"processingTime": f"{milliseconds(interval)} milliseconds"}
    return {Trigger.AVAILABLE_NOW: AVAILABLE_NOW, Trigger.ASAP: ASAP, Trigger.INTERVAL: every}[settings.trigger]


def create_table(spark: SparkSession, lake: Lake, table: Table) -> None:
    """Begins ``table`` in ``lake`` where it does not exist."""
    if not lake.has(table):
        nothing = spark.range(0).select(*[F.lit(None).cast(c.sql_type).alias(c.name) for c in table.columns])
        _writer(_plain(nothing, table), table).save(lake.table(table))


def append_rows(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
    """Appends ``rows`` to ``table``, unless the writer of ``note`` has already committed its batch or a later one.

    Begins the table where it does not exist. The commit bears ``note`` as its user metadata.
    """
    plain = _plain(rows, table)
    append_once(plain, _writer(plain, table), lake, table, note)


@dataclass(frozen=True)
class TableOutput:
    """A table as a place that batches are written to."""

    lake: Lake
    table: Table
    how: Write | None = None
    """How a batch gets into the table; None: it is appended."""

    def has(self, note: CommitNote) -> bool:
        """See :class:`Output`."""
        last = next((done for done in commit_notes(self.lake, self.table) if done.writer == note.writer), None)
        return last is not None and last.batch >= note.batch

    def write(self, rows: DataFrame, note: CommitNote) -> None:
        """See :class:`Output`."""
        (self.how or append_rows)(rows, self.lake, self.table, note)


def note_of_batch(lake: Lake, query: str, checkpoint: str, *, writer: str, batch_id: int) -> CommitNote:
    """The note of a batch that is running: Spark wrote to ``checkpoint`` (a key) what it takes before it began."""
    plan = read_plan(lake.files.read(f"{checkpoint}/offsets/{batch_id}") or b"")
    return CommitNote(writer=writer, batch=batch_id, query=query, watermark_ms=plan.watermark_ms, reached=plan.reached)


def _plain(rows: DataFrame, table: Table) -> DataFrame:
    # Without Spark's mark on the event-time column, which would go into the table and give its readers a watermark.
    # Only where there is one: PySpark asks Java some twenty times for each such column, in every batch.
    marked = {field.name for field in rows.schema if field.metadata}
    columns = [F.col(name).alias(name, metadata={}) if name in marked else name for name in table.column_names]
    return rows.select(*columns)


def _writer(plain: DataFrame, table: Table) -> DataFrameWriter:
    properties = {**_PROPERTIES, "delta.dataSkippingStatsColumns": ",".join(table.stats_columns)}
    appending = plain.write.format("delta").mode("append")
    return appending.partitionBy(*table.partition_by).options(**properties)


def start_query(
    rows: DataFrame,
    lake: Lake,
    query: Query,
    *,
    start: Start = ASAP,
    within: Within = nullcontext,
    version: int | None = None,
    outputs: Sequence[Output] | None = None,
) -> StreamingQuery:
    """Starts the streaming query that writes ``rows`` to the table of ``query``, each batch exactly once.

    A batch that goes to several places goes to each of them exactly once, too: when it runs again after a crash, it is
    written where it is missing.

    Args:
        rows: a streaming DataFrame with the columns of the table.
        lake: where the table and the checkpoint lie.
        query: what it is; its checkpoint bears its name.
        start: when its batches start.
        within: gives a context manager, within which a batch is written.
        version: of its checkpoint; by default the one in use.
        outputs: where batches go, one after the other; by default they are appended to the table, which is created
            where it does not exist.
    """
    spark, name = rows.sparkSession, query.name
    checkpoint = checkpoint_key(name, version or lake.version(name))
    places = outputs or (TableOutput(lake, query.writes),)
    is_first = True

    def write(batch: DataFrame, batch_id: int) -> None:
        with within():
            write_once(batch, batch_id)

    def write_once(batch: DataFrame, batch_id: int) -> None:
        nonlocal is_first
        # The id of the query lies in its checkpoint, so a new checkpoint does not find its batches already written.
        (query_id,) = (active.id for active in spark.streams.active if active.name == name)
        # Only the first batch after a start can be one that a crash kept Spark from noting. Its rows are there, but it
        # must run all the same: from its rows Spark takes the watermark of the next batch.
        note = note_of_batch(lake, name, checkpoint, writer=query_id, batch_id=batch_id)
        _write_batch(batch, [output for output in places if not (is_first and output.has(note))], note)
        is_first = False

    # A thread that Java made within a batch has its tags, and PySpark cannot tell listeners of a query with any.
    rows.sparkSession.sparkContext.setLocalProperty("spark.job.tags", None)  # type: ignore[arg-type] # its stub forgets
    writer = rows.writeStream.queryName(name).foreachBatch(write)
    return writer.option("checkpointLocation", lake.uri(checkpoint)).trigger(**start).start()


def _write_batch(batch: DataFrame, outputs: Sequence[Output], note: CommitNote) -> None:
    if not outputs:
        batch.write.format("noop").mode("overwrite").save()
    elif len(outputs) == 1:
        outputs[0].write(batch, note)
    else:
        # Computed once: the state that it leaves behind is of one run through its rows.
        kept = batch.persist()
        try:
            for output in outputs:
                output.write(kept, note)
        finally:
            kept.unpersist()


def start_rebuilding(rows: DataFrame, lake: Lake, *, query: str, version: int) -> StreamingQuery:
    """Starts the streaming query that builds the state of ``query`` from ``rows`` and writes none of its output.

    Its one batch is over when the first number stands among the checkpoint's commits; the next would begin a day later.
    """

    def compute(batch: DataFrame, _batch_id: int) -> None:
        batch.write.format("noop").mode("overwrite").save()

    writer = rows.writeStream.queryName(f"{query} rebuilt").foreachBatch(compute)
    writer = writer.option("checkpointLocation", lake.uri(checkpoint_key(query, version)))
    return writer.trigger(processingTime="1 day").start()
