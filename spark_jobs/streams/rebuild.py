"""Rebuilds the checkpoint of a query from events at rest, so that Spark continues as if it had never stopped.

It gets two batches, because Spark derives the watermark of the next one from both of them::

    batch   reads                  watermark of the batch   its output
    0       all open events        none: nothing is late    in the table already, but for what changed settings add
    1       nothing                that of the position     what changed settings make due at the position
    2 …     what the query had     rows behind the one of   ordinary: rows behind the watermark of the position are late
            not read yet           batch 1 are late

So the source table need not have the versions that its events came in. Spark's own files then record where in the
source table the query had come to.
"""

import json
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.events import KEY
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.append_missing import note_of_reset
from spark_jobs.queries.checkpoint_files import read_lines, write_lines
from spark_jobs.queries.manifest import Manifest
from spark_jobs.queries.output import outputs_of
from spark_jobs.queries.places import checkpoint_key
from spark_jobs.queries.resume_point import ResumePoint
from spark_jobs.spark.failures import naming_the_cause
from spark_jobs.spark.session import using
from spark_jobs.spark.write_delta import add_columns

_Write = Callable[[DataFrame], None]
_NEXT = "nextBatchWatermarkMs"


def rebuild(at: ResumePoint, version: int, manifest: Manifest) -> int:
    """Rebuilds the state of a query as it was at a position.

    Args:
        at: the position.
        version: of the new checkpoint, which does not exist.
        manifest: that the new checkpoint will have.

    Returns:
        How many open events the state was rebuilt from.

    Raises:
        CheckpointError: the log of the source table does not go back to the position.
        QueryFailedError: the state could not be rebuilt.
    """
    query, lake = at.query, at.lake
    # The newest event may be among the open ones a second time.
    events = query.open_events(at).dropDuplicates([*KEY, "event_time"]).localCheckpoint()
    sides = _sides(at, events)
    known = query.known_state(at)
    first = query.rows(at.lake.settings, _streamed(sides), known)
    add_columns(lake, query.writes, first)
    folder = checkpoint_key(query.name, version)
    held_ms = at.note.watermark_ms if query.watermark(at.lake.settings) is not None else 0
    _run_batch(at, first, version, query.write_rebuilt(at))
    next_ms = _replace_watermark(lake, f"{folder}/commits/0", held_ms)
    _run_batch(at, query.rows(at.lake.settings, _streamed(sides), None), version, _write_due(at, manifest, held_ms))
    _replace_watermark(lake, f"{folder}/commits/1", max(next_ms, held_ms))
    for batch in (0, 1):
        _replace_offsets(at, f"{folder}/offsets/{batch}")
    return events.count()


def _sides(at: ResumePoint, events: DataFrame) -> Sequence[DataFrame]:
    """The open events for each time that the query reads its table; one side may have read further than another."""
    last, keys = max(at.reached), [*KEY, "event_time"]
    sides = [
        events
        if until == last
        else events.join(at.read_until(table, until).select(*keys).distinct(), on=keys, how="left_semi")
        for table, until in zip(at.query.reads, at.reached, strict=True)
    ]
    return at.query.adapt_for_reset(at, sides)


def _streamed(sides: Sequence[DataFrame]) -> list[DataFrame]:
    """Streams with the rows of ``sides``: all of them in batch 0, none in later ones."""
    return [_in_first_batch(side) for side in sides]


def _in_first_batch(rows: DataFrame) -> DataFrame:
    numbers = rows.sparkSession.readStream.format("rate-micro-batch")
    # A row per batch: the number of the batch.
    batch = numbers.option("rowsPerBatch", 1).option("numPartitions", 1).load()
    return rows.crossJoin(F.broadcast(batch.where("value = 0").select(F.lit(1).alias("_batch")))).select(*rows.columns)


def _run_batch(at: ResumePoint, rows: DataFrame, version: int, write: _Write | None) -> None:
    """Runs the next batch of the new checkpoint; ``write`` gets its output, which otherwise is discarded."""

    def compute(batch: DataFrame, _batch_id: int) -> None:
        if write is None:
            batch.write.format("noop").mode("overwrite").save()
            return
        # Every partition once: the state of one that is not computed, or computed twice, would be wrong.
        kept = batch.persist()
        try:
            kept.count()
            write(kept)
        finally:
            kept.unpersist()

    with using(at.lake.spark, at.query.spark_conf):
        writer = rows.writeStream.queryName(f"{at.query.name} rebuilt").foreachBatch(compute).trigger(once=True)
        started = writer.option("checkpointLocation", at.lake.uri(checkpoint_key(at.query.name, version))).start()
    with naming_the_cause(lambda: [started]):
        started.awaitTermination()


def _write_due(at: ResumePoint, manifest: Manifest, held_ms: int) -> _Write:
    """Writes the rows that come due at the position as an ordinary batch would; without rows, nothing is committed."""
    query, note = at.query, note_of_reset(at.note).model_copy(update={"watermark_ms": held_ms})
    outputs = outputs_of(query, at.lake.settings, at.lake, manifest)

    def write(rows: DataFrame) -> None:
        if rows.isEmpty():
            return
        for output in outputs:
            output.write(rows, note)

    return write


def _replace_watermark(lake: Lake, key: str, watermark_ms: int) -> int:
    """Replaces the watermark that a batch left to the next one, in the file ``key``. Returns the old one."""
    version, text, *more = read_lines(lake, key)
    done = json.loads(text)
    write_lines(lake, key, [version, json.dumps({**done, _NEXT: watermark_ms}), *more])
    return int(done[_NEXT])


def _replace_offsets(at: ResumePoint, key: str) -> None:
    """Replaces the end of a batch, in the file ``key``, by the position in the source table."""
    version, metadata, *_ = read_lines(at.lake, key)
    write_lines(at.lake, key, [version, metadata, *map(json.dumps, at.next_positions)])
