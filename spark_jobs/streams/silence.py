"""How long no event has moved event time: pure rules; clocks and states are passed in."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

_LONGEST_GAP_S = 60.0
"""The longest time between two ticks, by either clock, that can count as silence."""


@dataclass(frozen=True)
class Moment:
    """One instant on two clocks."""

    wall: datetime
    """UTC. Somebody may set this clock, and it jumps when the machine wakes up."""
    steady_s: float
    """Seconds of a clock that nobody sets."""

    @staticmethod
    def now() -> "Moment":
        """The present."""
        return Moment(datetime.now(UTC), time.monotonic())


@dataclass(frozen=True)
class QueryView:
    """The state of a streaming query at a tick."""

    batch: int
    """Id of its last finished batch; -1 before the first."""
    is_active: bool
    """Whether a trigger is running: it looks for data, or processes some."""
    has_data: bool
    """Whether its last trigger found new data."""
    is_behind: bool
    """Whether its last batch left data unread."""
    interval_s: float
    """How often it looks for new data."""


@dataclass
class Passage:
    """The moment up to which all arrived input has passed through a chain of queries.

    A moment is marked. Then each query in turn has to show that it has read everything that existed at the mark: it
    finishes a batch that started later and leaves nothing unread, or it looks again and finds nothing.

    ::

        ingest        ─[ batch 7 ]──[ batch 8 ]──[ batch 9 ]──
        deduplicate   ────[ batch 5 ]───[ batch 6 ]───[ batch 7 ]──
                        ▲ mark      7 started before the mark, 8 after it
                                              ▲ 8 is done    ▲ 5 and 6 may have started too early, 7 did not: through
    """

    _mark: Moment | None = None
    _stage: int = 0
    _first_batch: int = -1
    _idle_since_s: float | None = None

    def observe(self, now: Moment, views: Sequence[QueryView]) -> Moment | None:
        """Observes the queries at ``now``. Returns the mark if everything is through, and sets the next one."""
        if self._mark is None:
            self._mark = now
            self._enter(0, views)
        while self._stage < len(views):
            if not self._is_through(now, views[self._stage]):
                return None
            self._enter(self._stage + 1, views)
        passed, self._mark = self._mark, None
        return passed

    def _enter(self, stage: int, views: Sequence[QueryView]) -> None:
        self._stage, self._idle_since_s = stage, None
        self._first_batch = views[stage].batch if stage < len(views) else -1

    def _is_through(self, now: Moment, view: QueryView) -> bool:
        if self._first_batch < 0 <= view.batch:  # the first batch of this process, whatever its number
            self._first_batch = view.batch - 1
        # The next batch may have started before this stage did; the one after it has not.
        if view.batch >= self._first_batch + 2 and not view.is_behind:
            return True
        if view.has_data:
            self._idle_since_s = None
        if view.has_data or view.is_active:  # a source that does not answer keeps its query active
            return False
        if self._idle_since_s is None:
            self._idle_since_s = now.steady_s
        return now.steady_s - self._idle_since_s >= view.interval_s


@dataclass
class Silence:
    """How long no event has moved event time, and whether a heartbeat is due: each ``idle_after`` (0: never).

    It grows only while the queries have taken everything that has arrived: neither a long batch, nor a backlog, nor
    a source that does not answer is silent. Broken or repeated records do not end it.
    """

    idle_after: timedelta
    _last: Moment | None = None
    _since_s: float = 0.0
    _through: Moment | None = None
    _due_at: timedelta = timedelta()
    _passage: Passage = field(default_factory=Passage)

    def observe(self, now: Moment, views: Sequence[QueryView]) -> bool:
        """Observes the queries at ``now``; to be called every second or so.

        Returns:
            Whether silence restarts: at the first call, and when the machine slept or a clock was set since the last.
        """
        last, self._last = self._last, now
        if last is None or _is_gap(last, now):
            self.restart(now)
            return True
        self._through = self._passage.observe(now, views) or self._through
        return False

    def restart(self, now: Moment) -> None:
        """An event has moved time, as seen at ``now``."""
        self._since_s, self._through, self._due_at, self._passage = now.steady_s, now, self.idle_after, Passage()

    @property
    def through(self) -> Moment:
        """The time up to which all arrived input has been processed."""
        assert self._through is not None  # noqa: S101 a mistake of the caller
        return self._through

    @property
    def length(self) -> timedelta:
        """From the last event that moved time to :attr:`through`, in whole microseconds."""
        return timedelta(seconds=self.through.steady_s - self._since_s)

    @property
    def is_due(self) -> bool:
        """Whether a heartbeat is due."""
        return bool(self.idle_after) and self.length >= self._due_at

    def postpone(self) -> None:
        """The next heartbeat is due when silence has grown by ``idle_after``."""
        self._due_at = self.length + self.idle_after


def _is_gap(last: Moment, now: Moment) -> bool:
    steady_s = now.steady_s - last.steady_s
    wall_s = (now.wall - last.wall).total_seconds()
    return steady_s > _LONGEST_GAP_S or abs(wall_s - steady_s) > _LONGEST_GAP_S
