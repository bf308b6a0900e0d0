"""A new checkpoint for a query, in place of one that is damaged or belongs to other settings.

The contents of the old one are not read. The output table says how far the query had come: its commits carry a note
(:mod:`spark_jobs.lake.commits`). The events that were still open at that position are read again to rebuild the
state. Of the output of that batch only rows that changed settings add are written, because the table has the others::

    source versions   0 … 41    │ 42 … 57               │ 58 59 …
                      discarded │ some of it still open │ not read yet
                                └── one batch, from open events only
                                                        └── ordinary batches
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.durations import time_of_us
from spark_jobs.contracts.errors import CheckpointError
from spark_jobs.contracts.manifest import FILES, KAFKA
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import Table
from spark_jobs.jobs.position import Position
from spark_jobs.jobs.starting import start
from spark_jobs.lake.batches import last_note
from spark_jobs.lake.commits import CommitNote, version_reached
from spark_jobs.lake.layout import Lake, checkpoint_key, commit_key
from spark_jobs.queries import Query, find_query
from spark_jobs.runtime.failures import naming_the_cause
from spark_jobs.runtime.lock import hold_job
from spark_jobs.runtime.manifests import new_manifest, read_manifest, with_initial_state_of, write_manifest
from spark_jobs.runtime.session import using
from spark_jobs.sinks.delta import AVAILABLE_NOW, start_rebuilding
from spark_jobs.sources.arriving import arriving_files, folders_of
from spark_jobs.sources.delta import read_history, read_table, stream_table
from spark_jobs.transforms import open_rows

_CLOCKS_APART = timedelta(hours=1)
"""More than the clocks of the driver and the store differ."""
_POLL_S = 0.2


@dataclass(frozen=True)
class Reset:
    """What a reset did: the new version of the checkpoint, and the open events that its state was rebuilt from."""

    query: str
    version: int
    open_events: int


def reset(spark: SparkSession, settings: Settings, lake: Lake, name: str, source: Path | None = None) -> Reset:
    """Creates a new version of the checkpoint of the query ``name``: no row of its output is lost or repeated.

    What the query had decided stays; everything else follows the new settings, whichever of them changed:

    - ``deduplicate``: events in silver stay, and their repeats are recognized.
    - ``attribute``: emitted rows stay, even pairs that a shorter window would not make. Events that were waiting are
      paired by the new window and emitted according to the new join.
    - ``sessionize``: emitted sessions stay. Events of open sessions are grouped by the new gap.
    - ``campaign_stats``: windows that were final stay. Every window that ends later is computed in full with the new
      settings. If old and new windows start at different times, the first new ones overlap the last final ones; an
      event still counts once among windows of one length. Open windows written in update mode are removed when the
      output becomes ``append``, and return when they are final.
    - ``moving_average``, ``user_status``: emitted rows stay. Values and events that were waiting for the watermark are
      processed with the new settings, continuing from the last values and the current status of users.

    There is no record of which events were late: those still within reach count now.

    An initial state that the query began with still counts, whatever the setting says now.

    If it is killed half-way, the version in use stays as it was. If it had written to the table by then, no query
    starts from that version; run the reset again.

    Args:
        spark: the session.
        settings: those that the query will run with.
        lake: the lake; the job of the query must not be running.
        name: of the query.
        source: for ``ingest``, the folder it reads; None: folders or Kafka, as configured. New files are
            taken in on the way.

    Raises:
        SettingsError: there is no such query.
        CheckpointError: the tables do not say how far the query had come.
        LakeInUseError: the job is running.
        QueryFailedError: the state could not be rebuilt.
    """
    query = find_query(name)
    with hold_job(lake, query.job, settings.s3, spark=spark):
        version = lake.version(name) + 1
        # A reset that was killed may have left it: without a manifest no query uses it.
        lake.files.delete_folder(checkpoint_key(name, version))
        note = _last_note(spark, lake, query)
        begins_at, open_events, final_ms = "", 0, 0
        if not query.reads:
            begins_at = _restart_at_end(spark, settings, lake, query, note, source, version)
        elif note:
            at = Position(spark, settings, lake, query, note)
            open_events, final_ms = _rebuild(at, version), query.final_before_ms(at)
            note = last_note(lake, name)
        kind = FILES if query.reads or folders_of(settings, source) else KAFKA
        follows = note.writer if note else ""
        manifest = new_manifest(name, settings, kind, begins_at=begins_at, follows=follows, final_before_ms=final_ms)
        if note:
            before = read_manifest(lake, name, version - 1)
            manifest = with_initial_state_of(manifest, before, query, settings, lake)
        write_manifest(lake, manifest, version)
    return Reset(name, version, open_events)


def _last_note(spark: SparkSession, lake: Lake, query: Query) -> CommitNote | None:
    """The note of the last batch of ``query`` that its table holds; None if it holds none.

    Raises:
        CheckpointError: it holds batches, but none has a note.
    """
    if note := last_note(lake, query.name):
        return note
    table = query.writes
    if lake.has(table) and not read_table(spark, lake, table).isEmpty():
        raise CheckpointError(
            f"table {table.name} of {lake.root} does not say how far query {query.name} had come: an older adloom "
            "wrote it, or its log was cleaned; start a new lake from the source"
        )
    return None


def _restart_at_end(
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    query: Query,
    note: CommitNote | None,
    source: Path | None,
    version: int,
) -> str:
    """Restarts ``ingest`` where bronze ends. Returns where in Kafka that is; empty for files and at the start."""
    if not folders_of(settings, source):
        return json.dumps(note.reached[0]) if note and _is_kafka(note.reached[0]) else ""
    records = arriving_files(spark, settings, source)
    if lake.has(query.writes):
        known = read_table(spark, lake, query.writes).select(_file_of("source").alias("file")).distinct()
        records = records.withColumn("file", _file_of("source")).join(known, on="file", how="left_anti").drop("file")
    started = start(query, spark, settings, lake, records=records, trigger=AVAILABLE_NOW, version=version)
    with naming_the_cause(lambda: [started]):
        started.awaitTermination()
    return ""


def _is_kafka(reached: Any) -> bool:
    return isinstance(reached, dict) and all(isinstance(partitions, dict) for partitions in reached.values())


def _file_of(source: str) -> Any:
    return F.regexp_replace(source, "#(?:bytes|rows?)=[^/]*$", "")


def _rebuild(at: Position, version: int) -> int:
    """Rebuilds the state of a query as it was at a position. Returns how many open events it holds."""
    spark, lake, query, table = at.spark, at.lake, at.query, at.query.reads[0]
    assert query.open_events is not None, f"{query.name} reads a table and says nothing of its state"  # noqa: S101
    events = query.open_events(at).cache()
    try:
        (earliest, count) = events.agg(F.min(F.unix_micros("ingest_time")), F.count("*")).first() or (None, 0)
        reached = [version_reached(offset) for offset in at.note.reached]
        since = time_of_us(earliest) if earliest is not None else datetime.now(UTC)
        first = min(_first_version(spark, lake, table, since), *reached)
        keys = events.select(*open_rows.KEY).distinct()
        sides = [
            stream_table(
                spark, lake, table, first_version=first, files_a_batch=_count_files(lake, table, first, last)
            ).join(keys, on=list(open_rows.KEY), how="left_semi")
            for last in reached
        ]
        adapted = query.reread(at, sides) if query.reread else sides
        known = query.known_state(at) if query.known_state else None
        write = query.write_rebuilt(at) if query.write_rebuilt else None
        with using(spark, query.spark_conf):
            _run_one_batch(query.rows(at.settings, adapted, known), lake, query.name, version, write)
    finally:
        events.unpersist()
    return int(count)


def _run_one_batch(
    rows: DataFrame, lake: Lake, name: str, version: int, write: Callable[[DataFrame], None] | None
) -> None:
    started = start_rebuilding(rows, lake, query=name, version=version, write=write)
    try:
        with naming_the_cause(lambda: [started]):
            while "0" not in lake.files.names(f"{checkpoint_key(name, version)}/commits"):
                if failure := started.exception():
                    raise failure
                time.sleep(_POLL_S)
    finally:
        started.stop()


def _first_version(spark: SparkSession, lake: Lake, table: Table, since: datetime) -> int:
    """A version of ``table`` before which no row that was taken in at ``since`` or later was committed.

    Raises:
        CheckpointError: the log does not go back so far.
    """
    seen = read_history(spark, lake, table)
    after = [commit.version for commit in seen if commit.committed_at >= since - _CLOCKS_APART]
    first = min(after, default=max(commit.version for commit in seen))
    oldest = min(commit.version for commit in seen)
    if first == oldest > 0:
        raise CheckpointError(
            f"open events of {since:%Y-%m-%d %H:%M} UTC are needed to rebuild the state, and the log of table "
            f"{table.name} goes back to version {oldest} only; begin a new lake from the source"
        )
    return first


def _count_files(lake: Lake, table: Table, first: int, last: int) -> int:
    """How many data files the versions ``first`` to ``last`` added: as many as a batch of just these takes."""
    count = 0
    for version in range(first, last + 1):
        text = lake.files.read(commit_key(table, version)) or b""
        actions = (json.loads(line) for line in text.splitlines())
        count += sum("add" in action and action["add"]["dataChange"] for action in actions)
    return count
