"""Random weeks of a job: what is stopped stays stopped, what is wanted runs, what cannot run is reported once.

The second test puts faults into the rules: each is found.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from ad_dags.connection.lakes import LakeRef
from ad_dags.dags import reconcile_drivers
from ad_dags.drivers.operators import supervise as operators
from ad_dags.drivers.supervision import rules
from ad_dags.drivers.supervision import watch as watching
from ad_dags.drivers.supervision.rules import Action, Decision, Limits
from spark_jobs.streams.desired_state import DesiredState, RunState, Watch, set_desired
from spark_jobs.streams.reports import read_driver_report
from tests.dags.control_path import World

_SEEDS, _DAYS = int(os.environ.get("SCHEDULES", "100")), int(os.environ.get("SCHEDULE_DAYS", "10"))
_FOR_FAULTS = 100
_AT_ONCE = 50

Patch = Callable[[pytest.MonkeyPatch], Limits | None]


@pytest.mark.parametrize("first", range(0, _SEEDS, _AT_ONCE))
def test_weeks_of_faults_and_people_violate_nothing(first: int) -> None:
    starts = 0
    for seed in range(first, first + _AT_ONCE):
        with pytest.MonkeyPatch.context() as patch:
            world = World(seed, patch, _DAYS)
            assert world.live() == [], f"seed {seed}"
            starts += world.starts
    assert starts > 5 * _AT_ONCE, "too little has happened"


def _always_wants(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(operators, "read_desired", lambda *_: None)


def _never_wants(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(operators, "set_desired", lambda *_: None)


def _never_fails_for_good(patch: pytest.MonkeyPatch) -> None:
    def record(lake: Any, job: str, state: RunState, *rest: Any) -> DesiredState:
        return set_desired(lake, job, RunState.RUNNING if state is RunState.FAILED else state, *rest)

    patch.setattr(watching, "set_desired", record)


def _changes(name: str, change: Callable[..., Decision]) -> Patch:
    def patch(own: pytest.MonkeyPatch) -> None:
        real = getattr(rules, name)
        own.setattr(rules, name, lambda *arguments: change(real(*arguments), *arguments))

    return patch


def _uncounted(decision: Decision, *_: Any) -> Decision:
    return Decision(decision.action, decision.why, decision.watch.model_copy(update={"restarts": 0}))


def _given_up_at_once(decision: Decision, *_: Any) -> Decision:
    return decision if decision.action is not Action.START else Decision(Action.FINISH, "", decision.watch)


def _pauses_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DesiredState, "runs_at", lambda own, _now: own.state is RunState.RUNNING)


def _pauses_are_stops(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DesiredState, "is_paused", False)
    _pauses_never_end(patch)


def _forgets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(watching, "read_watch", lambda *_: None)


def _nobody_reconciles(patch: pytest.MonkeyPatch) -> None:
    def none(_lake: LakeRef, _limits: dict[str, float]) -> list[str]:
        return []

    patch.setattr(reconcile_drivers, "find_dags_to_trigger", none)


def _reconciles_what_has_failed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        DesiredState, "runs_at", lambda own, now: own.state is not RunState.STOPPED or (own.until or now) < now
    )


def _deaf(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(watching, "read_driver_report", lambda *_: None)


def _believes_old_reports(patch: pytest.MonkeyPatch) -> None:
    real = watching._life

    def life(lake: Any, driver: Any, watch: Watch) -> Any:
        own = read_driver_report(lake, driver.job)
        return rules.Life(own.updated_at, own.started_at) if own else real(lake, driver, watch)

    patch.setattr(watching, "_life", life)


def _limits(**changed: Any) -> Patch:
    return lambda _patch: Limits(**changed)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(_always_wants, id="every run wants the job"),
        pytest.param(_never_wants, id="no run wants the job"),
        pytest.param(_never_fails_for_good, id="a failed job is wanted"),
        pytest.param(_changes("_start", _uncounted), id="restarts are not counted"),
        pytest.param(_changes("_start", _given_up_at_once), id="nothing is started"),
        pytest.param(_pauses_never_end, id="pauses never end"),
        pytest.param(_pauses_are_stops, id="pauses are stops"),
        pytest.param(_forgets, id="the watch forgets"),
        pytest.param(_nobody_reconciles, id="nobody reconciles"),
        pytest.param(_reconciles_what_has_failed, id="what has failed is wanted"),
        pytest.param(_deaf, id="drivers are not heard"),
        pytest.param(_believes_old_reports, id="reports of an earlier process count"),
        pytest.param(_limits(silent_after=timedelta(days=400)), id="a driver that hangs is left alone"),
        pytest.param(_limits(silent_after=timedelta(seconds=5)), id="a driver is stopped for a short silence"),
        pytest.param(_limits(first_pause=timedelta(days=1)), id="pauses take too long"),
        pytest.param(_limits(recovered_after=timedelta()), id="a driver recovers at once"),
    ],
)
def test_the_model_finds_a_fault_in_the_rules(fault: Patch) -> None:
    for seed in range(_FOR_FAULTS):
        with pytest.MonkeyPatch.context() as patch:
            limits = fault(patch)
            if World(seed, patch, limits=limits or Limits()).live():
                return
    pytest.fail(f"{_FOR_FAULTS} schedules have not shown it")
