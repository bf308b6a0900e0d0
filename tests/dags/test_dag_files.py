"""The DAG file and what it declares: it loads quickly, imports nothing heavy, and follows the conventions."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG

from ad_dags import factory
from tests.support.dag_names import DAG_NAMES

_DAGS = Path(__file__).parents[2] / "dags"
_EXAMPLES = _DAGS.parent / "examples"
_WITH_SPARK = {
    "close_days.update_days",
    "credit_conversions.credit_conversions",
    "maintain_tables.maintain_tables",
    "mark_invalid.mark_invalid",
    "repair_late.repair_late",
    "replay_audit.audit_random_day",
    "replay_window.replay_window",
    "requeue_quarantine.requeue_quarantine",
    "validate_tables.draw_overview",
    "validate_tables.validate_tables",
}
_HEAVY = ("pyspark", "delta", "pandas", "great_expectations", "boto3", "py4j", "kubernetes")


@pytest.fixture(scope="module")
def dags() -> dict[str, DAG]:
    bag = DagBag(_DAGS)
    assert not bag.import_errors, bag.import_errors
    return bag.dags


def test_there_is_a_dag_for_every_module_and_one_for_every_job(dags: dict[str, DAG]) -> None:
    assert sorted(dags) == DAG_NAMES == [*factory.DAG_NAMES]
    assert {Path(dag.fileloc) for dag in dags.values()} == {_DAGS / "adloom.py"}


def test_the_dag_file_loads_nothing_heavy() -> None:
    """In a fresh interpreter, so that imports of other tests do not count."""
    script = (
        f"import sys, runpy; sys.path.insert(0, {str(_DAGS)!r})\n"
        f"found = runpy.run_path({str(_DAGS / 'adloom.py')!r})\n"
        f"print('deploy_streams' in found, [name for name in {_HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines()[-1:] == ["True []"], done.stdout + done.stderr


def test_every_dag_is_described_and_has_its_timeouts(dags: dict[str, DAG]) -> None:
    for name, dag in dags.items():
        assert dag.doc_md, name
        assert len(dag.doc_md.splitlines()) > 2, f"{name}: the page says too little"
        assert dag.description, name
        assert "adloom" in dag.tags, name
        assert dag.max_active_runs == 1, name
        assert not dag.catchup, name
        for task in dag.tasks:
            what = f"{name}.{task.task_id}"
            assert task.owner == "adloom", what
            assert task.on_failure_callback, what
            assert task.pool == "default_pool", what
            assert task.execution_timeout or name.startswith("supervise_"), what


def test_owner_tags_and_pool_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADLOOM_DAG_OWNER", "ads-team")
    monkeypatch.setenv("ADLOOM_DAG_TAGS", " ads, prod,")
    monkeypatch.setenv("ADLOOM_POOL", "adloom")
    dags = DagBag(_DAGS).dags.values()
    tasks = {f"{dag.dag_id}.{task.task_id}": task for dag in dags for task in dag.tasks}
    assert {task.owner for task in tasks.values()} == {"ads-team"}
    assert all({"adloom", "ads", "prod"} <= dag.tags for dag in dags)
    assert {name for name, task in tasks.items() if task.pool == "adloom"} == _WITH_SPARK
    assert {task.pool for name, task in tasks.items() if name not in _WITH_SPARK} == {"default_pool"}


def test_the_policy_of_the_example_sends_tasks_with_spark_to_workers_of_their_own() -> None:
    """In a fresh interpreter, where Airflow finds the example as the module that it looks for."""
    script = (
        "from airflow.dag_processing.dagbag import DagBag\n"
        f"for dag in DagBag({str(_DAGS)!r}).dags.values():\n"
        "    for task in dag.tasks:\n"
        "        print('TASK', task.task_id, dag.dag_id, task.queue, task.executor_config.get('pod_template_file'))\n"
    )
    environment = os.environ | {"ADLOOM_POOL": "adloom", "PYTHONPATH": f"{_EXAMPLES}{os.pathsep}{_DAGS}"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    words = [line.split() for line in done.stdout.splitlines() if line.startswith("TASK ")]  # Airflow logs there, too
    found = {f"{dag}.{task}": (queue, pod) for _, task, dag, queue, pod in words}
    moved = {name for name, places in found.items() if places == ("spark", "/opt/airflow/pods/adloom-spark.yaml")}
    assert moved == _WITH_SPARK
    assert {places for name, places in found.items() if name not in moved} == {("default", "None")}


def test_every_param_is_described_and_checked(dags: dict[str, DAG]) -> None:
    for name, dag in dags.items():
        for key in dag.params:
            param = dag.params.get_param(key)
            assert param.description, f"{name}.{key}"
            assert param.schema.get("type") or param.schema.get("enum"), f"{name}.{key}"
