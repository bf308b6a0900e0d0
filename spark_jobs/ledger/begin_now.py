"""Beginning the live ledger in the middle of a lake's life."""

from collections.abc import Callable
from datetime import datetime

from spark_jobs.config.durations import EPOCH, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import LATE_EVENTS, RESTATEMENTS, SILVER_EVENTS
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import version_reached
from spark_jobs.ledger.cut import CutPosition, LiveLedger
from spark_jobs.ledger.cut_files import numbers, save_cut
from spark_jobs.ledger.read_files import newest_version
from spark_jobs.places import REPAIRS
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.registry import readers_of


def begin_now(settings: Settings, lake: Lake, now: datetime, check_lock: Callable[[], None]) -> LiveLedger:
    """Begins the live ledger of ``lake`` with what comes from now on: a cut that counts nothing.

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
            positions[query.name] = CutPosition(
                version=version, silver=read, before=read, watermark_ms=own.watermark_ms, previous_ms=own.watermark_ms
            )
    skew = settings.ingest.max_future_skew
    cut = LiveLedger(
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
    save_cut(lake, cut)
    return cut
