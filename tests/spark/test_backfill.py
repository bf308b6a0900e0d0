"""A recomputed past window equals an independent computation, and exactly the rows that differ are reported."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.backfill import Difference, Window, differences_key, recomputed_key
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.sections import IngestSettings
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import ATTRIBUTIONS, SESSIONS, Table
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.jobs.backfill import Comparison, _first_of_each, backfill
from spark_jobs.lake.layout import Lake
from spark_jobs.runtime.lakes import open_lake
from tests.support.lakes import read_table
from tests.support.oracle import Row, assert_same_rows, comparable, expected_tables
from tests.support.runs import run_in

_FILE_BY_FILE = Settings(ingest=IngestSettings(max_bytes_per_batch=1))
_DAY = datetime(2025, 1, 6, tzinfo=UTC)
_WHOLE = Window(_DAY - timedelta(days=1), _DAY + timedelta(days=2))
_TIMES: dict[str, Callable[[Row], datetime]] = {
    "attributions": lambda row: row[2] or row[8],
    "sessions": lambda row: row[1],
}
"""The event time that assigns an oracle row to a window."""
Expect = dict[Table, list[Row]]


@dataclass
class _Day:
    """A day with late events and some still open, its batch computation, and a first comparison."""

    lake: Lake
    expected: Expect
    found: list[Comparison]


@pytest.fixture(scope="module")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Day:
    folder = tmp_path_factory.mktemp("day")
    source, lake = folder / "source", open_lake(str(folder / "lake"))
    generate(GeneratorSpec(events=2500, seed=59, files=8, late=0.05, duplicates=0.05, malformed=0.01), source)
    run_in(spark, _FILE_BY_FILE, lake, source, drain=False)
    expected = expected_tables(source, _FILE_BY_FILE, datetime.now(UTC))
    rows = {table: expected.rows(table) for table in (ATTRIBUTIONS, SESSIONS)}
    return _Day(lake, rows, backfill(spark, _FILE_BY_FILE, lake, _WHOLE))


def _within(rows: list[Row], table: Table, window: Window) -> list[Row]:
    begin, end = (time.astimezone(UTC).replace(tzinfo=None) for time in (window.begin, window.end))
    return [row for row in rows if begin <= _TIMES[table.name](row) < end]


def _recomputed(lake: Lake, window: Window, table: Table) -> list[Row]:
    return read_table(lake, replace(table, path=recomputed_key(window, table), partition_by=()))


def test_late_events_differ_and_what_is_not_due_is_open(day: _Day) -> None:
    for comparison in day.found:
        table = comparison.table
        due = day.expected[table]
        assert_same_rows(_recomputed(day.lake, _WHOLE, table), due, table)
        live = Counter(map(repr, comparable(read_table(day.lake, table), table)))
        counts = comparison.counts
        same = (live & Counter(map(repr, due))).total()
        assert counts[Difference.SAME] == same
        assert counts[Difference.CHANGED] + counts[Difference.ONLY_LIVE] == live.total() - same
        others = (Difference.CHANGED, Difference.ONLY_RECOMPUTED, Difference.OPEN)
        assert sum(counts[kind] for kind in others) == len(due) - same
        assert comparison.differing > 0, "the input holds nothing late: the test shows nothing"
        assert counts[Difference.OPEN] > 0, "the input leaves nothing open: the test shows nothing"


def test_exactly_the_lost_added_and_changed_rows_are_reported(spark: SparkSession, day: _Day, tmp_path: Path) -> None:
    lake = open_lake(str(shutil.copytree(day.lake.path, tmp_path / "lake")))
    before = {one.table: one.counts for one in day.found}
    same = spark.read.format("delta").load(lake.uri(differences_key(_WHOLE, ATTRIBUTIONS))).where("difference = 'same'")
    (clicked,) = same.where("live.status = 'clicked'").orderBy("subject_id").limit(1).collect()
    (unclicked,) = same.where("live.status = 'unclicked'").orderBy("subject_id").limit(1).collect()
    attributions = f"delta.`{lake.table(ATTRIBUTIONS)}`"
    spark.sql(f"UPDATE {attributions} SET cost_micros = cost_micros + 1 WHERE click_id = '{clicked.subject_id}'")
    spark.sql(f"DELETE FROM {attributions} WHERE impression_id = '{unclicked.subject_id}' AND click_id IS NULL")
    live = spark.read.format("delta").load(lake.table(SESSIONS))
    session = live.limit(1).selectExpr("* EXCEPT (session_id)", "'made up' AS session_id").select(*live.columns)
    session.write.format("delta").mode("append").save(lake.table(SESSIONS))

    found = backfill(spark, _FILE_BY_FILE, lake, _WHOLE, shown=10_000)

    more = {
        ATTRIBUTIONS: {Difference.SAME: -2, Difference.CHANGED: 1, Difference.ONLY_RECOMPUTED: 1},
        SESSIONS: {Difference.ONLY_LIVE: 1},
    }
    for one in found:
        due = {kind: count + more[one.table].get(kind, 0) for kind, count in before[one.table].items()}
        assert one.counts == due
        assert len(one.first) == one.differing
    (changed,) = [row for row in found[0].first if row[2] and json.loads(row[2])["click_id"] == clicked.subject_id]
    assert (changed[0], changed[1]) == (Difference.CHANGED, ["cost_micros"])
    assert json.loads(changed[2] or "")["cost_micros"] == json.loads(changed[3] or "")["cost_micros"] + 1
    lost = [json.loads(row[3])["impression_id"] for row in found[0].first if row[3] and row[2] is None]
    assert unclicked.subject_id in lost
    compared = spark.read.format("delta").load(lake.uri(differences_key(_WHOLE, SESSIONS)))
    (only,) = compared.where("session_id = 'made up'").collect()
    assert (only["difference"], only["recomputed"]) == ("only live", None)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("events/0/9", "events/0/10", id="kafka"),
        pytest.param("file:///in/a.jsonl#bytes=900-1000", "file:///in/a.jsonl#bytes=1000-1100", id="file"),
    ],
)
def test_of_copies_in_one_batch_the_first_is_the_one_at_the_lower_offset(
    spark: SparkSession, first: str, second: str
) -> None:
    names = ("event_type", "event_id", "event_time", "ingest_time", "source", "verdict", "raw")
    copies = [
        ("click", "c1", _DAY + timedelta(seconds=number), _DAY, source, "ok", "")
        for number, source in enumerate((first, second))
    ]
    found = _first_of_each(spark.createDataFrame(copies, names), F.lit(True)).collect()
    assert [row["event_time"].astimezone(UTC) for row in found] == [_DAY]


@pytest.mark.slow
def test_adjacent_windows_contain_each_row_once(spark: SparkSession, day: _Day) -> None:
    lake, expected = day.lake, day.expected
    chance = random.Random(7)
    # Cuts where it hurts: at impressions, at sessions' first events, and one microsecond after them.
    times = [row[2] for row in expected[ATTRIBUTIONS] if row[2]] + [row[1] for row in expected[SESSIONS]]
    found = [time.replace(tzinfo=UTC) for time in chance.sample(times, 8)]
    cuts = sorted({*found[:4], *(time + timedelta(microseconds=1) for time in found[4:])})
    edges = [_WHOLE.begin, *cuts, _WHOLE.end]
    whole: Expect = {ATTRIBUTIONS: [], SESSIONS: []}
    for window in map(Window, edges, edges[1:]):
        for comparison in backfill(spark, _FILE_BY_FILE, lake, window):
            rows = _recomputed(lake, window, comparison.table)
            assert_same_rows(rows, _within(expected[comparison.table], comparison.table, window), comparison.table)
            whole[comparison.table] += rows
    for table, rows in whole.items():
        assert_same_rows(rows, expected[table], table)


@pytest.mark.parametrize(
    ("begin", "end", "message"),
    [
        (_DAY, _DAY, "must end later"),
        (_DAY, _DAY - timedelta(hours=1), "must end later"),
        (_DAY.replace(tzinfo=None), _DAY, "no zone"),
        (_DAY, datetime(2025, 1, 7), "no zone"),  # noqa: DTZ001 that is the mistake
    ],
)
def test_an_invalid_window_is_refused(begin: datetime, end: datetime, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Window(begin, end)
