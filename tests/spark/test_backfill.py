"""A window of the past computed anew is what the oracle says, and each row that differs is told, and no other."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contracts.backfill import Difference, Window, differences_key, recomputed_key
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.jobs import SESSIONIZE
from spark_jobs.contracts.lake import Lake, progress_key
from spark_jobs.contracts.sections import DeduplicateSettings, IngestSettings, SessionizeSettings
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import ATTRIBUTIONS, SESSIONS, Table
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.jobs.backfill import Comparison, backfill
from spark_jobs.runtime.lakes import open_lake
from tests.support.equality import generate_source
from tests.support.lakes import RunLake, read_table
from tests.support.oracle import Row, assert_same_rows, comparable, expected_tables
from tests.support.runs import run_in

_DAY = datetime(2025, 1, 6, tzinfo=UTC)
_TIMES: dict[str, Callable[[Row], datetime]] = {
    "attributions": lambda row: row[2] or row[8],
    "sessions": lambda row: row[1],
}
"""Of a row of the oracle, the event time that says in which window it lies."""
Expect = dict[Table, list[Row]]


@pytest.fixture(scope="module")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Expect]:
    """A drained day in which nothing is late, and what the oracle makes of it."""
    folder = tmp_path_factory.mktemp("day")
    source, lake = generate_source(folder / "source", events=3000, seed=58), open_lake(str(folder / "lake"))
    run_in(spark, Settings(), lake, source)
    expected = expected_tables(source, Settings(), datetime.now(UTC))
    return lake, {table: expected.rows(table) for table in (ATTRIBUTIONS, SESSIONS)}


def _within(rows: list[Row], table: Table, window: Window) -> list[Row]:
    begin, end = (time.astimezone(UTC).replace(tzinfo=None) for time in (window.begin, window.end))
    return [row for row in rows if begin <= _TIMES[table.name](row) < end]


def _recomputed(lake: Lake, window: Window, table: Table) -> list[Row]:
    return read_table(lake, replace(table, path=recomputed_key(window, table), partition_by=()))


def _by_table(found: list[Comparison]) -> dict[Table, dict[Difference, int]]:
    return {one.table: {kind: count for kind, count in one.counts.items() if count} for one in found}


def test_windows_that_meet_hold_each_row_once_and_nothing_differs(
    spark: SparkSession, day: tuple[Lake, Expect]
) -> None:
    lake, expected = day
    chance = random.Random(7)
    # Cuts where it hurts: at an impression, at a session's first event, and one microsecond after another's.
    impression = chance.choice([row[2] for row in expected[ATTRIBUTIONS] if row[2]])
    session, other = chance.sample([row[1] for row in expected[SESSIONS]], 2)
    cuts = sorted(time.replace(tzinfo=UTC) for time in (impression, session, other + timedelta(microseconds=1)))
    edges = [_DAY - timedelta(days=1), *cuts, _DAY + timedelta(days=2)]
    whole: Expect = {ATTRIBUTIONS: [], SESSIONS: []}
    for window in map(Window, edges, edges[1:]):
        counts = _by_table(backfill(spark, Settings(), lake, window))
        for table in whole:
            rows = _recomputed(lake, window, table)
            due = _within(expected[table], table, window)
            assert_same_rows(rows, due, table)
            assert counts[table] == ({Difference.SAME: len(due)} if due else {})
            whole[table] += rows
    for table, rows in whole.items():
        assert_same_rows(rows, expected[table], table)


def test_rows_lost_added_and_changed_are_told_and_no_other(
    spark: SparkSession, day: tuple[Lake, Expect], tmp_path: Path
) -> None:
    lake = open_lake(str(shutil.copytree(day[0].path, tmp_path / "lake")))
    window = Window(_DAY, _DAY + timedelta(days=1))
    rows = {table: _within(day[1][table], table, window) for table in (ATTRIBUTIONS, SESSIONS)}
    clicked = next(row for row in rows[ATTRIBUTIONS] if row[0] == "clicked")
    unclicked = next(row for row in rows[ATTRIBUTIONS] if row[0] == "unclicked")
    attributions = f"delta.`{lake.table(ATTRIBUTIONS)}`"
    spark.sql(f"UPDATE {attributions} SET cost_micros = cost_micros + 1 WHERE click_id = '{clicked[7]}'")
    spark.sql(f"DELETE FROM {attributions} WHERE impression_id = '{unclicked[1]}' AND click_id IS NULL")
    live = spark.read.format("delta").load(lake.table(SESSIONS))
    session = live.limit(1).selectExpr("* EXCEPT (session_id)", "'made up' AS session_id").select(*live.columns)
    session.write.format("delta").mode("append").save(lake.table(SESSIONS))

    found = backfill(spark, Settings(), lake, window)

    assert _by_table(found) == {
        ATTRIBUTIONS: {
            Difference.SAME: len(rows[ATTRIBUTIONS]) - 2,
            Difference.CHANGED: 1,
            Difference.ONLY_RECOMPUTED: 1,
        },
        SESSIONS: {Difference.SAME: len(rows[SESSIONS]), Difference.ONLY_LIVE: 1},
    }
    changed, lost = found[0].first
    assert (changed[0], changed[1]) == (Difference.CHANGED, ["cost_micros"])
    assert json.loads(changed[2] or "")["cost_micros"] == json.loads(changed[3] or "")["cost_micros"] + 1
    assert (lost[0], lost[2], json.loads(lost[3] or "")["impression_id"]) == (
        Difference.ONLY_RECOMPUTED,
        None,
        unclicked[1],
    )
    told = spark.read.format("delta").load(lake.uri(differences_key(window, SESSIONS)))
    (only,) = told.where("difference = 'only live'").collect()
    assert only["session_id"] == only["live"]["session_id"] == "made up"
    assert only["recomputed"] is None


def test_what_came_too_late_for_the_live_job_is_what_differs(
    spark: SparkSession, run_lake: RunLake, tmp_path: Path
) -> None:
    spec = GeneratorSpec(events=2500, seed=59, files=8, late=0.05, duplicates=0.05, malformed=0.01)
    generate(spec, tmp_path / "source")
    settings = Settings(
        ingest=IngestSettings(max_bytes_per_batch=1),
        deduplicate=DeduplicateSettings(watermark=timedelta(minutes=30)),
        sessionize=SessionizeSettings(watermark=timedelta(minutes=10)),
    )
    lake = run_lake(tmp_path / "source", settings=settings)
    window = Window(_DAY - timedelta(days=1), _DAY + timedelta(days=2))
    found = backfill(spark, settings, lake, window)
    in_time = expected_tables(tmp_path / "source", settings, datetime.now(UTC))
    for comparison in found:
        table = comparison.table
        due = in_time.rows(table)
        assert_same_rows(_recomputed(lake, window, table), due, table)
        live, recomputed = (set(map(repr, rows)) for rows in (comparable(read_table(lake, table), table), due))
        assert comparison.counts[Difference.SAME] == len(live & recomputed)
        assert comparison.differing > 0, "the input holds nothing late: the test shows nothing"
        assert comparison.counts[Difference.OPEN] == 0


def test_what_the_live_job_has_not_come_to_is_open(spark: SparkSession, run_lake: RunLake, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=2000, seed=60)
    lake = run_lake(source, drain=False)
    window = Window(_DAY - timedelta(days=1), _DAY + timedelta(days=2))
    found = _by_table(backfill(spark, Settings(), lake, window))
    expected = expected_tables(source, Settings(), datetime.now(UTC))
    for table, counts in found.items():
        live = len(read_table(lake, table))
        assert counts == {Difference.SAME: live, Difference.OPEN: len(expected.rows(table)) - live}
        assert counts[Difference.OPEN] > 0
    # A job that has told nothing has come to nothing.
    lake.files.delete([progress_key(SESSIONIZE)])
    again = _by_table(backfill(spark, Settings(), lake, window))
    assert again == found


@pytest.mark.parametrize(
    ("begin", "end", "told"),
    [
        (_DAY, _DAY, "must end later"),
        (_DAY, _DAY - timedelta(hours=1), "must end later"),
        (_DAY.replace(tzinfo=None), _DAY, "no zone"),
        (_DAY, datetime(2025, 1, 7), "no zone"),  # noqa: DTZ001 that is the mistake
    ],
)
def test_what_is_no_window_is_refused(begin: datetime, end: datetime, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        Window(begin, end)
