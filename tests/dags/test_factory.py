"""Several lakes in one Airflow: each with DAGs, assets and a place of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG

from ad_dags.connection.lake_connection import connect
from ad_dags.connection.lakes import LakeRef, lakes_here
from ad_dags.dags.close_days import all_complete, day_assets
from ad_dags.dags.validate_tables import validated_assets, validated_gold
from ad_dags.drivers.operators.supervise import SuperviseDriverOperator
from ad_dags.factory import DAG_NAMES, adloom_dags
from spark_jobs.errors import SettingsError
from spark_jobs.queries.registry import QUERIES_OF_JOB

_DAGS = Path(__file__).parents[2] / "dags"
_EU, _US = LakeRef("adloom_eu", "eu_"), LakeRef("adloom_us", "us_")


@pytest.fixture(scope="module")
def two_lakes() -> dict[str, DAG]:
    with pytest.MonkeyPatch.context() as here:
        here.setenv("ADLOOM_LAKES", "eu_=adloom_eu, us_=adloom_us,")
        bag = DagBag(_DAGS)
    assert not bag.import_errors, bag.import_errors
    return bag.dags


def _lakes_of(value: Any) -> Iterator[LakeRef]:
    """Every lake in the arguments of a task."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, LakeRef):
            yield one


def test_each_lake_has_all_dags_under_its_prefix(two_lakes: dict[str, DAG]) -> None:
    assert sorted(two_lakes) == sorted(f"{prefix}{name}" for prefix in ("eu_", "us_") for name in DAG_NAMES)


def test_every_task_works_on_the_lake_of_its_dag(two_lakes: dict[str, DAG]) -> None:
    for name, dag in two_lakes.items():
        own = _EU if name.startswith("eu_") else _US
        for task in dag.tasks:
            if isinstance(task, SuperviseDriverOperator):
                assert task.lake == own
            elif task.task_id != "supervise":  # of Airflow: it triggers the DAGs that a task before it names
                assert [*_lakes_of(getattr(task, "op_args", ()))] == [own], f"{name}.{task.task_id}"


def test_the_trigger_of_a_lake_watches_that_lake(two_lakes: dict[str, DAG]) -> None:
    schedule: Any = two_lakes["eu_validate_tables"].schedule
    (watched,) = schedule.asset_condition.objects
    assert watched.name == "eu_adloom_gold"
    assert watched.watchers[0].trigger.serialize()[1]["connection"] == "adloom_eu"


def test_an_asset_that_several_dags_wait_for_has_the_same_watchers_in_each(two_lakes: dict[str, DAG]) -> None:
    found: dict[str, dict[str, list[Any]]] = {}
    for name, dag in two_lakes.items():
        condition = getattr(dag.schedule, "asset_condition", None)
        for asset in getattr(condition, "objects", ()):
            found.setdefault(asset.name, {})[name] = [watcher.trigger.serialize() for watcher in asset.watchers]
    assert {"eu_credit_conversions", "eu_validate_tables"} <= found["eu_adloom_gold"].keys()
    for asset_name, of_dags in found.items():
        first, *others = of_dags.values()
        assert all(other == first for other in others), f"Airflow keeps the watchers of any one of {asset_name}"


def test_no_two_lakes_share_an_asset() -> None:
    def names(lake: LakeRef) -> set[str]:
        days = {own.asset.name for own in day_assets(lake)}
        gold = {asset.name for asset in validated_assets(lake).values()}
        return days | gold | {all_complete(lake).name, validated_gold(lake).name}

    assert names(_EU).isdisjoint(names(_US))
    assert {name.removeprefix("eu_") for name in names(_EU)} == names(LakeRef())


def test_each_lake_is_found_by_its_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADLOOM_LAKE", "of-the-environment")
    monkeypatch.setenv("ADLOOM_CONNECTION", "adloom_us")
    for region in ("eu", "us"):
        extra = {"supervisor_address": f"{region}:1", "supervisor_password": "x"}
        connection = {"conn_type": "adloom", "host": f"{tmp_path}/{region}", "extra": extra}
        monkeypatch.setenv(f"AIRFLOW_CONN_ADLOOM_{region.upper()}", json.dumps(connection))
    assert connect(_EU).location == f"{tmp_path}/eu"
    assert connect(LakeRef()).location == f"{tmp_path}/us", "the one that ADLOOM_CONNECTION names"


def test_schedules_owner_pool_and_alert_can_differ_by_lake() -> None:
    def alert(_context: Any) -> None: ...

    dags = adloom_dags(
        "adloom_eu",
        "eu_",
        without={"replay_audit", "supervise_measure"},
        schedules={"repair_late": "0 5 * * *", "close_days": None},
        owner="ads",
        tags=("eu",),
        pool="small",
        on_failure=alert,
    )
    assert {name.removeprefix("eu_") for name in dags} == {*DAG_NAMES} - {"replay_audit", "supervise_measure"}
    schedules: dict[str, Any] = {name: dag.schedule for name, dag in dags.items()}
    assert (schedules["eu_repair_late"], schedules["eu_close_days"]) == ("0 5 * * *", None)
    assert schedules["eu_balance_ledger"] == "*/10 * * * *"
    (repairing,) = dags["eu_repair_late"].tasks
    assert (repairing.owner, repairing.pool, repairing.on_failure_callback) == ("ads", "small", [alert])
    assert dags["eu_repair_late"].tags == {"adloom", "maintenance", "eu"}


@pytest.mark.parametrize("given", [{"without": {"repair"}}, {"schedules": {"repair": None}}])
def test_a_dag_that_does_not_exist_is_named(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"there is no DAG 'repair'; there are .*repair_late"):
        adloom_dags(**given)


@pytest.mark.parametrize(
    ("value", "lakes"),
    [
        pytest.param("", (LakeRef(),), id="one, of the environment"),
        pytest.param("=adloom_eu", (LakeRef("adloom_eu"),), id="one without a prefix"),
        pytest.param("=adloom_eu,us_=adloom_us", (LakeRef("adloom_eu"), _US), id="two"),
    ],
)
def test_the_lakes_are_those_of_the_variable(
    monkeypatch: pytest.MonkeyPatch, value: str, lakes: tuple[LakeRef, ...]
) -> None:
    monkeypatch.setenv("ADLOOM_LAKES", value)
    assert lakes_here() == lakes


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param("adloom_eu", "'adloom_eu' names no connection", id="no prefix"),
        pytest.param("eu_=", "'eu_=' names no connection", id="no connection"),
        pytest.param("a_=one,a_=two", "prefix 'a_' stands before one and two", id="one prefix twice"),
        pytest.param("EU =one", "prefix 'EU' does not fit into the id of a DAG", id="capitals"),
        pytest.param("../=one", "prefix '../' does not fit", id="not a name"),
    ],
)
def test_a_wrong_entry_is_named(monkeypatch: pytest.MonkeyPatch, value: str, why: str) -> None:
    monkeypatch.setenv("ADLOOM_LAKES", value)
    with pytest.raises(SettingsError, match=why):
        lakes_here()


def test_drivers_of_each_lake_are_supervised(two_lakes: dict[str, DAG]) -> None:
    assert {f"us_supervise_{job}" for job in QUERIES_OF_JOB} <= two_lakes.keys()
