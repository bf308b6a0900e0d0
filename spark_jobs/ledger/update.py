"""Brings the ledger up to now, one process at a time, and checks that it balances."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from spark_jobs.config.durations import EPOCH, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import LATE_EVENTS, RESTATEMENTS, SILVER_EVENTS
from spark_jobs.errors import LakeError, LedgerError
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.lock import hold_patiently
from spark_jobs.lake.notes import version_reached
from spark_jobs.ledger.advance import advance
from spark_jobs.ledger.followed_queries import followed
from spark_jobs.ledger.ledger_files import last_ledger, numbers, save_ledger
from spark_jobs.ledger.model import Ledger, QueryPosition, RecordKind
from spark_jobs.ledger.read_files import newest_version
from spark_jobs.places import LEDGER, REPAIRS
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.registry import readers_of

_PATIENCE = timedelta(minutes=10)
"""How long a run waits for another update, a backup or maintenance that holds the ledger."""


def update_ledger(
    lake: Lake, settings: Settings, *, restart: bool = False, from_now: bool = False, patience: timedelta = timedelta()
) -> Ledger:
    """Brings the ledger of ``lake`` up to now.

    A lake whose log no longer reaches back to its start when the ledger begins is counted from now on.

    Raises:
        LakeError: see :func:`spark_jobs.ledger.advance.advance`.
        LakeInUseError: another process is at it, for longer than ``patience``.
    """
    with hold_patiently(lake, LEDGER, settings.s3, patience) as check_lock:
        begins_late = not restart and last_ledger(lake) is None and _has_lost_its_start(lake)
        if from_now or begins_late:
            return begin_now(settings, lake, datetime.now(UTC), check_lock)
        *_, last = advance(settings, lake, lambda: datetime.now(UTC), restart=restart, check_lock=check_lock)
        return last


def balance(settings: Settings, lake: Lake, *, drained: bool) -> Ledger:
    """Brings the ledger of ``lake`` up to now, and checks it.

    Args:
        settings: those the lake was written with.
        lake: no job is running on it.
        drained: whether nothing may be pending.

    Raises:
        LedgerError: a row is not accounted for, or one is accounted for that was never received.
        LakeError: see :func:`update_ledger`.
    """
    ledger = update_ledger(lake, settings, patience=_PATIENCE)
    wrong = ledger.wrong
    for query in followed(settings) if drained else ():
        if rows := ledger.rows(RecordKind.PENDING, account=query.name):
            wrong.append(f"{rows:,} events are still pending in {query.name}, although everything was closed")
    if wrong:
        raise LedgerError(
            f"the accounts of {lake.root} do not balance: {'; '.join(wrong)}; do not count money from these tables: "
            "keep them for inspection and run again into a new lake"
        )
    return ledger


def _has_lost_its_start(lake: Lake) -> bool:
    return lake.has(SILVER_EVENTS) and lake.files.read(commit_key(SILVER_EVENTS, 0)) is None


def begin_now(settings: Settings, lake: Lake, now: datetime, check_lock: Callable[[], None]) -> Ledger:
    """Begins the ledger of ``lake`` with what comes from now on: it has counted nothing.

    For a lake whose log no longer reaches back to its start, or whose files were compacted and vacuumed since.

    Raises:
        LakeError: no batch of ``deduplicate`` is in silver yet.
    """
    silver = newest_version(lake, SILVER_EVENTS)
    note = last_note(lake, DEDUPLICATE, until=silver) if silver >= 0 else None
    if note is None:
        raise LakeError(f"silver of {lake.shown()} has no batch yet: `adloom ledger` can count from the start")
    positions = {}
    for query in readers_of(SILVER_EVENTS):
        version = newest_version(lake, query.writes)
        own = last_note(lake, query.name, until=version) if version >= 0 else None
        if own is not None:
            read = min(map(version_reached, own.reached))
            positions[query.name] = QueryPosition(
                version=version, silver=read, before=read, watermark_ms=own.watermark_ms, previous_ms=own.watermark_ms
            )
    skew = settings.ingest.max_future_skew
    ledger = Ledger(
        number=max(numbers(lake), default=0) + 1,
        taken_at=now,
        bronze=min(map(version_reached, note.reached)),
        silver=silver,
        watermark_ms=note.watermark_ms,
        positions=positions,
        since_us=microseconds(now - EPOCH + skew),
        repair=max(lake.numbers(REPAIRS), default=0),
        late_events=newest_version(lake, LATE_EVENTS),
        restatements=newest_version(lake, RESTATEMENTS),
    )
    check_lock()
    save_ledger(lake, ledger)
    return ledger
