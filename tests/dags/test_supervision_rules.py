"""What to do about a driver: timelines of driver states and the expected actions."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from ad_dags.drivers.launchers import Driver, DriverState
from ad_dags.drivers.supervision.rules import Action, Decision, Limits, Memory, decide
from spark_jobs.streams.reports import QueryReport

_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_LIMITS = Limits(
    stall_after=timedelta(minutes=10),
    most_restarts=3,
    within=timedelta(minutes=30),
    first_pause=timedelta(seconds=10),
)
_DELAY_S = 3600.0
_DEAD = (DriverState.STOPPED, DriverState.GIVEN_UP)


def _at(seconds: float) -> datetime:
    return _NOON + timedelta(seconds=seconds)


def _driver(state: DriverState = DriverState.RUNNING, pid: int | None = 1) -> Driver:
    return Driver("attribute", state, None if state in _DEAD else pid, None, "the reason")


def _report(
    updated: float,
    *,
    query: str = "attribute",
    pid: int = 1,
    rows: int = 0,
    mark: float | None = None,
    newest: float | None = None,
) -> QueryReport:
    return QueryReport(
        job="attribute",
        query=query,
        version="1",
        process_id=pid,
        started_at=_NOON,
        updated_at=_at(updated),
        total_input_rows=rows,
        watermark=None if mark is None else _at(mark),
        watermark_delay_s=_DELAY_S,
        newest_event_time=None if newest is None else _at(newest),
    )


class _Watch:
    """The decisions of one watch over time."""

    def __init__(self) -> None:
        self.memory = Memory()

    def look(
        self, seconds: float, driver: Driver, reports: Sequence[QueryReport] = (), *, is_wanted: bool = True
    ) -> Decision:
        found = decide(_at(seconds), driver, reports, self.memory, _LIMITS, is_wanted=is_wanted)
        self.memory = found.memory
        return found

    def act(self, seconds: float, driver: Driver, *reports: QueryReport, is_wanted: bool = True) -> Action:
        return self.look(seconds, driver, reports, is_wanted=is_wanted).action


def test_a_wanted_job_that_does_not_run_is_started_at_once() -> None:
    assert _Watch().act(0, _driver(DriverState.STOPPED)) is Action.START


def test_a_job_that_is_no_longer_wanted_is_stopped_and_then_the_watch_is_over() -> None:
    watch = _Watch()
    assert watch.act(0, _driver(), is_wanted=True) is Action.NOTHING
    assert watch.act(10, _driver(), is_wanted=False) is Action.STOP
    assert watch.act(20, _driver(DriverState.STOPPING), is_wanted=False) is Action.STOP
    assert watch.act(30, _driver(DriverState.STOPPED), is_wanted=False) is Action.FINISH


def test_a_job_that_is_no_longer_wanted_is_stopped_even_between_two_retries() -> None:
    assert _Watch().act(0, _driver(DriverState.RETRYING, pid=None), is_wanted=False) is Action.STOP


def test_a_dead_driver_is_restarted_after_a_longer_pause_each_time() -> None:
    watch = _Watch()
    watch.act(0, _driver(pid=1))
    assert watch.act(10, _driver(DriverState.GIVEN_UP)) is Action.NOTHING
    assert watch.act(19, _driver(DriverState.GIVEN_UP)) is Action.NOTHING
    assert watch.act(20, _driver(DriverState.GIVEN_UP)) is Action.START
    assert watch.act(25, _driver(DriverState.STARTING, pid=2)) is Action.NOTHING
    assert watch.act(30, _driver(DriverState.GIVEN_UP)) is Action.NOTHING
    assert watch.act(49, _driver(DriverState.GIVEN_UP)) is Action.NOTHING
    assert watch.act(50, _driver(DriverState.GIVEN_UP)) is Action.START


def test_too_many_restarts_fail_the_watch_whoever_caused_them() -> None:
    watch = _Watch()
    for pid in range(1, 5):  # the first process and three restarts, the most allowed
        assert watch.act(pid * 60, _driver(pid=pid)) is Action.NOTHING
    found = watch.look(300, _driver(pid=5))
    assert found.action is Action.FAIL
    assert "restarted 4 times" in found.why
    assert "the reason" in found.why


def test_starts_that_fail_at_once_count() -> None:
    watch, actions = _Watch(), []
    for seconds in range(0, 600, 5):
        actions.append(watch.act(seconds, _driver(DriverState.GIVEN_UP)))
        if actions[-1] is Action.FAIL:
            break
    assert actions[-1] is Action.FAIL
    assert actions.count(Action.START) == 1 + 4


def test_restarts_from_long_ago_do_not_count() -> None:
    watch = _Watch()
    for pid in range(1, 20):
        assert watch.act(pid * 1000, _driver(pid=pid)) is Action.NOTHING


@pytest.mark.parametrize(
    ("silent_s", "action"),
    [pytest.param(600, Action.NOTHING, id="at-the-limit"), pytest.param(601, Action.STOP, id="too-long")],
)
def test_a_driver_that_reports_nothing_is_stopped(silent_s: float, action: Action) -> None:
    watch = _Watch()
    watch.act(0, _driver())
    report = _report(100)
    assert watch.act(100, _driver(), report) is Action.NOTHING
    assert watch.act(100 + silent_s, _driver(), report) is action


def test_a_driver_that_never_reported_is_stopped_after_the_same_time() -> None:
    watch = _Watch()
    watch.act(0, _driver())
    assert watch.act(600, _driver()) is Action.NOTHING
    assert watch.act(601, _driver()) is Action.STOP


def test_reports_of_an_earlier_process_do_not_count() -> None:
    watch = _Watch()
    watch.act(0, _driver(pid=2), _report(0, pid=1))
    assert watch.act(601, _driver(pid=2), _report(601, pid=1)) is Action.STOP


def test_a_watermark_that_does_not_move_while_newer_events_arrive_is_a_stall() -> None:
    watch, found = _Watch(), None
    for minute in range(13):
        report = _report(minute * 60, rows=100 * minute, mark=-60 - _DELAY_S, newest=minute * 60)
        found = watch.look(minute * 60, _driver(), [report])
        assert (found.action is Action.STOP) == (minute * 60 > 600)
    assert found
    assert "the watermark of attribute is stuck at 2026-01-01 10:59:00" in found.why


@pytest.mark.parametrize(
    ("mark", "newest"),
    [
        pytest.param(4 * 3600 - _DELAY_S, 0, id="live-events-after-a-drain"),
        pytest.param(-60 - _DELAY_S, -120, id="old-events-only"),
        pytest.param(-60 - _DELAY_S, None, id="broken-records-only"),
    ],
)
def test_a_watermark_stands_still_until_newer_events_come(mark: float, newest: float | None) -> None:
    watch = _Watch()
    for minute in range(60):
        moving = None if newest is None else newest + (minute * 60 if newest == 0 else 0)
        report = _report(minute * 60, rows=100 * minute, mark=mark, newest=moving)
        assert watch.act(minute * 60, _driver(), report) is Action.NOTHING, minute


def test_a_watermark_may_stand_still_while_nothing_arrives() -> None:
    watch = _Watch()
    watch.act(0, _driver(), _report(0, rows=100, mark=-60 - _DELAY_S, newest=-60))
    watch.act(60, _driver(), _report(60, rows=101, mark=-60 - _DELAY_S, newest=50))
    for minute in range(2, 60):
        report = _report(minute * 60, rows=101, mark=-60 - _DELAY_S, newest=50)
        assert watch.act(minute * 60, _driver(), report) is Action.NOTHING, minute


def test_the_first_batch_after_a_long_pause_is_no_stall() -> None:
    watch = _Watch()
    watch.act(0, _driver(), _report(0, rows=100, mark=-60 - _DELAY_S, newest=0))
    for minute in range(1, 60):
        watch.act(minute * 60, _driver(), _report(minute * 60, rows=100, mark=-60 - _DELAY_S, newest=0))
    report = _report(3600, rows=101, mark=-_DELAY_S, newest=3600)
    assert watch.act(3600, _driver(), report) is Action.NOTHING


def test_one_query_that_stalls_is_enough() -> None:
    watch, action = _Watch(), Action.NOTHING
    for minute in range(13):
        now = minute * 60
        good = _report(now, rows=100 * minute, mark=now - _DELAY_S, newest=now)
        bad = _report(now, query="sessionize", rows=100 * minute, mark=-_DELAY_S, newest=now)
        action = watch.act(now, _driver(), good, bad)
    assert action is Action.STOP


def test_a_stalled_driver_is_stopped_and_then_restarted() -> None:
    watch = _Watch()
    watch.act(0, _driver(pid=1))
    assert watch.act(601, _driver(pid=1)) is Action.STOP
    assert watch.act(605, _driver(DriverState.STOPPING, pid=1)) is Action.STOP, "its launcher may have to kill it"
    assert watch.act(620, _driver(DriverState.STOPPED)) is Action.NOTHING
    assert watch.act(630, _driver(DriverState.STOPPED)) is Action.START
