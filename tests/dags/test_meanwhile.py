"""What happens meanwhile: each line of the table in docs/airflow.md is shown by a test."""

from datetime import timedelta
from pathlib import Path

import pytest

from spark_jobs.streams.desired_state import RunState, read_desired
from tests.airflow import test_kills
from tests.dags import test_deploy, test_maintenance
from tests.dags.control_path import JOB, World

_PAGE = Path(__file__).parents[2] / "docs" / "airflow.md"
_HEADING = "| meanwhile |"
_LONG = timedelta(hours=3)
_SOON = timedelta(minutes=10)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A job that has been running for an hour."""
    world = World(0, monkeypatch)
    world.act("trigger")
    assert world.pass_time(timedelta(hours=1)) == []
    assert world.process
    return world


def test_queued_runs_of_a_stopped_job_end_at_once_and_a_later_one_starts_it(world: World) -> None:
    for _ in range(3):
        world.act("trigger")
    assert world.pass_time(timedelta(minutes=1)) == []
    world.act("stop")
    assert world.pass_time(_SOON) == []
    assert (world.process, world.runs, world.starts) == (None, [], 1)
    world.act("trigger")
    assert world.pass_time(_SOON) == []
    assert world.process


def test_the_reconciler_restarts_a_driver_while_the_triggerer_is_away(world: World) -> None:
    world.leave("triggerer", _LONG)
    world.act("mark")  # nobody watches now
    world.act("deploy")
    world.act("reboot")
    assert world.pass_time(_SOON) == []
    assert world.process
    assert world.pass_time(_LONG - _SOON - timedelta(minutes=1)) == []
    assert len([run for run in world.runs if run.state == "queued"]) <= 1


def test_the_triggerer_watches_on_while_the_scheduler_is_away(world: World) -> None:
    world.leave("scheduler", _LONG)
    world.act("reboot")
    assert world.pass_time(_SOON) == []
    assert world.process


@pytest.mark.parametrize("first_back", ["triggerer", "scheduler"])
def test_a_driver_that_ends_while_both_are_away_is_restarted_by_the_first_that_is_back(
    world: World, first_back: str
) -> None:
    for part in ("triggerer", "scheduler"):
        world.leave(part, timedelta(hours=1) if part == first_back else _LONG)
    world.act("reboot")
    assert world.pass_time(timedelta(minutes=59)) == []
    assert world.process is None
    assert world.pass_time(_SOON) == []
    assert world.process


def test_restarts_are_counted_on_when_the_triggerer_is_restarted(world: World) -> None:
    world.kind = "early"
    world.act("reboot")
    for _ in range(20):
        world.leave("triggerer", timedelta(seconds=30))
        assert world.pass_time(timedelta(minutes=2)) == []
    wanted = read_desired(world.lake, JOB)
    assert wanted
    assert wanted.state is RunState.FAILED
    assert (world.failed_runs, world.starts) == (1, 1 + world.limits.most_restarts)


def test_a_deployment_needs_no_triggerer(world: World) -> None:
    world.act("stop")
    assert world.pass_time(_SOON) == []
    world.leave("triggerer", _LONG)
    world.act("deploy")
    assert world.process
    world.act("reboot")
    assert world.pass_time(_SOON) == []
    assert world.process


_SHOWN_BY = {
    "a job is stopped, and runs of `supervise_<job>` are queued": (
        test_queued_runs_of_a_stopped_job_end_at_once_and_a_later_one_starts_it
    ),
    "the triggerer is away": test_the_reconciler_restarts_a_driver_while_the_triggerer_is_away,
    "the scheduler is away": test_the_triggerer_watches_on_while_the_scheduler_is_away,
    "both are away": test_a_driver_that_ends_while_both_are_away_is_restarted_by_the_first_that_is_back,
    "the triggerer is restarted": test_restarts_are_counted_on_when_the_triggerer_is_restarted,
    "another process of Airflow is restarted": (
        test_kills.test_whatever_is_killed_there_is_one_driver_and_no_row_is_lost
    ),
    "something is deployed while the triggerer is away": test_a_deployment_needs_no_triggerer,
    "something is deployed while another deployment is at work": (
        test_deploy.test_a_deployment_waits_until_a_pause_is_over
    ),
    "something is deployed while tables are maintained": test_maintenance.test_tables_are_maintained_while_all_jobs_run,
    "the first batch of a release takes long, as after a reset": (
        test_deploy.test_a_first_batch_may_take_long_as_long_as_its_tasks_end
    ),
    "a job that has failed is deployed": test_deploy.test_a_deployment_starts_a_job_that_has_failed,
}
"""By line of the table, the test that shows it."""


def test_each_line_of_the_table_has_its_test() -> None:
    _, _, table = _PAGE.read_text().partition(_HEADING)
    rows = table.partition("\n\n")[0].splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == list(_SHOWN_BY)
