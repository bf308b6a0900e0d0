"""``gold/days`` of real lakes: when their days are complete, what restates them, and that nothing else writes."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, DAYS, RESTATEMENTS, SESSIONS
from spark_jobs.days import update as days_module
from spark_jobs.days.day import DAYS_SEEN, Day, DayStatus, read_days
from spark_jobs.days.evidence import DaysSnapshot, take_snapshot
from spark_jobs.days.restated import changes_since
from spark_jobs.days.status import DayChange, TableProgress
from spark_jobs.days.update import update_days, update_days_with
from spark_jobs.errors import LakeInUseError
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import append_rows
from tests.support.lakes import read_table
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.timeline import Case, Run

pytestmark = pytest.mark.derived

_FILE_BY_FILE = Settings.model_validate({"ingest": ONE_BY_ONE})
_LATE = Case(
    "late",
    """
    2025-01-08T10:46:00  act  l0 u0  # a batch drops what is behind the watermark of the one before
    ---
    2025-01-06T12:00:00  imp  l1 u1 c1 cost=250
    2025-01-06T12:01:00  clk  l2 u1 ->l1
    2025-01-06T23:59:59  imp  l3 u2 c1 cost=250
    2025-01-07T00:00:01  clk  l4 u2 ->l3
    2025-01-07T12:00:00  act  l5 u3
    2025-01-08T02:00:00  imp  l6 u4 c2 cost=70
    """,
    Run("days", _FILE_BY_FILE),
)
"""Late for every table; on two days that are complete by then, and on one that is not."""
_GOLD = ("attributions", "sessions")
"""Of the tables that are made in seconds; what is told of the others is tested by itself."""
_TIME_OF = {"attributions": ("impression_time", "click_time"), "sessions": ("session_start",)}


def _no_spark() -> AbstractContextManager[OpenLake]:
    raise AssertionError("Spark was started, and nothing has changed")


def _words(days: Sequence[Day], table: str) -> list[str]:
    return [day.words for day in days if day.table_name == table]


@dataclass
class _Repaired:
    """A lake of two days and a bit, drained: its days before a repair, and after."""

    lake: Lake
    before: list[Day]
    after: list[Day]


def _run_files(spark: SparkSession, lake: Lake, source: Path, case: Case, *, drain: bool) -> None:
    """Adds each file of ``case`` to ``source`` and runs it by itself: within a run a query may take several at once."""
    files = case.files()
    for number, records in enumerate(files, start=1):
        (source / f"more-{len(list(source.iterdir())):04}.jsonl").write_bytes(b"\n".join(records) + b"\n")
        run_in(spark, _FILE_BY_FILE, lake, source, drain=drain and number == len(files))


@pytest.fixture(scope="module")
def repaired(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Repaired:
    folder = tmp_path_factory.mktemp("days")
    source, lake = folder / "source", open_lake(str(folder / "lake"))
    generate(GeneratorSpec(events=400, seed=23, files=1, hours=62, late=0), source)
    run_in(spark, _FILE_BY_FILE, lake, source, drain=False)
    _run_files(spark, lake, source, _LATE, drain=True)
    before = update_days(lake, _FILE_BY_FILE, lambda: nullcontext(OpenLake.of(lake, _FILE_BY_FILE, spark)))
    assert repair(OpenLake.of(lake, _FILE_BY_FILE, spark))
    after = update_days(lake, _FILE_BY_FILE, lambda: nullcontext(OpenLake.of(lake, _FILE_BY_FILE, spark)))
    return _Repaired(lake, before, after)


def test_each_table_has_each_day_and_those_that_have_passed_are_complete(repaired: _Repaired) -> None:
    assert {day.table_name for day in repaired.before} == set(_GOLD)
    for table in _GOLD:
        dates = [day.event_date for day in repaired.before if day.table_name == table]
        assert dates == [date(2025, 1, 6), date(2025, 1, 7), date(2025, 1, 8)]
        assert _words(repaired.before, table) == ["complete", "complete", "open"]
    assert all(day.watermark and day.watermark > day.end for day in repaired.before if day.complete_at)


def _told(lake: Lake) -> Iterator[tuple[dict[str, Any], set[date]]]:
    """Each change that was made, and the dates of its rows before and after."""
    for values in read_table(lake, RESTATEMENTS):
        row = dict(zip(RESTATEMENTS.column_names, values, strict=True))
        sides = [json.loads(text) for text in (row["before"], row["after"]) if text]
        times = [next(filter(None, (side[name] for name in _TIME_OF[row["table_name"]]))) for side in sides]
        yield row, {datetime.fromisoformat(time).date() for time in times}


def test_days_that_a_repair_changed_are_restated_and_no_others(repaired: _Repaired) -> None:
    rows, clicks = Counter[tuple[str, date]](), Counter[tuple[str, date]]()
    for row, dates in _told(repaired.lake):
        rows.update((row["table_name"], day) for day in dates)
        clicks[row["table_name"], row["row_time"].date()] += row["clicks"] or 0
    complete = {day.key for day in repaired.before if day.complete_at}
    due = complete & rows.keys()
    assert {day.key for day in repaired.after if day.status is DayStatus.RESTATED} == due
    assert len(due) > len(_GOLD), "too few days were restated to show anything"
    assert rows.keys() - complete, "no open day was changed: the test does not show that it stays open"
    for day in repaired.after:
        expected = (1, rows[day.key], clicks[day.key]) if day.key in due else (0, 0, 0)
        assert (day.restated, day.changes, day.clicks) == expected, day.key
    assert any(day.clicks for day in repaired.after)


_DECIDED = datetime(2026, 3, 9, 1, 2, 3, 4, UTC)


def _restatement(repair: int, table: str, row_time: str, **more: Any) -> tuple[Any, ...]:
    """A row of gold/restatements: by default an update of a row whose times do not change."""
    name = {"attributions": "click_time", "campaign_stats": "window_end", "user_status": "since"}[table]
    row = {
        "repair": repair,
        "table_name": table,
        "outcome": "applied",
        "before": json.dumps({name: row_time}),
        "after": json.dumps({name: row_time}),
        "row_time": datetime.fromisoformat(row_time),
        "decided_at": _DECIDED + timedelta(hours=repair),
        **more,
    }
    return tuple(row.get(column) for column in RESTATEMENTS.column_names)


def test_restatements_count_on_the_days_of_their_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    pair = {"impression_time": "2026-03-01T23:50:00.000000Z", "click_time": "2026-03-02T00:05:00.000000Z"}
    told = [
        # An orphan click becomes a pair, which is a row of the day before.
        _restatement(
            2, "attributions", pair["impression_time"], before=json.dumps({**pair, "impression_time": None}),
            after=json.dumps(pair), clicks=1,
        ),
        _restatement(2, "attributions", "2026-03-02T10:00:00Z", before=None, clicks=3),
        _restatement(3, "attributions", "2026-03-02T11:00:00Z", after=None, clicks=-1),
        _restatement(2, "campaign_stats", "2026-03-01T23:59:59.999999Z", impressions=4, clicks=1, cost_micros=-70),
        _restatement(2, "campaign_stats", "2026-03-02T00:00:00Z", impressions=2, clicks=0, cost_micros=10**15),
        _restatement(2, "user_status", "2026-03-02T00:00:00Z"),
        _restatement(2, "campaign_stats", "2026-03-01T12:00:00Z", outcome="frozen", cost_micros=10**9),
        _restatement(1, "campaign_stats", "2026-03-01T12:00:00Z", cost_micros=10**9),  # before the day was complete
    ]  # fmt: skip
    append_rows(spark.createDataFrame(told, RESTATEMENTS.ddl), lake, RESTATEMENTS, CommitNote(writer="t", batch=1))
    tables = ("attributions", "campaign_stats", "user_status")
    look = DaysSnapshot(
        days=[Day("attributions", date(2026, 3, 1), DayStatus.COMPLETE, complete_at=_DECIDED, repair=1)],
        standings=[TableProgress(name, 0, None, None, has_upstream=True, holds=timedelta()) for name in tables],
        silver_version=None,
        event_dates=frozenset(),
        passed=None,
        restatements_version=0,
        has_more_restatements=True,
        last_repair=3,
        audits=[],
    )
    first, second = date(2026, 3, 1), date(2026, 3, 2)
    at = {number: _DECIDED + timedelta(hours=number) for number in (2, 3)}
    assert sorted(changes_since(OpenLake.of(lake, Settings(), spark), look), key=repr) == [
        DayChange("attributions", first, 2, at[2], rows=1, clicks=1),
        DayChange("attributions", second, 2, at[2], rows=2, clicks=3),
        DayChange("attributions", second, 3, at[3], rows=1, clicks=-1),
        DayChange("campaign_stats", first, 2, at[2], rows=1, impressions=4, clicks=1, cost_micros=-70),
        DayChange("campaign_stats", second, 2, at[2], rows=1, impressions=2, cost_micros=10**15),
        DayChange("user_status", second, 2, at[2], rows=1),
    ]


def test_restatements_count_on_the_local_days_of_their_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    told = [
        _restatement(2, "campaign_stats", "2026-03-31T21:59:59.999999Z", impressions=1),
        _restatement(2, "campaign_stats", "2026-03-31T22:00:00Z", impressions=2),
    ]
    append_rows(spark.createDataFrame(told, RESTATEMENTS.ddl), lake, RESTATEMENTS, CommitNote(writer="t", batch=1))
    settings = Settings.model_validate({"days": {"zone": "Europe/Berlin"}})
    standing = TableProgress("campaign_stats", 0, None, None, has_upstream=True, holds=timedelta())
    look = replace(take_snapshot(lake, settings, None), standings=[standing], last_repair=1)
    found = changes_since(OpenLake.of(lake, settings, spark), look)
    assert {(one.event_date, one.impressions) for one in found} == {(date(2026, 3, 31), 1), (date(2026, 4, 1), 2)}


def test_another_zone_begins_the_days_again(spark: SparkSession, repaired: _Repaired, tmp_path: Path) -> None:
    lake = open_lake(str(shutil.copytree(repaired.lake.path, tmp_path / "lake")))
    berlin = Settings.model_validate({**_FILE_BY_FILE.model_dump(), "days": {"zone": "Europe/Berlin"}})

    def days_with(settings: Settings) -> list[Day]:
        return update_days(lake, settings, lambda: nullcontext(OpenLake.of(lake, settings, spark)))

    local = days_with(berlin)
    assert {day.zone for day in local} == {"Europe/Berlin"}
    assert local == read_days(lake)
    assert {day.event_date for day in local} >= {day.event_date for day in repaired.after}
    assert DayStatus.COMPLETE in {day.status for day in local}
    assert update_days(lake, berlin, _no_spark) == local
    again = days_with(_FILE_BY_FILE)
    assert [day.key for day in again] == [day.key for day in repaired.after]


def test_days_that_an_earlier_version_wrote_get_their_zone(
    spark: SparkSession, repaired: _Repaired, tmp_path: Path
) -> None:
    lake = open_lake(str(shutil.copytree(repaired.lake.path, tmp_path / "lake")))
    earlier = spark.read.format("delta").load(lake.table(DAYS)).drop("zone").where("event_date <> '2025-01-08'")
    rows = spark.createDataFrame(earlier.collect(), earlier.schema)
    shutil.rmtree(lake.path / DAYS.path)
    rows.write.format("delta").save(lake.table(DAYS))
    found = update_days(lake, _FILE_BY_FILE, lambda: nullcontext(OpenLake.of(lake, _FILE_BY_FILE, spark)))
    assert [(day.key, day.restated, day.zone) for day in found] == [
        (day.key, day.restated, "UTC") for day in repaired.after
    ]
    assert read_days(lake) == found


def test_a_second_update_writes_nothing_and_needs_no_spark(repaired: _Repaired) -> None:
    version = repaired.lake.newest_commit(DAYS.path)
    assert update_days(repaired.lake, _FILE_BY_FILE, _no_spark) == repaired.after
    assert repaired.lake.newest_commit(DAYS.path) == version


def test_two_readers_agree_on_the_table(spark: SparkSession, repaired: _Repaired) -> None:
    by_log = [tuple(row) for row in read_table(repaired.lake, DAYS)]
    own = [
        (day.table_name, day.event_date, day.status.value, day.restated, day.cost_micros, day.version)
        for day in read_days(repaired.lake)
    ]
    place = [DAYS.column_names.index(name) for name in ("table_name", "event_date", "status", "restated")]
    place += [DAYS.column_names.index(name) for name in ("cost_micros", "version")]
    assert sorted(own) == sorted(tuple(row[at] for at in place) for row in by_log)
    by_spark = spark.read.format("delta").load(repaired.lake.table(DAYS))
    assert by_spark.columns == list(DAYS.column_names)
    assert by_spark.count() == len(own)


def test_what_was_seen_can_be_lost(spark: SparkSession, repaired: _Repaired) -> None:
    version = repaired.lake.newest_commit(DAYS.path)
    repaired.lake.files.delete([DAYS_SEEN])
    assert (
        update_days(repaired.lake, _FILE_BY_FILE, lambda: nullcontext(OpenLake.of(repaired.lake, _FILE_BY_FILE, spark)))
        == repaired.after
    )
    assert repaired.lake.newest_commit(DAYS.path) == version
    assert update_days(repaired.lake, _FILE_BY_FILE, _no_spark) == repaired.after


def _run(spark: SparkSession, lake: Lake, source: Path, timeline: str) -> list[Day]:
    """Adds the files of ``timeline`` to ``source``, runs them, and gives the days."""
    case = Case("days", timeline, Run("days", _FILE_BY_FILE))
    source.mkdir(exist_ok=True)
    _run_files(spark, lake, source, case, drain=False)
    return update_days(lake, _FILE_BY_FILE, lambda: nullcontext(OpenLake.of(lake, _FILE_BY_FILE, spark)))


@pytest.mark.slow
def test_a_day_is_complete_just_when_its_last_row_is_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, source = open_lake(str(tmp_path / "lake")), tmp_path / "source"
    # A user who is never silent for as long as the gap, from before midnight on.
    chain = [f"2024-05-02T{minute // 60:02}:{minute % 60:02}:00  act  a{minute} bot" for minute in range(1, 240, 4)]

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(days_module, "replace_all", die)
        with pytest.raises(KeyboardInterrupt):
            # A batch runs under the watermark that the one before left: 3 h behind the newest event.
            _run(
                spark,
                lake,
                source,
                "\n".join(
                    [
                        "23:58:00                  act  a0 bot",
                        "23:59:59.999999           imp  i1 u1 c1",
                        "2024-05-02T00:00:00.003   imp  i2 u2 c1",
                        "---",
                        *chain,
                        "2024-05-02T04:00:00.001   act  b1 u3",
                        "---",
                        "2024-05-02T04:00:00.001   act  b2 u3",
                    ]
                ),
            )
    assert read_days(lake) == [], "it died before its commit"
    with hold_job(lake, "days", _FILE_BY_FILE.s3), pytest.raises(LakeInUseError):
        update_days_with(OpenLake.of(lake, _FILE_BY_FILE, spark))
    days = update_days(lake, _FILE_BY_FILE, lambda: nullcontext(OpenLake.of(lake, _FILE_BY_FILE, spark)))
    assert (_words(days, "attributions"), _words(days, "sessions")) == (["open"] * 2, ["open"] * 2)

    # One millisecond more.
    days = _run(spark, lake, source, "2024-05-02T04:00:00.002 act b3 u3\n---\n2024-05-02T04:00:00.002 act b4 u3")
    assert _words(days, "attributions") == ["complete", "open"]
    emitted = {row[1].rpartition("/")[2] for row in read_table(lake, ATTRIBUTIONS)}
    assert emitted == {"i1"}, "the last row of the day is there, and the first of the next is not"
    watermark = next(day for day in days if day.table_name == "attributions").watermark
    assert watermark == datetime(2024, 5, 2, 1, 0, 0, 2000, UTC)
    assert _words(days, "sessions") == ["open", "open"], "the watermark has passed, and the session goes on"

    days = _run(spark, lake, source, "2024-05-02T06:00:00 act b5 u1\n---\n2024-05-02T06:00:00 act b6 u1")
    assert _words(days, "sessions") == ["complete", "open"]
    starts = [row[2] for row in read_table(lake, SESSIONS) if row[1].endswith("bot")]
    assert starts == [datetime(2024, 5, 1, 23, 58)]  # noqa: DTZ001 naive means UTC in what is read
