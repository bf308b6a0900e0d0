"""Brings the live ledger up to now, one process at a time, and checks that it balances."""

from datetime import UTC, datetime, timedelta

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.errors import LedgerError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_patiently
from spark_jobs.ledger.begin_now import begin_now
from spark_jobs.ledger.cut import LiveLedger, RecordKind
from spark_jobs.ledger.cut_files import last_cut
from spark_jobs.ledger.followed_queries import followed
from spark_jobs.ledger.take_cut import take_cuts
from spark_jobs.places import LIVE_LEDGER

_PATIENCE = timedelta(minutes=10)
"""How long a run waits for a cut, a backup or maintenance that holds the ledger."""


def update_ledger(
    lake: Lake, settings: Settings, *, restart: bool = False, from_now: bool = False, patience: timedelta = timedelta()
) -> LiveLedger:
    """Brings the live ledger of ``lake`` up to now.

    A lake whose log no longer reaches back to its start when the ledger begins is counted from now on.

    Raises:
        LakeError: see :func:`spark_jobs.ledger.take_cut.take_cuts`.
        LakeInUseError: another process is at it, for longer than ``patience``.
    """
    with hold_patiently(lake, LIVE_LEDGER, settings.s3, patience) as check_lock:
        begins_late = not restart and last_cut(lake) is None and _has_lost_its_start(lake)
        if from_now or begins_late:
            return begin_now(settings, lake, datetime.now(UTC), check_lock)
        *_, last = take_cuts(settings, lake, lambda: datetime.now(UTC), restart=restart, check_lock=check_lock)
        return last


def balance(settings: Settings, lake: Lake, *, drained: bool) -> LiveLedger:
    """Brings the ledger of ``lake`` up to now, and checks it.

    Args:
        settings: those the lake was written with.
        lake: no job is running on it.
        drained: whether nothing may be pending.

    Raises:
        LedgerError: a row is not accounted for, or one is accounted for that was never received.
        LakeError: see :func:`update_ledger`.
    """
    cut = update_ledger(lake, settings, patience=_PATIENCE)
    wrong = cut.wrong
    for query in followed(settings) if drained else ():
        if rows := cut.rows(RecordKind.PENDING, account=query.name):
            wrong.append(f"{rows:,} events are still pending in {query.name}, although everything was closed")
    if wrong:
        raise LedgerError(
            f"the accounts of {lake.root} do not balance: {'; '.join(wrong)}; do not count money from these tables: "
            "keep them for inspection and run again into a new lake"
        )
    return cut


def _has_lost_its_start(lake: Lake) -> bool:
    return min(lake.commits(SILVER_EVENTS.path), default=0) > 0
