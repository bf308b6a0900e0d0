"""A lake that was restored goes on: repair, marks, credit, days and ledger as if the lake had never been away."""

import shutil
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import CREDIT_TABLES, DAYS, LATE_EVENTS, MARKS, RESTATEMENTS, SILVER_EVENTS, Table
from spark_jobs.credit.run import credit
from spark_jobs.days.update import update_days_with
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.update import update_ledger
from spark_jobs.marks.mark import update_marks
from spark_jobs.operations.backup import back_up, put_back
from spark_jobs.places import CREDIT_RUNS
from spark_jobs.queries.registry import QUERIES
from spark_jobs.restatements.marks_to_gold import apply_marks_to_gold
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.reset import reset
from tests.support.credited import in_order_of_arrival
from tests.support.lakes import GOLD, read_table
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.source_files import write_files

pytestmark = [pytest.mark.derived, pytest.mark.slow]

# Nothing is late for one query only: a reset may take in what was late for it.
_SETTINGS = Settings.model_validate({"ingest": ONE_BY_ONE, "credit": {"view_lookback": "1h"}})
_TABLES = (SILVER_EVENTS, *GOLD, LATE_EVENTS, *CREDIT_TABLES, MARKS, RESTATEMENTS, DAYS)
_CLOCKS = ("ingest_time", "decided_at", "marked_at", "updated_at", "complete_at", "restated_at", "received_at")
_CLOCKS_OF_DAYS = ("version", "repair")


@dataclass(frozen=True)
class _Away:
    """A lake with a day of events that goes on to the end, and one that was restored from a copy in the middle."""

    stayed: Lake
    copy: Lake
    source: Path
    rest: list[Path]


def _correct(spark: SparkSession, lake: Lake) -> None:
    """What the DAGs do each day."""
    repair(OpenLake.of(lake, _SETTINGS, spark))
    update_marks(OpenLake.of(lake, _SETTINGS, spark))
    apply_marks_to_gold(OpenLake.of(lake, _SETTINGS, spark))
    credit(OpenLake.of(lake, _SETTINGS, spark))
    update_days_with(OpenLake.of(lake, _SETTINGS, spark))
    update_ledger(lake, _SETTINGS)


def _go_on(spark: SparkSession, lake: Lake, source: Path) -> None:
    run_in(spark, _SETTINGS, lake, source)
    _correct(spark, lake)


@pytest.fixture(scope="module")
def away(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Away:
    folder = tmp_path_factory.mktemp("away")
    source, lake, copy = folder / "source", open_lake(str(folder / "lake")), open_lake(str(folder / "copy"))
    spec = GeneratorSpec(events=600, seed=59, files=5, late=0, duplicates=0.05, conversions=1, users=60)
    generate(spec, folder / "made")
    arriving = sorted(write_files(folder / "arriving", in_order_of_arrival(folder / "made")).iterdir())
    source.mkdir()
    for file in (*arriving[:3], arriving[-1]):
        shutil.copy2(file, source)
    run_in(spark, _SETTINGS, lake, source, drain=False)
    # The first run writes all, the second only changes: then there are as many runs as matter.
    _correct(spark, lake)
    back_up(lake, copy, S3Settings(), now=datetime.now(UTC), report=lambda *_: None)
    return _Away(lake, copy, source, arriving[3:-1])


@pytest.fixture(scope="module")
def whole(spark: SparkSession, away: _Away) -> dict[str, Counter[str]]:
    for file in away.rest:
        shutil.copy2(file, away.source)
    _go_on(spark, away.stayed, away.source)
    return _rows(away.stayed)


def _restored(spark: SparkSession, copy: Lake, source: Path, folder: Path) -> Lake:
    lake = open_lake(str(folder / "restored"))
    put_back(copy, lake, report=lambda *_: None)
    for query in QUERIES:
        if lake.has(query.writes):
            reset(OpenLake.of(lake, _SETTINGS, spark), query.name, source)
    return lake


def _rows(lake: Lake) -> dict[str, Counter[str]]:
    return {table.name: _rows_of(lake, table) for table in _TABLES if lake.has(table)}


def _rows_of(lake: Lake, table: Table) -> Counter[str]:
    left_out = {*_CLOCKS, *(_CLOCKS_OF_DAYS if table is DAYS else ())}
    names = [name for name in table.column_names if name not in left_out]
    return Counter(repr(_picked(table, row, names)) for row in read_table(lake, table))


def _picked(table: Table, row: Any, names: list[str]) -> list[Any]:
    values = dict(zip(table.column_names, row, strict=False))
    return [values[name] for name in names]


def test_it_goes_on_as_if_it_had_never_been_away(
    spark: SparkSession, away: _Away, whole: dict[str, Counter[str]], tmp_path: Path
) -> None:
    lake = _restored(spark, away.copy, away.source, tmp_path)
    _go_on(spark, lake, away.source)
    rows = _rows(lake)
    for name, expected in whole.items():
        assert rows[name] == expected, name


def test_without_the_plans_of_credit_what_was_written_is_frozen_and_not_computed_by_other_settings(
    spark: SparkSession, away: _Away, tmp_path: Path
) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    put_back(away.copy, lake, report=lambda *_: None)
    lake.files.delete_folder(CREDIT_RUNS)
    before = _rows(lake)
    own = {**_SETTINGS.model_dump(exclude_unset=True), "credit": {"models": "linear"}, "repair": {"freeze_after": "0s"}}
    plan = credit(OpenLake.of(lake, Settings.model_validate(own), spark))
    assert plan
    assert plan.number > 1, "runs are numbered after those that the tables have seen"
    assert (plan.fresh, plan.changes) == (0, 0)
    rows = _rows(lake)
    assert [rows[table.name] for table in CREDIT_TABLES] == [before[table.name] for table in CREDIT_TABLES]
    told = rows[RESTATEMENTS.name] - before[RESTATEMENTS.name]
    assert told
    assert all("'frozen'" in row for row in told)
