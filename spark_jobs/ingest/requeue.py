"""Records in quarantine judged again under the present settings; those that fit now flow on, once.

::

    bronze  ──still in quarantine──▶ judge, with the present mapping ──ok──▶ bronze, a second row with requeued_from
                                                                     └─────▶ stays as it is

The second rows are appended in one commit, so a requeue that is killed has added all of them or none. The next one
finds what is there and adds the rest. ``deduplicate`` takes them like any other rows of bronze.

**No record twice, even if a lock is lost.** The commit names its writer after the last requeue that the judged version
of bronze holds, and Delta lets each name commit once. So of two requeues that both saw the same records in quarantine
only one commits; the other starts over from what is there then. By induction each commit has seen all before it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import EPOCH, microseconds, time_of_us
from spark_jobs.contract.events import EVENT_TIME_IN_FUTURE, OK
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.errors import LakeError, LakeInUseError
from spark_jobs.formats.sources import decoders
from spark_jobs.ingest.arriving import places_of_files
from spark_jobs.ingest.judge import judge
from spark_jobs.ingest.quarantine import (
    BEFORE_PLACE,
    BEFORE_SOURCE,
    BEFORE_VERDICT,
    NUMBER,
    as_received,
    in_quarantine,
    once_more,
    requeued,
)
from spark_jobs.ingest.requeue_model import JudgedRecords, Requeued, Selection
from spark_jobs.ingest.schemas import schemas_of
from spark_jobs.lake.lock import Check
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.store.files import json_bytes
from spark_jobs.places import REQUEUE, REQUEUED
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.jobs import DEDUPLICATE_JOB
from spark_jobs.queries.notes import next_watermark
from spark_jobs.spark.columns import uncompiled
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import add_columns, append_rows

_ATTEMPTS = 5
# In Python the others are no subclasses of DeltaConcurrentModificationException. With none of them was it committed.
_CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
_CARRIED = (BEFORE_VERDICT, BEFORE_SOURCE, BEFORE_PLACE, NUMBER)
_log = logging.getLogger(__name__)
OnStep = Callable[[str], None]


def requeue(
    lake: OpenLake, selection: Selection, *, dry_run: bool = False, on_step: OnStep = lambda _line: None
) -> Requeued:
    """Judges the records of ``selection`` that are still in quarantine, and requeues those that fit now.

    Jobs may be running. Nothing is collected but the counts, so the quarantine may be of any size.

    Args:
        lake: the lake.
        selection: which records.
        dry_run: only judge; nothing is written.
        on_step: called with a line of text at every step.

    Raises:
        SettingsError: the settings have no such source.
        LakeError: the lake has no bronze, or a column that is kept has another type there.
        LakeInUseError: another requeue or a bounded run is at work, or bronze lacks columns while its job runs.
    """
    selection.check(lake.settings.sources)
    if dry_run:
        batch = _judge(lake, selection, on_step)
        try:
            return Requeued(batch.counts(on_step))
        finally:
            batch.judged.unpersist()
    with lake.hold(REQUEUE) as check_lock:
        for attempt in range(1, _ATTEMPTS + 1):
            batch = _judge(lake, selection, on_step)
            try:
                found = Requeued(batch.counts(on_step), batch.at)
                if not found.fit:
                    return Requeued(found.judged)
                on_step(f"{found.fit:,} records fit now: appending them to bronze")
                if _append(lake, batch, check_lock):
                    return found
            except _CONFLICTS as error:
                _log.warning("bronze changed during the requeue, attempt %d: %s", attempt, error)
            finally:
                batch.judged.unpersist()
    raise LakeError(
        f"bronze of {lake.root} changed during each of {_ATTEMPTS} attempts to requeue into it, so nothing was added "
        "by this one; is another requeue running? Run it again"
    )


@dataclass(frozen=True)
class _Batch:
    """Records of one version of bronze, judged again.

    ``judged``: persisted, the columns of bronze, the kept ones, and what the records were judged before; ``source``:
    only its records are meant, None: all; ``at``: their ``ingest_time``; ``writer``: what the commit must be named;
    ``watermark``: of ``deduplicate``, None without one.
    """

    judged: DataFrame
    source: str | None
    at: datetime
    writer: str
    watermark: datetime | None

    @property
    def rows(self) -> DataFrame:
        """The records that are meant."""
        return self.judged if self.source is None else self.judged.where(_source() == self.source)

    def fitting(self) -> DataFrame:
        """The rows to append."""
        return self.rows.where(F.col("verdict") == OK).drop(*_CARRIED)

    def counts(self, on_step: OnStep) -> tuple[JudgedRecords, ...]:
        """The records in groups; judges them."""
        on_step("judging the quarantine under the present settings")
        is_late = F.lit(False) if self.watermark is None else F.col("event_time") <= F.lit(self.watermark)
        groups = self.rows.groupBy(_source().alias("source"), F.col(BEFORE_VERDICT), F.col("verdict")).agg(
            F.count("*").alias("records"),
            F.count_if((F.col("verdict") == OK) & is_late).alias("late"),
            F.min("reason").alias("reason"),
        )
        found = [
            JudgedRecords(row.source, row[BEFORE_VERDICT], row.verdict, row.records, row.late, row.reason or "")
            for row in groups.collect()
        ]
        return tuple(sorted(found, key=lambda one: (one.source or "", one.before, not one.fits, one.now)))


def _judge(lake: OpenLake, selection: Selection, on_step: OnStep) -> _Batch:
    """The records of ``selection`` as they are in bronze now, judged again, lazily."""
    on_step("reading bronze")
    # What is judged must be what the name of the commit says has been seen: one version for both.
    bronze = lake.read(BRONZE_EVENTS, version=lake.newest_commit(BRONZE_EVENTS.path))
    last_us, newest_us = _times(bronze)
    # Later than all there is, even if the clock was set back: rows of one time are one batch.
    at_us = max(microseconds(datetime.now(UTC) - EPOCH), last_us + 1, newest_us + 1)
    chosen = in_quarantine(bronze).where(_is_selected(selection))
    now = uncompiled(F.timestamp_micros(F.lit(at_us).cast("bigint")))
    records = as_received(
        chosen, now, decoders(lake.settings, schemas_of(lake.settings, lake)), places_of_files(lake.settings)
    )
    if EVENT_TIME_IN_FUTURE in selection.verdicts:
        # Whoever names the verdict says that a clock was wrong, so what was received when says nothing.
        is_meant = F.col(BEFORE_VERDICT) == EVENT_TIME_IN_FUTURE
        records = records.withColumn("received_time", F.when(is_meant, now).otherwise(F.col("received_time")))
    # Judged once, and counted before they are written. Without this, Spark would also put the rules into each
    # condition on what was judged, and plan for minutes.
    records = records.withColumn(NUMBER, F.monotonically_increasing_id())
    has_lists = any(source.each for source in lake.settings.sources.values())
    judged = once_more(judge(records, lake.settings, carried=_CARRIED), has_lists=has_lists).persist()
    writer = f"{REQUEUE} after {last_us}"
    return _Batch(judged, selection.source, time_of_us(at_us), writer, next_watermark(lake, DEDUPLICATE))


def _times(bronze: DataFrame) -> tuple[int, int]:
    """In microseconds since 1970: when records were last requeued, and the newest ``ingest_time``; 0 if never."""
    last = F.unix_micros(F.max(F.when(F.col("requeued_from").isNotNull(), F.col("ingest_time"))))
    newest = F.unix_micros(F.max("ingest_time"))
    (found,) = bronze.agg(last.alias("last"), newest.alias("newest")).collect()
    return found.last or 0, found.newest or 0


def _is_selected(selection: Selection) -> Column:
    chosen = F.lit(True)
    if selection.verdicts:
        chosen &= F.col("verdict").isin(*selection.verdicts)
    if selection.since:
        chosen &= F.col("ingest_time") >= F.lit(selection.since)
    if selection.until:
        chosen &= F.col("ingest_time") < F.lit(selection.until)
    return chosen


def _source() -> Column:
    """The source that means the record now, or else the one that it belonged to when it was received."""
    return F.coalesce("source_name", BEFORE_SOURCE)


def _append(lake: OpenLake, batch: _Batch, check_lock: Check) -> bool:
    """Appends the rows that fit. Returns False if another requeue was faster: nothing was appended then."""
    rows = batch.fitting()
    _bring_columns(lake, rows)
    check_lock()
    # From now on the ledger does not count all of bronze, whether this ends well or not.
    lake.files.write(REQUEUED, json_bytes({"at": batch.at.isoformat()}))
    append_rows(rows, lake, BRONZE_EVENTS, CommitNote(writer=batch.writer, batch=0))
    added = requeued(lake.read(BRONZE_EVENTS)).where(F.col("ingest_time") == F.lit(batch.at))
    return not added.isEmpty()


def _bring_columns(lake: OpenLake, rows: DataFrame) -> None:
    """Adds the columns that bronze lacks. Its job must not be running then: its batch would fail.

    Raises:
        LakeInUseError: the job is running.
        LakeError: bronze has such a column, of another type.
    """
    there = lake.spark.read.format("delta").load(lake.table(BRONZE_EVENTS)).columns
    missing = [name for name in rows.columns if name not in there]
    if not missing:
        add_columns(lake, BRONZE_EVENTS, rows)  # for its check of the types
        return
    try:
        with lake.hold(DEDUPLICATE_JOB):
            add_columns(lake, BRONZE_EVENTS, rows)
    except LakeInUseError as error:
        raise LakeInUseError(
            f"bronze of {lake.root} has no column {', '.join(missing)} yet, and job {DEDUPLICATE_JOB} is running: "
            "adding columns would make its batch fail. Start the job with this version and these settings, and requeue "
            "then: its start adds them. Or stop the job first (`adloom stop deduplicate`)"
        ) from error
