"""Stopping the running jobs of a lake from outside, wherever their drivers run."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import LakeInUseError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import is_held
from spark_jobs.streams.desired_state import RunState, is_watched, read_desired, request_stop, set_desired

_POLL_S = 1.0


def stop_jobs(
    lake: Lake,
    jobs: Sequence[str],
    s3: S3Settings,
    *,
    patience_s: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[str, bool]]:
    """Has the drivers of ``jobs`` finish their batches and stop, and waits for it; event time does not move.

    A job that somebody watches over is stopped by its watcher, which would start it again otherwise.

    Args:
        lake: the lake.
        jobs: the jobs.
        s3: of the lake's store.
        patience_s: how long to wait, in seconds.
        sleep: waits for the given number of seconds.
        clock: gives seconds, and is never set.

    Yields:
        Each job once it does not run, and whether it ran.

    Raises:
        LakeInUseError: a job still runs.
        LakeError: the lake does not answer.
    """
    deadline = clock() + patience_s
    running = {job: is_held(lake, job, s3) for job in jobs}
    for job, is_running in running.items():
        _ask(lake, job, is_running=is_running)
    for job, has_run in running.items():
        while is_held(lake, job, s3):
            if clock() > deadline:
                raise LakeInUseError(
                    f"job {job} of lake {lake.root} is still running {patience_s:.0f} s after it was asked to stop: "
                    "its batch takes longer, its driver hangs, or it is an `adloom run`, which ends by itself. Run "
                    "`adloom stop` again to wait on, or send the process SIGTERM, twice to break off the batch (the "
                    "next start repeats it)"
                )
            sleep(_POLL_S)
        yield job, has_run


def _ask(lake: Lake, job: str, *, is_running: bool) -> None:
    now, wanted = datetime.now(UTC), read_desired(lake, job)
    if wanted is not None and (wanted.state is not RunState.STOPPED or wanted.is_paused):
        set_desired(lake, job, RunState.STOPPED, "adloom stop", now)
    # Its watcher sends SIGTERM. A driver would take a second request as one to stop at once.
    if is_running and not is_watched(lake, job, now):
        request_stop(lake, job, now)
