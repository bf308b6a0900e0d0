"""What to do about a driver, from how it looks: rules alone, with the clock and all that is known given to them.

::

    wanted  driver     what is done
    ─────── ────────── ──────────────────────────────────────────────────────────────
    no      alive      it is drained
    no      gone       the watch is over
    yes     gone       it is started, later each time; after too many times the watch fails
    yes     alive      nothing while it makes progress; one that makes none is drained, and then gone
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from ad_dags.launchers import Driver, DriverState
from spark_jobs.contracts.progress import QueryReport


class Action(StrEnum):
    """What to do now."""

    NOTHING = "nothing"
    START = "start"
    DRAIN = "drain"
    FINISH = "finish"
    """It is not wanted any more, and is gone."""
    FAIL = "fail"
    """It cannot be helped by starting it again: people must look."""


@dataclass(frozen=True)
class Limits:
    """How patient the watch is.

    Attributes:
        stall_after: without a sign, or with newer events coming in under a watermark that stands still, a driver is
            stalled.
        most_restarts: so many restarts ``within`` are one too many.
        within: see ``most_restarts``.
        first_pause: before the first restart; each further one waits twice as long.
    """

    stall_after: timedelta = timedelta(minutes=10)
    most_restarts: int = 5
    within: timedelta = timedelta(minutes=30)
    first_pause: timedelta = timedelta(seconds=5)

    def numbers(self) -> dict[str, float]:
        """The limits as JSON can carry them, times in seconds; :meth:`of` takes them back."""
        return {
            "stall_after_s": self.stall_after.total_seconds(),
            "most_restarts": self.most_restarts,
            "within_s": self.within.total_seconds(),
            "first_pause_s": self.first_pause.total_seconds(),
        }

    @staticmethod
    def of(numbers: Mapping[str, float]) -> "Limits":
        """The limits that ``numbers`` say."""
        return Limits(
            stall_after=timedelta(seconds=numbers["stall_after_s"]),
            most_restarts=int(numbers["most_restarts"]),
            within=timedelta(seconds=numbers["within_s"]),
            first_pause=timedelta(seconds=numbers["first_pause_s"]),
        )


@dataclass(frozen=True)
class _Seen:
    """A query: its watermark, since when that should have moved, its rows and when more of them last came."""

    watermark: datetime | None
    due_since: datetime | None
    """None while the watermark lies where it belongs."""
    rows: int
    fed_at: datetime


@dataclass(frozen=True)
class Memory:
    """What the watch remembers from one look to the next."""

    process_id: int | None = None
    alive_since: datetime | None = None
    restarts: tuple[datetime, ...] = ()
    start_at: datetime | None = None
    queries: dict[str, _Seen] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgement:
    """What to do, why, and what to remember."""

    action: Action
    why: str
    memory: Memory


def judge(
    now: datetime, driver: Driver, reports: Sequence[QueryReport], memory: Memory, limits: Limits, *, is_wanted: bool
) -> Judgement:
    """What to do about ``driver`` at ``now``.

    Args:
        now: with zone.
        driver: as the launcher sees it.
        reports: the latest of its queries; those of an earlier process are passed over.
        memory: that of the judgement before; empty for the first.
        limits: how patient to be.
        is_wanted: whether it is to run.
    """
    if not is_wanted:
        return _let_go(driver, memory)
    memory = _recall(now, driver, memory)
    recent = [moment for moment in memory.restarts if moment > now - limits.within]
    if len(recent) > limits.most_restarts:
        why = f"it was started again {len(recent)} times within {limits.within}; the last time: {driver.told}"
        return Judgement(Action.FAIL, why, memory)
    if driver.state in (DriverState.STOPPED, DriverState.GIVEN_UP):
        return _start_in_time(now, driver, recent, memory, limits)
    if driver.state in (DriverState.RETRYING, DriverState.DRAINING):
        return Judgement(Action.NOTHING, f"it is {driver.state}", memory)
    own = [report for report in reports if report.process_id == driver.process_id]
    queries = {report.query: _see(now, report, memory.queries) for report in own}
    memory = replace(memory, start_at=None, queries=queries)
    if why := _stalled(now, driver, own, memory, limits):
        return Judgement(Action.DRAIN, why, memory)
    return Judgement(Action.NOTHING, "it makes progress", memory)


def _let_go(driver: Driver, memory: Memory) -> Judgement:
    if driver.state in (DriverState.STOPPED, DriverState.GIVEN_UP):
        return Judgement(Action.FINISH, "it is not wanted, and has stopped", Memory())
    action = Action.NOTHING if driver.state is DriverState.DRAINING else Action.DRAIN
    return Judgement(action, "it is not wanted", memory)


def _recall(now: datetime, driver: Driver, memory: Memory) -> Memory:
    """``memory`` with the process of ``driver``: another one than before is a restart, whoever made it."""
    if driver.process_id in (None, memory.process_id):
        return memory
    restarts = memory.restarts if memory.process_id is None else (*memory.restarts, now)
    return replace(memory, process_id=driver.process_id, alive_since=now, restarts=restarts, queries={})


def _start_in_time(
    now: datetime, driver: Driver, recent: Sequence[datetime], memory: Memory, limits: Limits
) -> Judgement:
    if memory == Memory():
        return Judgement(Action.START, "it is wanted, and does not run", replace(memory, start_at=now))
    start_at = memory.start_at or now + limits.first_pause * 2 ** len(recent)
    if now < start_at:
        why = f"it is {driver.state}, and is started at {start_at:%H:%M:%S}"
        return Judgement(Action.NOTHING, why, replace(memory, start_at=start_at))
    # Should this start come to nothing, the next one waits longer: it counts, whether or not a process is seen.
    counted = replace(memory, start_at=None, process_id=None, restarts=(*memory.restarts, now))
    return Judgement(Action.START, f"it is {driver.state}: {driver.told}", counted)


def _see(now: datetime, report: QueryReport, seen: dict[str, _Seen]) -> _Seen:
    before, rows = seen.get(report.query), report.total_input_rows
    due_since = now if _must_move(report) else None
    if due_since and before and before.due_since and report.watermark == before.watermark:
        due_since = before.due_since
    fed_at = before.fed_at if before and rows == before.rows else now
    return _Seen(report.watermark, due_since, rows, fed_at)


def _must_move(report: QueryReport) -> bool:
    """Whether events came that are newer than what the watermark stands for.

    After a drain it stands for a time that live events have yet to reach; old events and repeats do not move it either.
    """
    if report.watermark is None or report.newest_event_time is None or report.watermark_delay_s is None:
        return False
    return report.newest_event_time > report.watermark + timedelta(seconds=report.watermark_delay_s)


def _stalled(now: datetime, driver: Driver, reports: Sequence[QueryReport], memory: Memory, limits: Limits) -> str:
    """Why a driver that is alive makes no progress; empty if it does."""
    signs = [report.updated_at for report in reports]
    last = max([*signs, memory.alive_since or driver.since or now])
    if now - last > limits.stall_after:
        return f"it has given no sign since {last:%H:%M:%S} UTC"
    for query, seen in memory.queries.items():
        if seen.due_since is None or now - seen.due_since <= limits.stall_after:
            continue
        # A batch runs under the watermark that the batch before it left: where no batch runs, it may stand still.
        if seen.due_since < seen.fed_at and now - seen.fed_at < limits.stall_after:
            watermark = f"the watermark of {query} stands still at {seen.watermark:%Y-%m-%d %H:%M:%S} UTC"
            return f"newer events come in and {watermark}"
    return ""
