"""When silence is worth a heartbeat, on two clocks that the tests set."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from spark_jobs.streams.silence import Moment, Passage, QueryView, Silence

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_IDLE, _BUSY = (
    QueryView(batch=0, is_active=active, has_data=active, is_behind=False, interval_s=1.0) for active in (False, True)
)


def _view(batch: int, *, is_behind: bool = False) -> QueryView:
    """A query in the middle of a batch."""
    return QueryView(batch=batch, is_active=True, has_data=True, is_behind=is_behind, interval_s=1.0)


@dataclass
class _Job:
    """A job of two queries that is looked at every half second; its heartbeats, in seconds from noon."""

    silence: Silence = field(default_factory=lambda: Silence(timedelta(seconds=60)))
    second: float = -0.5
    wall: datetime = _NOON - timedelta(seconds=0.5)
    beats: list[float] = field(default_factory=list)
    restarts: int = 0

    def look(self, *views: QueryView, steady_s: float = 0.5, wall_s: float = 0.5) -> None:
        """Looks once, so many seconds after the last time."""
        self.second += steady_s
        self.wall += timedelta(seconds=wall_s)
        self.restarts += self.silence.observe(self.now, views or (_IDLE, _IDLE))
        if self.silence.is_due:
            self.beats.append(self.silence.length.total_seconds())
            self.silence.postpone()

    def look_until(self, second: float, *views: QueryView) -> None:
        """Looks until ``second``."""
        while self.second < second:
            self.look(*views)

    @property
    def now(self) -> Moment:
        return Moment(self.wall, self.second)


def test_a_heartbeat_is_due_each_time_the_silence_has_grown_by_so_much() -> None:
    job = _Job()
    job.look_until(190)
    assert len(job.beats) == 3
    for beat, due in zip(job.beats, (60, 120, 180), strict=True):
        assert due <= beat <= due + 5, "as soon as both queries have looked again"


def test_an_event_that_moves_time_restarts_the_silence() -> None:
    job = _Job()
    job.look_until(50)
    job.silence.restart(job.now)
    job.look_until(109)
    assert job.beats == []
    job.look_until(120)
    assert len(job.beats) == 1
    assert job.beats[0] < 70


def test_silence_of_no_length_asks_for_none() -> None:
    job = _Job(Silence(timedelta()))
    job.look_until(3600)
    assert job.beats == []


@pytest.mark.parametrize(
    ("steady_s", "wall_s"),
    [
        pytest.param(0.5, 8 * 3600, id="machine-slept"),
        pytest.param(8 * 3600, 8 * 3600, id="process-was-frozen"),
        pytest.param(0.5, 3600, id="clock-set-forward"),
        pytest.param(0.5, -3600, id="clock-set-back"),
    ],
)
def test_ticks_that_lie_far_apart_restart_the_silence(steady_s: float, wall_s: float) -> None:
    job = _Job()
    job.look_until(59)
    job.look(steady_s=steady_s, wall_s=wall_s)
    assert job.restarts == 2
    assert job.beats == []
    begun = job.second
    job.look_until(begun + 59)
    assert job.beats == []
    job.look_until(begun + 70)
    assert len(job.beats) == 1
    assert job.beats[0] < 70


@pytest.mark.parametrize("step_s", [pytest.param(40, id="forward"), pytest.param(-40, id="back")])
def test_a_small_step_of_the_wall_clock_is_neither_silence_nor_traffic(step_s: float) -> None:
    job = _Job()
    job.look_until(30)
    job.look(wall_s=0.5 + step_s)
    job.look_until(59)
    assert job.beats == []
    job.look_until(70)
    assert len(job.beats) == 1
    assert job.beats[0] < 70


def test_a_batch_that_takes_long_is_no_silence() -> None:
    job = _Job()
    job.look_until(600, _BUSY, _IDLE)
    job.look_until(1200, _IDLE, _BUSY)
    assert job.beats == []
    assert job.silence.length == timedelta()


def test_a_source_that_does_not_answer_is_not_silent() -> None:
    job = _Job()
    hanging = QueryView(batch=3, is_active=True, has_data=False, is_behind=False, interval_s=1.0)
    job.look_until(600, hanging, _IDLE)
    assert job.beats == []


def test_a_query_that_seldom_looks_is_waited_for() -> None:
    job = _Job()
    seldom = QueryView(batch=3, is_active=False, has_data=False, is_behind=False, interval_s=300.0)
    job.look_until(290, seldom, _IDLE)
    assert job.beats == []


def test_batches_that_bring_no_event_are_silence_up_to_the_last_that_is_through() -> None:
    job, batch = _Job(), 0
    while job.second < 200:
        # A batch of ingest and one of deduplicate, each 2 s, one after the other.
        job.look_until(job.second + 2, _view(batch), _IDLE)
        job.look_until(job.second + 2, _view(batch + 1), _view(batch))
        batch += 1
    assert len(job.beats) == 3
    assert job.silence.length < timedelta(seconds=200 - 2), "what arrived during the last batches is not through"
    assert job.silence.through.wall <= job.now.wall - timedelta(seconds=2)


def test_a_backlog_is_no_silence() -> None:
    job = _Job()
    for batch in range(300):
        job.look_until(batch * 2, _view(batch, is_behind=True), _view(batch))
    assert job.beats == []


def test_the_first_batch_of_a_process_may_have_started_before_the_mark() -> None:
    passage = Passage()
    assert passage.observe(Moment(_NOON, 0), [_view(-1)]) is None
    assert passage.observe(Moment(_NOON, 1), [_view(57)]) is None
    assert passage.observe(Moment(_NOON, 2), [_view(58)]) == Moment(_NOON, 0)


def test_a_batch_that_started_before_the_mark_does_not_count() -> None:
    passage, mark = Passage(), Moment(_NOON, 0)
    assert passage.observe(mark, [_view(7), _view(4)]) is None
    assert passage.observe(Moment(_NOON, 1), [_view(8), _view(4)]) is None, "8 may have started before the mark"
    assert passage.observe(Moment(_NOON, 2), [_view(9), _view(5)]) is None, "9 is in bronze; deduplicate has to take it"
    assert passage.observe(Moment(_NOON, 3), [_view(12), _view(6)]) is None, "6 may have started before 9 was in bronze"
    assert passage.observe(Moment(_NOON, 4), [_view(12), _view(7)]) == mark
