"""A lake whose files were compacted and removed, and whose logs were cleaned, since its tables were last corrected."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config.durations import Window
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    BRONZE_EVENTS,
    MARKS,
    PATHS,
    RESTATEMENTS,
    SESSIONS,
    SILVER_EVENTS,
    Table,
)
from spark_jobs.credit.plan import CREDIT_PLANS
from spark_jobs.credit.run import credit
from spark_jobs.errors import CheckpointError, QueryFailedError
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.batches import save
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import RecordKind
from spark_jobs.ledger.update import update_ledger
from spark_jobs.marks.mark import update_marks
from spark_jobs.operations.maintain import maintain
from spark_jobs.places import BATCHES
from spark_jobs.queries import output
from spark_jobs.queries.arrivals import spans_read
from spark_jobs.queries.jobs import MEASURE_JOB
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.registry import QUERIES_OF_JOB, writer_of
from spark_jobs.restatements.pending import tables_to_correct
from spark_jobs.restatements.plan import PlanKind
from spark_jobs.restatements.plans import GOLD_PLANS, KEPT
from spark_jobs.restatements.repair import repair
from spark_jobs.restatements.replay import replay
from spark_jobs.spark import write_delta
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams import start
from spark_jobs.streams.reset import reset
from tests.support.credited import copy_lake, credit_rows, in_order_of_arrival
from tests.support.equality import MEASURED, generate_source
from tests.support.lakes import read_table
from tests.support.lateness import PATIENT
from tests.support.old_plans import credit_plan, gold_plan, write_done
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.runs import ONE_BY_ONE, run_in

pytestmark = [pytest.mark.derived, pytest.mark.slow]

_SETTINGS = Settings.model_validate({"ingest": ONE_BY_ONE})
_ALL_TIMES = Window(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC))
_STREAMED = (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS, SESSIONS, MARKS)


def _vacuumed(spark: SparkSession, lake: Lake) -> None:
    """As `adloom maintain` leaves it every day, once a week has passed."""
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    for table in _STREAMED:
        if lake.has(table):
            spark.sql(f"OPTIMIZE delta.`{lake.table(table)}`")
            spark.sql(f"VACUUM delta.`{lake.table(table)}` RETAIN 0 HOURS")
    for plans in (GOLD_PLANS, CREDIT_PLANS):
        plans.remove_old(lake, datetime.now(UTC))


def _cleaned(spark: SparkSession, lake: Lake) -> None:
    """The same once a month has passed: of the log only its last checkpoint is left."""
    _vacuumed(spark, lake)
    for table, last in _with_checkpoints(spark, lake).items():
        lake.files.delete([commit_key(table, version) for version in range(last)])


def _with_checkpoints(spark: SparkSession, lake: Lake) -> dict[Table, int]:
    """Writes a checkpoint of each log; returns their versions."""
    java, found = spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog, {}  # type: ignore[union-attr]
    for table in _STREAMED:
        if lake.has(table):
            save(lake, table)  # as `adloom maintain` does
            java.forTable(spark._jsparkSession, lake.table(table)).checkpoint()
            last = lake.files.read(f"{table.path}/_delta_log/_last_checkpoint") or b"{}"
            found[table] = json.loads(last)["version"]
    java.clearCache()
    return found


def _vacuumed_before_batches(spark: SparkSession, lake: Lake) -> None:
    """A lake of before the files of batches, a week old."""
    lake.files.delete_folder(BATCHES)
    _vacuumed(spark, lake)


@pytest.fixture(scope="module")
def young(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Path]:
    """A lake whose tables were corrected, and then more came, some of it too late."""
    folder = tmp_path_factory.mktemp("aged")
    made, source, lake = folder / "made", folder / "source", open_lake(str(folder / "lake"))
    generate(GeneratorSpec(events=600, seed=7, files=4, conversions=0.5, bots=0.1, duplicates=0.05), made)
    source.mkdir()
    *before, newest, late = in_order_of_arrival(made)
    for number, records in enumerate(before):
        (source / f"{number}.jsonl").write_bytes(b"\n".join(records) + b"\n")
    run_in(spark, _SETTINGS, lake, source)
    repair(OpenLake.of(lake, _SETTINGS, spark))
    credit(OpenLake.of(lake, _SETTINGS, spark))
    for number, records in enumerate((newest, late), start=len(before)):
        (source / f"{number}.jsonl").write_bytes(b"\n".join(records) + b"\n")
    run_in(spark, _SETTINGS, lake, source, drain=True)
    return lake, source


@pytest.mark.parametrize("age", [_vacuumed, _cleaned, _vacuumed_before_batches])
def test_what_corrects_tables_works_however_long_ago_it_last_did(
    age: Callable[[SparkSession, Lake], None], spark: SparkSession, young: tuple[Lake, Path], tmp_path: Path
) -> None:
    lake, due = copy_lake(young[0], tmp_path), expected_tables(young[1], _SETTINGS, datetime.now(UTC))
    age(spark, lake)
    plan = repair(OpenLake.of(lake, _SETTINGS, spark))
    assert plan
    assert plan.late_events > 0
    for table in (ATTRIBUTIONS, SESSIONS):
        assert_same_rows(read_table(lake, table), due.rows(table), table)
    age(spark, lake)
    assert repair(OpenLake.of(lake, _SETTINGS, spark)) is None
    update_marks(OpenLake.of(lake, _SETTINGS, spark))
    credit(OpenLake.of(lake, _SETTINGS, spark))
    assert credit_rows(lake, PATHS)
    found = replay(OpenLake.of(lake, _SETTINGS, spark), _ALL_TIMES, tables=(SESSIONS.name,)).report.tables[
        SESSIONS.name
    ]
    assert (found.unknown, found.late) == (0, 0)


def test_a_job_that_first_runs_on_an_old_lake_begins_with_what_lies_there_in_the_order_of_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is late for the two jobs that have run; the third has delays that are short for files of a day.
    settings, lake = _SETTINGS, open_lake(str(tmp_path / "lake"))
    source, newest = generate_source(tmp_path / "source", events=2000, seed=73), tmp_path / "newest"
    shutil.move(max(source.iterdir()), newest)
    run_in(spark, settings, lake, source, drain=False)
    repair(OpenLake.of(lake, settings, spark))
    _vacuumed(spark, lake)
    last = _with_checkpoints(spark, lake)
    shutil.move(newest, source / "newest.jsonl")
    run_in(spark, settings, lake, source, drain=False)
    for table, version in last.items():
        lake.files.delete([commit_key(table, old) for old in range(version)])
    monkeypatch.setattr(start, "_ROWS_AT_ONCE", 300)
    run_in(spark, settings, lake, source, measure=True)
    due = expected_tables(source, settings, datetime.now(UTC))
    for table in MEASURED:
        assert_same_rows(read_table(lake, table), due.rows(table), table)
        note = last_note(lake, writer_of(table).name)
        assert note
        assert note.batch > 5, "it has read what was there in steps"
    opened = OpenLake.of(lake, settings, spark)
    assert [one.query.name for one in tables_to_correct(opened) if spans_read(lake, one.query, -1, until=one.version)]
    before = {table: lake.newest_commit(table.path) for table in MEASURED}
    repair(opened)
    assert {table: lake.newest_commit(table.path) for table in MEASURED} == before, "no event was late for it"


def _fails_on_the_way(spark: SparkSession, lake: Lake, source: Path, settings: Settings) -> None:
    """Each of the queries of ``measure`` fails in the third batch since a reset, or after another has."""
    append_rows, batches = write_delta.append_rows, Counter[str]()

    def append_and_fail(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
        append_rows(rows, lake, table, note)
        batches[table.name] += 1
        if table in MEASURED and batches[table.name] == 3:
            raise RuntimeError(f"struck in the third batch of {table.name}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start, "_ROWS_AT_ONCE", 300)
        patch.setattr(output, "append_rows", append_and_fail)
        with pytest.raises(QueryFailedError, match="struck in the third batch"):
            run_in(spark, settings, lake, source, measure=True)


@pytest.mark.parametrize("resets", [1, 2])
def test_a_job_that_was_down_for_longer_than_logs_are_kept_goes_on_after_a_reset(
    spark: SparkSession, tmp_path: Path, resets: int
) -> None:
    settings, lake = Settings.model_validate({"ingest": ONE_BY_ONE, **PATIENT}), open_lake(str(tmp_path / "lake"))
    source, later = generate_source(tmp_path / "source", events=2000, seed=74, files=6), tmp_path / "later"
    later.mkdir()
    coming = [Path(shutil.move(file, later)) for file in sorted(source.iterdir())[2:]]
    opened = OpenLake.of(lake, settings, spark)
    run_in(spark, settings, lake, source, drain=False, measure=True)
    last: dict[Table, int] = {}
    for number, file in enumerate(coming):
        list(maintain(opened, [SILVER_EVENTS], remove=False))
        if number == len(coming) - 1:
            _vacuumed(spark, lake)
            last = _with_checkpoints(spark, lake)
        shutil.move(file, source)
        run_in(spark, settings, lake, source, drain=False)
    for table, version in last.items():
        lake.files.delete([commit_key(table, old) for old in range(version)])
    with pytest.raises(CheckpointError, match=r"longer than tables\.log_retention.*adloom checkpoints reset"):
        run_in(spark, settings, lake, source, measure=True)
    for number in range(resets):
        for query in QUERIES_OF_JOB[MEASURE_JOB]:
            assert reset(opened, query).open_events
        if number + 1 < resets:
            _fails_on_the_way(spark, lake, source, settings)
    run_in(spark, settings, lake, source, measure=True)
    due = expected_tables(source, settings, datetime.now(UTC))
    for table in MEASURED:
        assert_same_rows(read_table(lake, table), due.rows(table), table)


_MANY = KEPT + 50


def _planned_often(lake: Lake) -> None:
    """Plans that have changed nothing, after those that ``lake`` has: of marks, and of windows of credit."""
    first = max(GOLD_PLANS.last_done(lake), CREDIT_PLANS.last_done(lake)) + 1
    for number in range(first, first + _MANY):
        write_done(lake, GOLD_PLANS, gold_plan(number, PlanKind.MARKS))
        write_done(lake, CREDIT_PLANS, credit_plan(number, is_window=True))


def test_old_plans_are_removed_and_what_goes_on_from_plans_does(
    spark: SparkSession, young: tuple[Lake, Path], tmp_path: Path
) -> None:
    lake = copy_lake(young[0], tmp_path / "one")
    assert repair(OpenLake.of(lake, _SETTINGS, spark))
    young_one = copy_lake(lake, tmp_path / "other")
    _planned_often(lake)
    done = list(maintain(OpenLake.of(lake, _SETTINGS, spark), [RESTATEMENTS, PATHS], remove=True))
    assert [care.skipped for care in done] == ["", ""]
    for own in (GOLD_PLANS, CREDIT_PLANS):
        assert len(lake.numbers(own.folder)) == KEPT + 1, "and the last of its kind"
    assert repair(OpenLake.of(lake, _SETTINGS, spark)) is None
    for one in (lake, young_one):
        assert credit(OpenLake.of(one, _SETTINGS, spark))
        assert credit(OpenLake.of(one, _SETTINGS, spark)) is None
    assert credit_rows(lake, PATHS) == credit_rows(young_one, PATHS)
    counted, expected = (update_ledger(one, _SETTINGS) for one in (lake, young_one))
    assert counted.figures == expected.figures
    assert counted.rows(RecordKind.LATE_REPAIRED) > 0
