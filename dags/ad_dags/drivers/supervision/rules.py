"""Decides what to do about a driver: pure rules, which take the time and everything else as arguments.

::

    wanted   driver     action
    ──────── ────────── ──────────────────────────────────────────────────────────────
    no       alive      stop it
    no       gone       finish: the watch is over
    failed   gone       fail: the watch is over, and nobody starts it but a person
    yes      gone       start it, after a longer pause each time; too many restarts in a row make it a failed one
    yes      alive      none, unless it has said nothing for long: then stop it, and it is gone
    any      stopping   stop it again, until it is gone: the launcher kills one that takes too long

A driver that runs and makes no progress ends by itself: see :mod:`spark_jobs.streams.self_watch`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum

from ad_dags.drivers.launchers import Driver, DriverState
from spark_jobs.streams.desired_state import DesiredState, RunState, Watch

_UNKNOWN = {"restarts": 0, "start_at": None, "started_at": None}
"""Of a watch that begins."""


class Action(StrEnum):
    """The next step for a driver."""

    NOTHING = "nothing"
    START = "start"
    STOP = "stop"
    FINISH = "finish"
    """The driver is no longer wanted, and is gone."""
    FAIL = "fail"
    """Restarts do not help: somebody must look into it, and start it."""


@dataclass(frozen=True)
class Limits:
    """How patient the watch is.

    Attributes:
        silent_after: a driver that has not said for this long that it is alive is stopped, and started again. It says
            so every 15 s, whatever its batches do.
        most_restarts: after more restarts in a row than this, the job has failed.
        recovered_after: a driver that ran for this long, and completed a batch or had none to run, has recovered: the
            next restart is the first of a row.
        first_pause: the pause before the first restart; it doubles with each further one.
        first_batch: a deployment is undone if the first batches of the new driver make no progress for this long.
        good_after: a deployment does not wait longer than this for first batches that make progress.
    """

    silent_after: timedelta = timedelta(minutes=10)
    most_restarts: int = 5
    recovered_after: timedelta = timedelta(minutes=10)
    first_pause: timedelta = timedelta(seconds=5)
    first_batch: timedelta = timedelta(minutes=5)
    good_after: timedelta = timedelta(minutes=15)

    def numbers(self) -> dict[str, float]:
        """The limits in a form that fits JSON, times in seconds; :meth:`of` is the inverse."""
        return {
            "most_restarts": self.most_restarts,
            **{f"{name}_s": getattr(self, name).total_seconds() for name in _TIMES},
        }

    @staticmethod
    def of(numbers: Mapping[str, float]) -> "Limits":
        """The limits that :meth:`numbers` gave; those that an earlier version did not know are the usual ones."""
        known = {**Limits().numbers(), **numbers}
        times = {name: timedelta(seconds=known[f"{name}_s"]) for name in _TIMES}
        return Limits(most_restarts=int(known["most_restarts"]), **times)


_TIMES = tuple(field.name for field in fields(Limits) if field.name != "most_restarts")


@dataclass(frozen=True)
class Life:
    """The news from a driver: when it last said that it is alive, and since when it has run well.

    It has not run well yet if a batch is running and none was completed.
    """

    heard_at: datetime | None = None
    well_since: datetime | None = None


@dataclass(frozen=True)
class Decision:
    """A decision: what to do, why, and what to remember."""

    action: Action
    why: str
    watch: Watch


def decide(
    now: datetime, driver: Driver, life: Life, wanted: DesiredState | None, watch: Watch, limits: Limits
) -> Decision:
    """Decides what to do about ``driver`` at ``now``.

    Args:
        now: with a time zone.
        driver: as the launcher sees it.
        life: of its process.
        wanted: what is wanted of the job; None: nobody has ever asked for it.
        watch: that of the previous decision, whoever made it.
        limits: how patient to be.
    """
    if wanted is None or not wanted.runs_at(now):
        return _wind_down(driver, wanted, watch)
    if watch.started_at is not None and watch.started_at < wanted.since:
        watch = watch.model_copy(update=_UNKNOWN)  # somebody has started the job since
    if driver.state is DriverState.STOPPING:
        return Decision(Action.STOP, "it is stopping", watch)
    if not driver.state.is_alive:
        return _start(now, driver, watch, limits)
    watch = watch.model_copy(update={"start_at": None})
    if life.well_since and now - life.well_since >= limits.recovered_after:
        watch = watch.model_copy(update={"restarts": 0})
    signs = (life.heard_at, watch.started_at, driver.since)
    heard = max((sign for sign in signs if sign), default=now)
    if now - heard > limits.silent_after:
        return Decision(Action.STOP, f"it has not said that it is alive since {heard:%H:%M:%S} UTC", watch)
    return Decision(Action.NOTHING, "it runs", watch)


def _wind_down(driver: Driver, wanted: DesiredState | None, watch: Watch) -> Decision:
    if driver.state.is_alive:
        return Decision(Action.STOP, "it is no longer wanted", watch)
    if wanted and wanted.state is RunState.FAILED:
        return Decision(Action.FAIL, wanted.why, watch)
    return Decision(Action.FINISH, "it is no longer wanted, and has stopped", watch)


def _start(now: datetime, driver: Driver, watch: Watch, limits: Limits) -> Decision:
    if watch.started_at is None:
        started = watch.model_copy(update={"started_at": now})
        return Decision(Action.START, "it is wanted, and is not running", started)
    if watch.restarts >= limits.most_restarts:
        why = f"it has ended again after {watch.restarts} restarts in a row; the last time: {driver.detail}"
        return Decision(Action.FAIL, why, watch)
    start_at = watch.start_at or now + limits.first_pause * 2**watch.restarts
    if now < start_at:
        why = f"it has {driver.state}; the next start is at {start_at:%H:%M:%S} UTC"
        return Decision(Action.NOTHING, why, watch.model_copy(update={"start_at": start_at}))
    started = watch.model_copy(update={"start_at": None, "started_at": now, "restarts": watch.restarts + 1})
    return Decision(Action.START, f"it has {driver.state}: {driver.detail}", started)
