"""Repairs that are planned twice, by an earlier version, or on tables that others change meanwhile."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import CONVERSION, PERSONAL_FIELDS, TYPE_FIELDS
from spark_jobs.contract.tables import ATTRIBUTIONS, LATE_EVENTS, RESTATEMENTS, SESSIONS, Table
from spark_jobs.errors import LakeError
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.places import REPAIR, lock_key
from spark_jobs.restatements import apply as restating
from spark_jobs.restatements import repair as repairing
from spark_jobs.restatements.plan import RepairPlan, changes_key, late_key, plan_folder
from spark_jobs.restatements.plans import GOLD_PLANS
from spark_jobs.restatements.repair import make_plan, repair
from spark_jobs.spark.open_lake import OpenLake
from tests.support.lakes import read_table
from tests.support.oracle import Row
from tests.support.runs import ONE_BY_ONE, run_in

pytestmark = pytest.mark.slow
_FILE_BY_FILE = Settings.model_validate({"ingest": ONE_BY_ONE})
_CORRECTED = (ATTRIBUTIONS, SESSIONS, LATE_EVENTS)
_TABLES = (*_CORRECTED, RESTATEMENTS)
_DECIDED = RESTATEMENTS.column_names.index("decided_at")


class _Killed(BaseException):
    """What no handler of errors catches."""


@pytest.fixture(scope="module")
def drained(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("drained")
    lake = open_lake(str(folder / "lake"))
    generate(GeneratorSpec(events=300, seed=7, files=4, late=0.2), folder / "source")
    run_in(spark, _FILE_BY_FILE, lake, folder / "source")
    return lake


@pytest.fixture(scope="module")
def whole(spark: SparkSession, drained: Lake, tmp_path_factory: pytest.TempPathFactory) -> dict[Table, list[Row]]:
    lake = _copy(drained, tmp_path_factory.mktemp("whole"))
    assert repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    return _rows(lake)


def _copy(lake: Lake, folder: Path) -> Lake:
    return open_lake(str(shutil.copytree(lake.path, folder / "lake")))


def _rows(lake: Lake) -> dict[Table, list[Row]]:
    found = {table: read_table(lake, table) for table in _TABLES}
    found[RESTATEMENTS] = [(*row[:_DECIDED], *row[_DECIDED + 1 :]) for row in found[RESTATEMENTS]]
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


def test_what_an_earlier_version_planned_is_completed_although_its_rows_lack_columns(
    spark: SparkSession, drained: Lake, whole: dict[Table, list[Row]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _copy(drained, tmp_path)

    def dying(*_: Any) -> None:
        raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr(restating, "append_rows", dying)
        with pytest.raises(_Killed):
            repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    plan = GOLD_PLANS.unfinished(lake)
    assert plan
    for file in (lake.path / late_key(plan.folder)).glob("*.parquet"):
        planned = pq.read_table(file)
        pq.write_table(planned.drop_columns([*PERSONAL_FIELDS, *TYPE_FIELDS[CONVERSION]]), file)
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    assert _rows(lake) == whole


def test_a_dry_run_plans_the_same_and_leaves_no_file(spark: SparkSession, drained: Lake, tmp_path: Path) -> None:
    lake = _copy(drained, tmp_path)
    there = _files(lake)
    dry = repair(OpenLake.of(lake, _FILE_BY_FILE, spark), dry_run=True)
    assert _files(lake) - there == set()
    plan = repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    assert dry
    assert plan
    assert dry.changes == plan.changes > 0
    assert (dry.late_events, dry.tables) == (plan.late_events, plan.tables)


def test_a_table_that_is_there_only_after_a_repair_is_corrected_by_the_next(
    spark: SparkSession, drained: Lake, whole: dict[Table, list[Row]], tmp_path: Path
) -> None:
    lake = _copy(drained, tmp_path)
    gold = (lake.path / "gold").rename(tmp_path / "gold")
    first = repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    assert first
    assert (first.tables, first.late_events) == ({}, len(whole[LATE_EVENTS]))
    shutil.rmtree(lake.path / "gold", ignore_errors=True)
    gold.rename(lake.path / "gold")
    second = repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    assert second
    assert second.late_events == 0
    rows = _rows(lake)
    assert {table: rows[table] for table in _CORRECTED} == {table: whole[table] for table in _CORRECTED}


def _files(lake: Lake) -> set[str]:
    """All files but the lock of the repair."""
    return {str(file.relative_to(lake.path)) for file in lake.path.rglob("*") if file.is_file()} - {lock_key(REPAIR)}


def test_of_two_plans_only_the_first_counts(
    spark: SparkSession, drained: Lake, whole: dict[Table, list[Row]], tmp_path: Path
) -> None:
    lake, others = _copy(drained, tmp_path), list[RepairPlan | None]()

    def plan_too(_step: str) -> None:
        if not others:
            others.append(None)
            other = make_plan(OpenLake.of(lake, _FILE_BY_FILE, spark), 1, dry_run=False, on_step=lambda _: None)
            assert other
            GOLD_PLANS.write(lake, other)
            others.append(other)

    with pytest.raises(LakeError, match="another process has planned repair 1 of"):
        repair(OpenLake.of(lake, _FILE_BY_FILE, spark), on_step=plan_too)
    assert lake.newest_commit(ATTRIBUTIONS.path) == drained.newest_commit(ATTRIBUTIONS.path)
    repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    assert _rows(lake) == whole
    (other,) = (one for one in others if one)
    assert lake.files.names(plan_folder(1)) == sorted([other.draft, "plan.json", "done.json"])


def _tamper(spark: SparkSession, lake: Lake, plan: RepairPlan) -> None:
    """Deletes a session that ``plan`` deletes."""
    planned = spark.read.parquet(lake.uri(changes_key(plan.folder, SESSIONS.name))).where("copies < 0")
    (session,) = planned.selectExpr("row.session_id").head(1)[0]
    spark.sql(f"DELETE FROM delta.`{lake.table(SESSIONS)}` WHERE session_id = '{session}'")


def test_rows_that_somebody_changed_meanwhile_are_planned_anew(
    spark: SparkSession, drained: Lake, whole: dict[Table, list[Row]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, plans = _copy(drained, tmp_path), list[RepairPlan]()

    def planning(*arguments: Any, **named: Any) -> Any:
        if plan := make_plan(*arguments, **named):
            plans.append(plan)
        if len(plans) == 1:
            _tamper(spark, lake, plans[0])
        return plan

    monkeypatch.setattr(repairing, "make_plan", planning)
    repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    assert len(plans) == 2
    assert plans[0].tables[SESSIONS.name].deletes == plans[1].tables[SESSIONS.name].deletes + 1
    rows = _rows(lake)
    assert {table: rows[table] for table in _CORRECTED} == {table: whole[table] for table in _CORRECTED}
