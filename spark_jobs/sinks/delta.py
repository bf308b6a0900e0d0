"""Writes the Delta tables of the lake, each batch exactly once."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.choices import Trigger
from spark_jobs.contracts.durations import milliseconds
from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.sections import JobSettings
from spark_jobs.contracts.tables import Table
from spark_jobs.lake.batches import keep_up, last_note
from spark_jobs.lake.commits import CommitNote, read_plan
from spark_jobs.lake.layout import Lake, checkpoint_key
from spark_jobs.queries import Query
from spark_jobs.sinks.transaction import append_once

_PROPERTIES = {
    # Validation reads the changes since the last validated version; for appends the change feed costs nothing.
    "delta.enableChangeDataFeed": "true",
}
Start = Mapping[str, Any]
"""When a query starts its batches, as keyword arguments of Spark's ``trigger``."""
AVAILABLE_NOW: Start = {"availableNow": True}
"""Processes what the source holds now; then the query ends."""
ASAP: Start = {"processingTime": "200 milliseconds"}
"""Starts the next batch when the last one is done. An idle query polls its source at this interval."""

Within = Callable[[], AbstractContextManager[object]]
"""Gives the context manager that a batch is written within; called once per batch."""
Write = Callable[[DataFrame, Lake, Table, CommitNote], None]
"""How the rows of a batch get into a table; the commit carries the note."""


class Output(Protocol):
    """A place that batches are written to."""

    def has(self, note: CommitNote) -> bool:
        """Whether the batch of ``note`` is there already, so that it must not be written again."""
        ...

    def write(self, rows: DataFrame, note: CommitNote) -> None:
        """Writes the rows of a batch and records the batch, in one step."""
        ...


def interval_of(settings: JobSettings, query: Query) -> timedelta:
    """How often ``query`` starts a batch, or looks for data to start one, with ``job.trigger = interval``."""
    return settings.follow_interval if query.is_followed else settings.trigger_interval


def start_of(settings: JobSettings, query: Query) -> Start:
    """When ``query`` starts its batches, from the setting ``job.trigger``."""
    every: Start = {"processingTime": f"{milliseconds(interval_of(settings, query))} milliseconds"}
    return {Trigger.AVAILABLE_NOW: AVAILABLE_NOW, Trigger.ASAP: ASAP, Trigger.INTERVAL: every}[settings.trigger]


def create_table(spark: SparkSession, lake: Lake, table: Table) -> None:
    """Creates ``table`` in ``lake`` if it does not exist."""
    if not lake.has(table):
        nothing = spark.range(0).select(*[F.lit(None).cast(c.sql_type).alias(c.name) for c in table.columns])
        _writer(_plain(nothing, table), table).save(lake.table(table))


def add_columns(lake: Lake, table: Table, rows: DataFrame) -> None:
    """Adds to ``table``, if it exists, the columns that it lacks of those that the contract or ``rows`` have.

    Readers that run meanwhile end, because Delta streams with one schema; they are restarted.

    Raises:
        LakeError: the table has a column of that name with another type.
    """
    if not lake.has(table):
        return
    spark, place = rows.sparkSession, lake.table(table)
    there = {field.name: field.dataType for field in spark.read.format("delta").load(place).schema}
    wanted = {field.name: field.dataType for field in rows.select(*table.kept(rows.columns)).schema}
    for name, kind in wanted.items():
        if there.get(name, kind) != kind:
            raise LakeError(
                f"{table.path} has a column {name} of type {there[name].simpleString()}, and the settings keep it as "
                f"{kind.simpleString()}: a column never changes its type; keep it under another name"
            )
    types = {column.name: column.sql_type for column in table.columns} | {
        name: kind.simpleString() for name, kind in wanted.items()
    }
    if missing := [f"`{name}` {sql_type}" for name, sql_type in types.items() if name not in there]:
        spark.sql(f"ALTER TABLE delta.`{place}` ADD COLUMNS ({', '.join(missing)})")


def append_rows(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
    """Appends ``rows`` to ``table``, unless the writer of ``note`` has already committed its batch or a later one.

    Creates the table if it does not exist. The commit carries ``note`` as its user metadata.
    """
    plain = _plain(rows, table)
    append_once(plain, _writer(plain, table), lake, table, note)


def replace_rows(rows: DataFrame, where: str, lake: Lake, table: Table, note: CommitNote) -> None:
    """Replaces the rows of ``table`` that ``where`` holds for by ``rows``, in one commit that carries ``note``.

    Args:
        rows: with the columns of the table; ``where`` holds for all of them.
        where: condition on the table's columns, in SQL.
        lake: where the table lies.
        table: which; created if it does not exist.
        note: goes into the commit as its user metadata.
    """
    create_table(rows.sparkSession, lake, table)
    writer = _plain(rows, table).write.format("delta").mode("overwrite")
    writer.option("replaceWhere", where).option("userMetadata", note.as_metadata()).save(lake.table(table))


def replace_all(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
    """Replaces all rows of ``table`` by ``rows``, in one commit that carries ``note``; creates it if need be."""
    writer = _writer(_plain(rows, table), table).mode("overwrite")
    writer.option("userMetadata", note.as_metadata()).save(lake.table(table))


@dataclass(frozen=True)
class TableOutput:
    """A table as an output."""

    lake: Lake
    table: Table
    how: Write | None = None
    """How a batch gets into the table; None: it is appended."""

    def has(self, note: CommitNote) -> bool:
        """See :class:`Output`."""
        # The newest note of the query decides: after a reset it is another writer's, and the log may be long.
        last = last_note(self.lake, note.query) if note.query else None
        return last is not None and last.writer == note.writer and last.batch >= note.batch

    def write(self, rows: DataFrame, note: CommitNote) -> None:
        """See :class:`Output`."""
        (self.how or append_rows)(rows, self.lake, self.table, note)
        keep_up(self.lake, self.table)


def note_of_batch(lake: Lake, query: str, checkpoint: str, *, writer: str, batch_id: int) -> CommitNote:
    """The note of a running batch, from the plan that Spark wrote to ``checkpoint`` (a key) before it started it."""
    plan = read_plan(lake.files.read(f"{checkpoint}/offsets/{batch_id}") or b"")
    return CommitNote(writer=writer, batch=batch_id, query=query, watermark_ms=plan.watermark_ms, reached=plan.reached)


def _plain(rows: DataFrame, table: Table) -> DataFrame:
    # Spark marks the event-time column; the mark would go into the table and give its readers a watermark. It is
    # removed only where there is one: for each such column PySpark makes some twenty calls to Java, in every batch.
    marked = {field.name for field in rows.schema if field.metadata}
    names = (*table.column_names, *table.kept(rows.columns))
    return rows.select(*[F.col(name).alias(name, metadata={}) if name in marked else name for name in names])


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

    A batch with several outputs reaches each of them exactly once: when it is run again after a crash, it is written
    only where it is missing.

    Args:
        rows: a streaming DataFrame with the columns of the table.
        lake: where the table and the checkpoint lie.
        query: its description; the checkpoint has its name.
        start: when its batches start.
        within: gives a context manager; a batch is written within it.
        version: of the checkpoint; by default the one in use.
        outputs: where batches go, one after the other. By default they are appended to the table, which is created if
            it does not exist.
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
        # The id of a query lives in its checkpoint, so the batches of a new checkpoint do not count as written.
        (query_id,) = (active.id for active in spark.streams.active if active.name == name)
        # Only the first batch after a start can be in the table without Spark knowing it, after a crash. Its rows are
        # there, but it must still run: Spark computes the watermark of the next batch from them.
        note = note_of_batch(lake, name, checkpoint, writer=query_id, batch_id=batch_id)
        _write_batch(batch, [output for output in places if not (is_first and output.has(note))], note)
        is_first = False

    # A thread that Java created within a batch inherits its tags, and PySpark's listeners fail on a query with tags.
    rows.sparkSession.sparkContext.setLocalProperty("spark.job.tags", None)  # type: ignore[arg-type] # its stub forgets
    writer = rows.writeStream.queryName(name).foreachBatch(write)
    return writer.option("checkpointLocation", lake.uri(checkpoint)).trigger(**start).start()


def _write_batch(batch: DataFrame, outputs: Sequence[Output], note: CommitNote) -> None:
    if not outputs:
        batch.write.format("noop").mode("overwrite").save()
    elif len(outputs) == 1:
        outputs[0].write(batch, note)
    else:
        # Computed once: a second run through its rows would update the state again.
        kept = batch.persist()
        try:
            for output in outputs:
                output.write(kept, note)
        finally:
            kept.unpersist()
