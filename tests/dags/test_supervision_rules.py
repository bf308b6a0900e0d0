"""What to do about a driver: timelines of driver states and the expected actions."""

from datetime import UTC, datetime, timedelta

import pytest

from ad_dags.drivers.launchers import Driver, DriverState
from ad_dags.drivers.supervision.rules import Action, Decision, Life, Limits, decide
from spark_jobs.streams.desired_state import DesiredState, RunState, Watch

_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_LIMITS = Limits(
    silent_after=timedelta(minutes=10),
    most_restarts=3,
    recovered_after=timedelta(minutes=30),
    first_pause=timedelta(seconds=10),
)
_DEAD = (DriverState.STOPPED, DriverState.FAILED)


def _at(seconds: float) -> datetime:
    return _NOON + timedelta(seconds=seconds)


def _driver(state: DriverState = DriverState.RUNNING) -> Driver:
    return Driver("attribute", state, None if state in _DEAD else 1, None, "the reason")


_RUNNING, _FAILED, _STOPPED = _driver(), _driver(DriverState.FAILED), _driver(DriverState.STOPPED)


def _wanted(state: RunState = RunState.RUNNING, since: float = 0) -> DesiredState:
    return DesiredState(state=state, why="a person", since=_at(since))


class _Timeline:
    """The decisions about one driver over time."""

    def __init__(self) -> None:
        self.watch = Watch(name="a test", looked_at=_NOON)
        self.wanted: DesiredState | None = _wanted()

    def look(
        self, seconds: float, driver: Driver, *, heard: float | None = None, well: float | None = None
    ) -> Decision:
        """``heard``: when the driver last said that it is alive; ``well``: since when it has run well."""
        life = Life(None if heard is None else _at(heard), None if well is None else _at(well))
        found = decide(_at(seconds), driver, life, self.wanted, self.watch, _LIMITS)
        self.watch = found.watch
        return found

    def act(self, seconds: float, driver: Driver, *, heard: float | None = None, well: float | None = None) -> Action:
        return self.look(seconds, driver, heard=heard, well=well).action


def test_a_wanted_job_that_does_not_run_is_started_at_once() -> None:
    assert _Timeline().act(0, _STOPPED) is Action.START


def test_a_job_that_is_no_longer_wanted_is_stopped_and_then_the_watch_is_over() -> None:
    own = _Timeline()
    assert own.act(0, _RUNNING) is Action.NOTHING
    own.wanted = _wanted(RunState.STOPPED, 5)
    assert own.act(10, _RUNNING) is Action.STOP
    assert own.act(20, _driver(DriverState.STOPPING)) is Action.STOP
    assert own.act(30, _STOPPED) is Action.FINISH


def test_a_job_that_nobody_ever_wanted_is_left_alone() -> None:
    own = _Timeline()
    own.wanted = None
    assert own.act(0, _STOPPED) is Action.FINISH


def test_a_dead_driver_is_restarted_after_a_longer_pause_each_time() -> None:
    own = _Timeline()
    assert own.act(0, _STOPPED) is Action.START
    assert [own.act(at, _FAILED) for at in (10, 19, 20)] == [Action.NOTHING, Action.NOTHING, Action.START]
    assert own.act(25, _driver(DriverState.STARTING)) is Action.NOTHING
    assert [own.act(at, _FAILED) for at in (30, 49, 50)] == [Action.NOTHING, Action.NOTHING, Action.START]
    assert [own.act(at, _FAILED) for at in (60, 99, 100)] == [Action.NOTHING, Action.NOTHING, Action.START]


@pytest.mark.parametrize("lives_s", [0, 60, 1000, 3600], ids=lambda lives_s: f"lives-{lives_s}-s")
def test_a_job_that_never_recovers_has_failed_however_long_its_drivers_live(lives_s: int) -> None:
    """A batch that fails after an hour, again and again, is as hopeless as one that fails at once."""
    own, starts, now = _Timeline(), 0, 0
    for _ in range(1000):
        found = own.look(now, _FAILED)
        if found.action is Action.FAIL:
            break
        if found.action is Action.START:
            starts += 1
            for second in range(0, lives_s, 10):
                assert own.act(now + second, _RUNNING, heard=now + second) is Action.NOTHING
            now += lives_s
        now += 5
    assert found.action is Action.FAIL
    assert starts == 1 + _LIMITS.most_restarts
    assert "3 restarts in a row; the last time: the reason" in found.why


def test_a_driver_that_has_recovered_begins_a_new_row() -> None:
    own, now = _Timeline(), 0
    own.act(0, _STOPPED)
    for _ in range(20):
        now = next(second for second in range(now, now + 600, 5) if own.act(second, _FAILED) is Action.START)
        begun = now
        for second in range(0, 1801, 60):
            assert own.act(now + second, _RUNNING, heard=now + second, well=begun) is Action.NOTHING
        now += 1801


def test_a_failed_job_stays_as_it_is_until_somebody_starts_it() -> None:
    own = _Timeline()
    for second in range(0, 600, 5):
        found = own.look(second, _FAILED)
        if found.action is Action.FAIL:
            break
    own.wanted = _wanted(RunState.FAILED, 600)
    assert [own.act(at, _FAILED) for at in (610, 7000, 10**6)] == [Action.FAIL] * 3
    assert own.act(10**6, _RUNNING) is Action.STOP, "a driver that somebody started by hand"
    own.wanted = _wanted(RunState.RUNNING, 10**6)
    assert own.act(10**6 + 1, _FAILED) is Action.START
    assert own.watch.restarts == 0


@pytest.mark.parametrize(
    ("silent_s", "action"),
    [pytest.param(600, Action.NOTHING, id="at-the-limit"), pytest.param(601, Action.STOP, id="too-long")],
)
def test_a_driver_that_no_longer_says_that_it_is_alive_is_stopped(silent_s: float, action: Action) -> None:
    own = _Timeline()
    own.act(0, _STOPPED)
    assert own.act(100, _RUNNING, heard=100) is Action.NOTHING
    assert own.act(100 + silent_s, _RUNNING, heard=100) is action


def test_a_driver_that_never_said_so_is_stopped_after_the_same_time() -> None:
    own = _Timeline()
    own.act(0, _STOPPED)
    assert own.act(600, _RUNNING) is Action.NOTHING
    assert own.act(601, _RUNNING) is Action.STOP


def test_a_batch_may_take_as_long_as_it_likes() -> None:
    """It says that it is alive; whether its batch makes progress it sees better itself."""
    own = _Timeline()
    own.act(0, _STOPPED)
    for minute in range(24 * 60):
        assert own.act(minute * 60, _RUNNING, heard=minute * 60 - 10) is Action.NOTHING


def test_a_hung_driver_is_stopped_and_then_restarted() -> None:
    own = _Timeline()
    own.act(0, _STOPPED)
    assert own.act(601, _RUNNING) is Action.STOP
    assert own.act(605, _driver(DriverState.STOPPING)) is Action.STOP, "its launcher may have to kill it"
    assert own.act(620, _STOPPED) is Action.NOTHING
    assert own.act(630, _STOPPED) is Action.START


def test_limits_that_an_earlier_version_has_stored_are_read() -> None:
    stored = {"stall_after_s": 600.0, "most_restarts": 2, "within_s": 1800.0, "first_pause_s": 7.0}
    assert Limits.of(stored) == Limits(most_restarts=2, first_pause=timedelta(seconds=7))
    assert Limits.of(_LIMITS.numbers()) == _LIMITS
