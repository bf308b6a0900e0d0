"""Brings the live ledger up to now, one process at a time."""

from datetime import UTC, datetime

from spark_jobs.config.settings import Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.ledger.begin_now import begin_now
from spark_jobs.ledger.cut import LiveLedger
from spark_jobs.ledger.take_cut import take_cuts
from spark_jobs.places import LIVE_LEDGER


def update_ledger(lake: Lake, settings: Settings, *, restart: bool = False, from_now: bool = False) -> LiveLedger:
    """Brings the live ledger of ``lake`` up to now.

    Raises:
        LakeError: see :func:`spark_jobs.ledger.take_cut.take_cuts`.
        LakeInUseError: another process is at it.
    """
    with hold_job(lake, LIVE_LEDGER, settings.s3) as check_lock:
        if from_now:
            return begin_now(settings, lake, datetime.now(UTC), check_lock)
        *_, last = take_cuts(settings, lake, lambda: datetime.now(UTC), restart=restart, check_lock=check_lock)
        return last
