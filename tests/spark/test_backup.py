"""A copy of a lake: what is copied, what is refused, and a lake made of it again."""

import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, MARKS, SILVER_EVENTS
from spark_jobs.errors import LakeError, LakeInUseError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.lake.open import open_lake
from spark_jobs.operations.backup import MANIFEST, Backup, back_up, put_back, read_backup
from spark_jobs.places import CREDIT, DAYS_WRITER, MARKS_WRITER, REPAIR
from spark_jobs.queries.registry import QUERIES
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.reset import reset
from spark_jobs.traffic_rules.reached import rules_key
from tests.expectations.good_rows import append, good_rows
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_table
from tests.support.runs import run_in

_NOW, _S3 = datetime(2026, 3, 1, 12, tzinfo=UTC), S3Settings()


def _nothing(what: str, done: int, total: int) -> None:
    """No bar."""


def _copy(lake: Lake, to: Path, report: Counter[str] | None = None) -> Backup:
    def count(what: str, _done: int, _total: int) -> None:
        if report is not None:
            report[what] += 1

    return back_up(lake, open_lake(str(to)), _S3, now=_NOW, report=count)


@pytest.fixture(scope="module")
def three_tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of three tables, to be copied."""
    root = tmp_path_factory.mktemp("three") / "lake"
    for table in (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS):
        append(spark, open_lake(str(root)), table, good_rows(table.name))
    return root


@pytest.fixture
def small(three_tables: Path, tmp_path: Path) -> Lake:
    """A lake of three tables that a test may change."""
    return open_lake(str(shutil.copytree(three_tables, tmp_path / "lake")))


def test_a_copy_has_the_tables_downstream_first_and_the_second_one_only_what_is_new(
    spark: SparkSession, small: Lake, tmp_path: Path
) -> None:
    first, second = Counter[str](), Counter[str]()
    done = _copy(small, tmp_path / "copy", first)
    assert done.tables == {"bronze": 0, "silver": 0, "attributions": 0}
    tables = [what for what in first if what in done.tables]
    assert tables == ["attributions", "silver", "bronze"]
    append(spark, small, ATTRIBUTIONS, good_rows("attributions")[:1])
    assert _copy(small, tmp_path / "copy", second).tables["attributions"] == 1
    assert second["attributions"]
    assert not second["bronze"]
    assert not second["silver"]
    copy = open_lake(str(tmp_path / "copy"))
    for table in (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS):
        assert sorted(map(repr, read_table(copy, table))) == sorted(map(repr, read_table(small, table)))


@pytest.mark.slow
def test_what_is_committed_after_a_table_was_looked_at_is_not_in_the_copy(
    spark: SparkSession, small: Lake, tmp_path: Path
) -> None:
    rows = read_table(small, ATTRIBUTIONS)

    def commit(what: str, done: int, _total: int) -> None:
        if (what, done) == ("attributions", 1):
            append(spark, small, ATTRIBUTIONS, good_rows("attributions")[:1])

    copy = open_lake(str(tmp_path / "copy"))
    done = back_up(small, copy, _S3, now=_NOW, report=commit)
    assert small.newest_commit(ATTRIBUTIONS.path) == 1
    assert copy.newest_commit(ATTRIBUTIONS.path) == done.tables["attributions"] == 0
    assert sorted(map(repr, read_table(copy, ATTRIBUTIONS))) == sorted(map(repr, rows))


def test_a_copy_between_two_checkpoints_of_a_log_is_read_and_written_on_by_spark(
    spark: SparkSession, small: Lake, tmp_path: Path
) -> None:
    place = f"delta.`{small.table(ATTRIBUTIONS)}`"
    spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.checkpointInterval' = '3')")
    row, count = good_rows("attributions")[:1], len(good_rows("attributions"))
    for _ in range(2):
        append(spark, small, ATTRIBUTIONS, row)

    def commit(what: str, done: int, _total: int) -> None:
        if (what, done) == ("attributions", 1):  # a checkpoint that the copy must not know of
            for _ in range(3):
                append(spark, small, ATTRIBUTIONS, row)

    copy = open_lake(str(tmp_path / "copy"))
    back_up(small, copy, _S3, now=_NOW, report=commit)
    logs = [lake.path / ATTRIBUTIONS.path / "_delta_log" for lake in (small, copy)]
    assert [sorted(int(one.name[:20]) for one in log.glob("*.checkpoint.parquet")) for log in logs] == [[3, 6], [3]]
    assert len(read_table(copy, ATTRIBUTIONS)) == count + 2
    assert spark.read.format("delta").load(copy.table(ATTRIBUTIONS)).count() == count + 2
    for expected in (4, 5, 6):
        append(spark, copy, ATTRIBUTIONS, row)
        assert copy.newest_commit(ATTRIBUTIONS.path) == expected
    assert spark.read.format("delta").load(copy.table(ATTRIBUTIONS)).count() == count + 5


def test_a_file_that_is_gone_is_told_and_the_copy_is_not_whole(small: Lake, tmp_path: Path) -> None:
    victim = next((small.path / SILVER_EVENTS.path).rglob("part-*.parquet"))
    victim.unlink()
    with pytest.raises(LakeError, match="is gone, which version 0 of silver needs"):
        _copy(small, tmp_path / "copy")
    with pytest.raises(LakeError, match="is not a complete backup"):
        read_backup(open_lake(str(tmp_path / "copy")))


def test_nothing_is_ever_written_over(small: Lake, tmp_path: Path) -> None:
    other = open_lake(str(tmp_path / "other"))
    other.files.write("_contracts/1.0.json", b"{}")
    with pytest.raises(LakeError, match="is not empty and holds no backup"):
        _copy(small, other.path)
    _copy(small, tmp_path / "copy")
    with pytest.raises(LakeError, match="holds a backup of"):
        _copy(other, tmp_path / "copy")
    for within in (small.path / "copy", small.path.parent):
        with pytest.raises(LakeError, match="lie within each other"):
            _copy(small, within)
    with pytest.raises(LakeError, match="is not empty: a lake is restored to a new place"):
        put_back(open_lake(str(tmp_path / "copy")), small, report=_nothing)
    with pytest.raises(LakeError, match=f"it has no {MANIFEST}"):
        put_back(other, open_lake(str(tmp_path / "new")), report=_nothing)


@pytest.mark.parametrize("writer", [REPAIR, MARKS_WRITER, CREDIT, DAYS_WRITER])
def test_a_copy_is_not_taken_while_what_belongs_together_is_written(
    writer: str, spark: SparkSession, small: Lake, tmp_path: Path
) -> None:
    with hold_job(small, writer, _S3, spark=spark), pytest.raises(LakeInUseError):
        _copy(small, tmp_path / "copy")


def test_a_copy_has_marks_before_silver_and_the_rules_that_they_name(
    spark: SparkSession, small: Lake, tmp_path: Path
) -> None:
    append(spark, small, MARKS, [{"event_id": "a", "rule_id": "r", "event_date": _NOW.date()}])
    small.files.write(rules_key("digest"), b"{}")
    assert list(_copy(small, tmp_path / "copy").tables) == ["marks", "attributions", "silver", "bronze"]
    copy = open_lake(str(tmp_path / "copy"))
    assert copy.files.read(rules_key("digest")) == b"{}"
    assert read_table(copy, MARKS) == read_table(small, MARKS)


@pytest.mark.slow
def test_a_restored_lake_goes_on_where_the_copy_ends(spark: SparkSession, tmp_path: Path) -> None:
    source, settings = generate_source(tmp_path / "source", events=3000, seed=41), Settings()
    later = tmp_path / "later"
    later.mkdir()
    _, *others = sorted(source.iterdir())
    for file in others:
        file.rename(later / file.name)
    lake, restored = open_lake(str(tmp_path / "lake")), open_lake(str(tmp_path / "restored"))
    run_in(spark, settings, lake, source, drain=False, measure=True)
    _copy(lake, tmp_path / "copy")
    for file in others[:2]:
        shutil.move(later / file.name, source / file.name)
        run_in(spark, settings, lake, source, drain=False, measure=True)
        _copy(lake, tmp_path / "copy")
    shutil.rmtree(lake.path)
    put_back(open_lake(str(tmp_path / "copy")), restored, report=_nothing)
    opened = {
        query.name: reset(OpenLake.of(restored, settings, spark), query.name, source).open_events for query in QUERIES
    }
    assert opened["attribute"] > 0, "nothing was open, so no state had to be made"
    for file in others[2:]:
        shutil.move(later / file.name, source / file.name)
    run_in(spark, settings, restored, source, drain=True, measure=True)
    assert_lake_equals_oracle(restored, source)
