"""The outputs of a query, which get each batch exactly once, and the trigger of its batches."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.config.choices import Trigger
from spark_jobs.config.durations import milliseconds
from spark_jobs.config.sections import JobSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import Table
from spark_jobs.lake.batches import keep_up
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote, read_plan
from spark_jobs.queries.manifest import Manifest
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_key
from spark_jobs.queries.query import Query
from spark_jobs.queries.receipts import ReceiptClock, as_received
from spark_jobs.spark.write_delta import append_rows

Start = Mapping[str, Any]
"""When a query starts its batches, as keyword arguments of Spark's ``trigger``."""


AVAILABLE_NOW: Start = {"availableNow": True}
"""Processes the current content of the source; then the query ends."""


ASAP: Start = {"processingTime": "200 milliseconds"}
"""Starts the next batch when the last one is done. An idle query polls its source at this interval."""


BatchContext = Callable[[CommitNote], AbstractContextManager[object]]
"""Returns the context manager within which the batch of a note is written; called once per batch."""


Write = Callable[[DataFrame, Lake, Table, CommitNote], None]
"""Writes the rows of a batch to a table; the commit carries the note."""


class Output(Protocol):
    """A place that batches are written to."""

    def has(self, note: CommitNote) -> bool:
        """Whether the batch of ``note`` is written already, so that it must not be written again."""
        ...

    def write(self, rows: DataFrame, note: CommitNote) -> None:
        """Writes the rows of a batch and records the batch, in one step."""
        ...


def interval_of(settings: JobSettings, query: Query) -> timedelta:
    """How often ``query`` starts a batch, or looks for data to start one, with ``job.trigger = interval``."""
    return settings.follow_interval if query.polls_often else settings.trigger_interval


def start_of(settings: JobSettings, query: Query) -> Start:
    """When ``query`` starts its batches, from the setting ``job.trigger``."""
    every: Start = {"processingTime": f"{milliseconds(interval_of(settings, query))} milliseconds"}
    return {Trigger.AVAILABLE_NOW: AVAILABLE_NOW, Trigger.ASAP: ASAP, Trigger.INTERVAL: every}[settings.trigger]


@dataclass(frozen=True)
class TableOutput:
    """A table as an output."""

    lake: Lake
    table: Table
    how: Write | None = None
    """Writes a batch to the table; None: it is appended."""

    def has(self, note: CommitNote) -> bool:
        """See :class:`Output`."""
        # The newest note of the query decides: after a reset it is another writer's, and the log may be long.
        last = last_note(self.lake, note.query) if note.query else None
        return last is not None and last.writer == note.writer and last.batch >= note.batch

    def write(self, rows: DataFrame, note: CommitNote) -> None:
        """See :class:`Output`."""
        (self.how or append_rows)(rows, self.lake, self.table, note)
        keep_up(self.lake, self.table)


def outputs_of(query: Query, settings: Settings, lake: Lake, manifest: Manifest | None) -> Sequence[Output]:
    """The outputs of ``query``: its table, to which each batch is appended, unless it has outputs of its own."""
    return query.outputs(settings, lake, manifest) or (TableOutput(lake, query.writes),)


def note_of_batch(
    lake: Lake, query: str, checkpoint: str, receipts: ReceiptClock | None, *, writer: str, batch_id: int
) -> CommitNote:
    """The note of a running batch, from the plan that Spark wrote to ``checkpoint`` (a key) before it started it."""
    plan = read_plan(lake.files.read(f"{checkpoint}/offsets/{batch_id}") or b"")
    return CommitNote(
        writer=writer,
        batch=batch_id,
        query=query,
        watermark_ms=plan.watermark_ms,
        reached=plan.reached,
        received_us=receipts.corrected(plan.at_ms * 1000, writer=writer, batch_id=batch_id) if receipts else 0,
    )


def start_query(
    rows: DataFrame,
    lake: Lake,
    query: Query,
    *,
    start: Start = ASAP,
    within: BatchContext = nullcontext,
    version: int,
    outputs: Sequence[Output],
) -> StreamingQuery:
    """Starts the streaming query that writes ``rows`` to the table of ``query``, each batch exactly once.

    A batch with several outputs reaches each of them exactly once: when it is run again after a crash, it is written
    only where it is missing.

    Args:
        rows: a streaming DataFrame with the columns of the table.
        lake: where the table and the checkpoint lie.
        query: the query; the checkpoint has its name.
        start: when its batches start.
        within: returns a context manager for the note of a batch; the batch is written within it.
        version: of the checkpoint.
        outputs: get each batch, one after the other: see :func:`outputs_of`.
    """
    spark, name = rows.sparkSession, query.name
    checkpoint = checkpoint_key(name, version)
    is_first = True
    # What comes from outside is received here; other queries keep the time.
    receipts = None if query.reads else ReceiptClock(lake, query.writes, last_note(lake, name))

    def write(batch: DataFrame, batch_id: int) -> None:
        nonlocal is_first
        # The id of a query lives in its checkpoint, so the batches of a new checkpoint do not count as written.
        (query_id,) = (active.id for active in spark.streams.active if active.name == name)
        note = note_of_batch(lake, name, checkpoint, receipts, writer=query_id, batch_id=batch_id)
        with within(note):
            # Only the first batch after a start can be in the table without Spark knowing it, after a crash. Its rows
            # are there, but it must still run: Spark computes the watermark of the next batch from them.
            rows = as_received(batch, note)
            _write_batch(rows, [output for output in outputs if not (is_first and output.has(note))], note)
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
