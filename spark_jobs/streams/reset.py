"""A new checkpoint for a query, in place of one that is damaged or belongs to other settings.

The contents of the old one are not read. The output table shows how far the query had come: its commits carry a note
(:mod:`spark_jobs.lake.notes`). The state is rebuilt from the events that were still open at that position
(:mod:`spark_jobs.streams.rebuild`), and the query continues there, under the watermark that it had.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from spark_jobs.errors import CheckpointError
from spark_jobs.ingest.arriving import arriving_files
from spark_jobs.ingest.input_files import folders_of
from spark_jobs.lake.notes import CommitNote
from spark_jobs.queries.append_missing import is_of_reset
from spark_jobs.queries.manifest import FILES, KAFKA
from spark_jobs.queries.manifests import new_manifest, read_manifest, with_initial_state_of, write_manifest
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.output import AVAILABLE_NOW
from spark_jobs.queries.places import checkpoint_in_use, checkpoint_key
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import find_query
from spark_jobs.queries.resume_point import ResumePoint
from spark_jobs.spark.failures import naming_the_cause
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.rebuild import rebuild
from spark_jobs.streams.start import start


@dataclass(frozen=True)
class Reset:
    """The result of a reset: the new version of the checkpoint, and the open events that its state was rebuilt from."""

    query: str
    version: int
    open_events: int


def reset(lake: OpenLake, name: str, source: str | Path | None = None) -> Reset:
    """Creates a new version of the checkpoint of the query ``name``: no row of its output is lost or repeated.

    Decisions of the query stay; everything else follows the new settings, whichever of them changed:

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

    Events that are late for the query stay late. Which were late earlier is not recorded: those still within reach
    count now.

    An initial state that the query began with still counts, whatever the setting is now.

    If it is killed half-way, the version in use stays as it was. If it had written to the table by then, no query
    starts from that version; run the reset again.

    Args:
        lake: the lake; the job of the query must not be running.
        name: of the query.
        source: for ``ingest``, the folder it reads; None: folders or Kafka, as configured. New files are
            taken in on the way.

    Raises:
        SettingsError: ``name`` is not a query.
        CheckpointError: the tables do not show how far the query had come.
        LakeInUseError: the job is running.
        QueryFailedError: the state could not be rebuilt.
    """
    query = find_query(name)
    with lake.hold(query.job):
        version = checkpoint_in_use(lake, name) + 1
        # A reset that was killed may have left it: without a manifest no query uses it.
        lake.files.delete_folder(checkpoint_key(name, version))
        note = _last_note(lake, query)
        manifest = new_manifest(
            name, lake.settings, FILES if query.reads or folders_of(lake.settings, source) else KAFKA
        )
        open_events, before = 0, read_manifest(lake, name, version - 1)
        if not query.reads:
            begins_at = _restart_at_end(lake, query, note, source, version)
            ids = before.topic_ids if before else {}
            manifest = manifest.model_copy(update={"begins_at": begins_at, "topic_ids": ids})
        elif note:
            at = ResumePoint(lake, query, note)
            manifest = manifest.model_copy(update={"final_before_ms": query.final_before_ms(at), **at.begun_with})
            open_events = rebuild(at, version, manifest)
            own = last_note(lake, name)
            # Anything else was written by a driver that has lost its lock, and the state lacks it.
            note = own if own and is_of_reset(own) else note
        if note:
            manifest = manifest.model_copy(update={"follows": note.writer, "follows_batch": note.batch})
            manifest = with_initial_state_of(manifest, before, query, lake.settings, lake)
        write_manifest(lake, manifest, version)
    return Reset(name, version, open_events)


def _last_note(lake: OpenLake, query: Query) -> CommitNote | None:
    """The note of the last batch of ``query`` that its table holds; None if it holds none.

    Raises:
        CheckpointError: it holds batches, but none has a note.
    """
    if note := last_note(lake, query.name):
        return note
    table = query.writes
    if lake.has(table) and not lake.read(table).isEmpty():
        raise CheckpointError(
            f"table {table.name} of {lake.root} does not say how far query {query.name} had come: an older adloom "
            "wrote it, or its log was cleaned; start a new lake from the source"
        )
    return None


def _restart_at_end(
    lake: OpenLake, query: Query, note: CommitNote | None, source: str | Path | None, version: int
) -> str:
    """Restarts ``ingest`` where bronze ends. Returns that position in Kafka; empty for files and at the start."""
    if not folders_of(lake.settings, source):
        return json.dumps(note.reached[0]) if note and _is_kafka(note.reached[0]) else ""
    records = arriving_files(lake.spark, lake.settings, source)
    if lake.has(query.writes):
        known = lake.read(query.writes).select(_file_of("source").alias("file")).distinct()
        records = records.withColumn("file", _file_of("source")).join(known, on="file", how="left_anti").drop("file")
    started = start(query, lake, records=records, trigger=AVAILABLE_NOW, version=version)
    with naming_the_cause(lambda: [started]):
        started.awaitTermination()
    return ""


def _is_kafka(reached: Any) -> bool:
    return isinstance(reached, dict) and all(isinstance(partitions, dict) for partitions in reached.values())


def _file_of(source: str) -> Any:
    return F.regexp_replace(source, "#(?:bytes|rows?)=[^/]*$", "")
