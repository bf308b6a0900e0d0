"""Decides what to do about a driver: pure rules, which take the time and everything else as arguments.

::

    wanted  driver     action
    ─────── ────────── ──────────────────────────────────────────────────────────────
    no      alive      stop it
    no      gone       finish: the watch is over
    yes     gone       start it, after a longer pause each time; too many restarts fail the watch
    yes     alive      none while it makes progress; otherwise stop it, and then it is gone
    either  stopping   stop it again, until it is gone: the launcher kills one that takes too long
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from ad_dags.drivers.launchers import Driver, DriverState
from spark_jobs.streams.reports import QueryReport


class Action(StrEnum):
    """The next step for a driver."""

    NOTHING = "nothing"
    START = "start"
    STOP = "stop"
    FINISH = "finish"
    """The driver is no longer wanted, and is gone."""
    FAIL = "fail"
    """Restarts do not help: somebody must look into it."""


@dataclass(frozen=True)
class Limits:
    """How patient the watch is.

    Attributes:
        stall_after: a driver has stalled if for this long it reports nothing, or newer events arrive and its watermark
            does not move.
        most_restarts: the watch fails after more restarts than this ``within`` that time.
        within: see ``most_restarts``.
        first_pause: the pause before the first restart; it doubles with each further one.
    """

    stall_after: timedelta = timedelta(minutes=10)
    most_restarts: int = 5
    within: timedelta = timedelta(minutes=30)
    first_pause: timedelta = timedelta(seconds=5)

    def numbers(self) -> dict[str, float]:
        """The limits in a form that fits JSON, times in seconds; :meth:`of` is the inverse."""
        return {
            "stall_after_s": self.stall_after.total_seconds(),
            "most_restarts": self.most_restarts,
            "within_s": self.within.total_seconds(),
            "first_pause_s": self.first_pause.total_seconds(),
        }

    @staticmethod
    def of(numbers: Mapping[str, float]) -> "Limits":
        """The limits that :meth:`numbers` gave."""
        return Limits(
            stall_after=timedelta(seconds=numbers["stall_after_s"]),
            most_restarts=int(numbers["most_restarts"]),
            within=timedelta(seconds=numbers["within_s"]),
            first_pause=timedelta(seconds=numbers["first_pause_s"]),
        )


@dataclass(frozen=True)
class _Seen:
    """A query: its watermark, since when that should have moved, its rows and when more of them last arrived."""

    watermark: datetime | None
    due_since: datetime | None
    """None while the watermark is where it should be."""
    rows: int
    fed_at: datetime


@dataclass(frozen=True)
class Memory:
    """The state of the watch between two looks."""

    process_id: int | None = None
    alive_since: datetime | None = None
    restarts: tuple[datetime, ...] = ()
    start_at: datetime | None = None
    queries: dict[str, _Seen] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """A decision: what to do, why, and what to remember."""

    action: Action
    why: str
    memory: Memory


def decide(
    now: datetime, driver: Driver, reports: Sequence[QueryReport], memory: Memory, limits: Limits, *, is_wanted: bool
) -> Decision:
    """Decides what to do about ``driver`` at ``now``.

    Args:
        now: with a time zone.
        driver: as the launcher sees it.
        reports: the latest of each of its queries; those of an earlier process are ignored.
        memory: that of the previous decision; empty for the first.
        limits: how patient to be.
        is_wanted: whether it is to run.
    """
    if not is_wanted:
        return _wind_down(driver, memory)
    memory = _recall(now, driver, memory)
    recent = [moment for moment in memory.restarts if moment > now - limits.within]
    if len(recent) > limits.most_restarts:
        why = f"it was restarted {len(recent)} times within {limits.within}; the last time: {driver.detail}"
        return Decision(Action.FAIL, why, memory)
    if driver.state in (DriverState.STOPPED, DriverState.GIVEN_UP):
        return _restart(now, driver, recent, memory, limits)
    if driver.state in (DriverState.RETRYING, DriverState.STOPPING):
        action = Action.STOP if driver.state is DriverState.STOPPING else Action.NOTHING
        return Decision(action, f"it is {driver.state}", memory)
    own = [report for report in reports if report.process_id == driver.process_id]
    queries = {report.query: _see(now, report, memory.queries) for report in own}
    memory = replace(memory, start_at=None, queries=queries)
    if why := _stalled(now, driver, own, memory, limits):
        return Decision(Action.STOP, why, memory)
    return Decision(Action.NOTHING, "it makes progress", memory)


def _wind_down(driver: Driver, memory: Memory) -> Decision:
    if driver.state in (DriverState.STOPPED, DriverState.GIVEN_UP):
        return Decision(Action.FINISH, "it is no longer wanted, and has stopped", Memory())
    return Decision(Action.STOP, "it is no longer wanted", memory)


def _recall(now: datetime, driver: Driver, memory: Memory) -> Memory:
    """``memory`` with the process of ``driver``: a new process counts as a restart, whoever started it."""
    if driver.process_id in (None, memory.process_id):
        return memory
    restarts = memory.restarts if memory.process_id is None else (*memory.restarts, now)
    return replace(memory, process_id=driver.process_id, alive_since=now, restarts=restarts, queries={})


def _restart(now: datetime, driver: Driver, recent: Sequence[datetime], memory: Memory, limits: Limits) -> Decision:
    if memory == Memory():
        return Decision(Action.START, "it is wanted, and is not running", replace(memory, start_at=now))
    start_at = memory.start_at or now + limits.first_pause * 2 ** len(recent)
    if now < start_at:
        why = f"it is {driver.state}; the next start is at {start_at:%H:%M:%S} UTC"
        return Decision(Action.NOTHING, why, replace(memory, start_at=start_at))
    # Counted whether or not a process is ever seen: if this start fails at once, the next one waits longer.
    counted = replace(memory, start_at=None, process_id=None, restarts=(*memory.restarts, now))
    return Decision(Action.START, f"it is {driver.state}: {driver.detail}", counted)


def _see(now: datetime, report: QueryReport, seen: dict[str, _Seen]) -> _Seen:
    before, rows = seen.get(report.query), report.total_input_rows
    due_since = now if _must_move(report) else None
    if due_since and before and before.due_since and report.watermark == before.watermark:
        due_since = before.due_since
    fed_at = before.fed_at if before and rows == before.rows else now
    return _Seen(report.watermark, due_since, rows, fed_at)


def _must_move(report: QueryReport) -> bool:
    """Whether events have arrived that are new enough to move the watermark.

    After a drain, the watermark is ahead of live events; old events and repeats do not move it either.
    """
    if report.watermark is None or report.newest_event_time is None or report.watermark_delay_s is None:
        return False
    return report.newest_event_time > report.watermark + timedelta(seconds=report.watermark_delay_s)


def _stalled(now: datetime, driver: Driver, reports: Sequence[QueryReport], memory: Memory, limits: Limits) -> str:
    """Why a driver that is alive makes no progress; empty if it does."""
    reported = [report.updated_at for report in reports]
    last = max([*reported, memory.alive_since or driver.since or now])
    if now - last > limits.stall_after:
        return f"it has reported nothing since {last:%H:%M:%S} UTC"
    for query, seen in memory.queries.items():
        if seen.due_since is None or now - seen.due_since <= limits.stall_after:
            continue
        # A batch runs under the watermark that the previous batch left: without batches, it does not move.
        if seen.due_since < seen.fed_at and now - seen.fed_at < limits.stall_after:
            watermark = f"the watermark of {query} is stuck at {seen.watermark:%Y-%m-%d %H:%M:%S} UTC"
            return f"newer events arrive, but {watermark}"
    return ""
