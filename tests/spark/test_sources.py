"""Events of another form, mapped, give the same gold as the same events in adloom's own form."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from expectations.rejected_records.count import count_rejected
from spark_jobs.config.settings import Settings
from spark_jobs.contract.compatibility import Compatibility
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    BRONZE_EVENTS,
    CAMPAIGN_STATS,
    SESSIONS,
    SILVER_EVENTS,
    USER_STATUS,
    Column,
    Table,
)
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import RecordKind
from spark_jobs.queries.manifest import FILES
from spark_jobs.queries.registry import JOB_OF_QUERY
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.checkpoints import preflight
from tests.support.equality import good_day
from tests.support.foreign import SOURCE, first_numbers, publisher, settings_for, write_foreign
from tests.support.lakes import read_ledger, read_table, rows_by_name
from tests.support.lateness import PATIENT
from tests.support.oracle import Expected, assert_same_rows
from tests.support.runs import run_in
from tests.support.source_files import write_files

_NOISE = (
    b'{"v": 1, "type": "imp", "id": "old"}',
    b'{"v": 2, "type": "clk", "id": "no time", "uid": "u"}',
    b'{"v": 2, "type": "clk", "id": "bad time", "uid": "u", "ts": "today"}',
    b'{"v": 2, "type": "act", "id": "bad position", "uid": "u", "ts": 1736121600000000, "site": {"position": "top"}}',
    b"{",
)

pytestmark = pytest.mark.derived
_VERDICTS = {
    "no_source": 1,
    "missing_event_time": 1,
    "invalid_event_time": 1,
    "invalid_kept_column": 1,
    "malformed_json": 1,
}


def _with(table: Table, *names: tuple[str, str]) -> Table:
    return replace(table, columns=(*table.columns, *(Column(name, kind, "") for name, kind in names)))


_BY_PUBLISHER = {**PATIENT, "campaign_stats": {**PATIENT["campaign_stats"], "group_by": "publisher"}}
Day = tuple[Expected, list[list[dict[str, Any]]]]
"""What the good events of a day give, and these events, file by file."""


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("day")
    return good_day(folder, events=1500, seed=41)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, day: Day, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("foreign")
    source = write_foreign(folder / "source", day[1], _NOISE)
    own = open_lake(str(folder / "lake"))
    run_in(spark, settings_for(SOURCE, **_BY_PUBLISHER), own, source, measure=True)
    return own


def test_gold_equals_that_of_native_events(lake: Lake, day: Day) -> None:
    for table in (SILVER_EVENTS, ATTRIBUTIONS, SESSIONS, USER_STATUS):
        assert_same_rows(read_table(lake, table), day[0].rows(table), table)


def test_each_bad_record_has_a_verdict_and_a_reason(lake: Lake) -> None:
    rows = rows_by_name(lake, BRONZE_EVENTS)
    bad = [row for row in rows if row["verdict"] != "ok"]
    assert Counter(row["verdict"] for row in bad) == _VERDICTS
    reasons = {row["verdict"]: row["reason"] for row in bad}
    assert reasons["invalid_event_time"] == 'event_time = timestamp_micros($.ts): $.ts is "today"'
    assert reasons["missing_event_time"] == "event_time = timestamp_micros($.ts): $.ts is missing"
    assert reasons["invalid_kept_column"] == 'position = $.site.position: $.site.position is "top"'
    assert {row["source_name"] for row in rows if row["verdict"] == "ok"} == {"ads"}
    assert all(row["reason"] is None for row in rows if row["verdict"] == "ok")
    assert read_ledger(lake).quarantined == _VERDICTS


def test_the_report_counts_what_the_ledger_counts(spark: SparkSession, lake: Lake) -> None:
    found, ledger = count_rejected(OpenLake.of(lake, Settings(), spark), 3), read_ledger(lake)
    assert found is not None
    verdicts: Counter[str] = Counter()
    for source in found.sources:
        verdicts.update({one.verdict: one.records for one in source.verdicts})
        assert all(len(one.examples) == 1 for one in source.verdicts)
    assert (found.received, found.records, verdicts) == (ledger.received, ledger.total_quarantined, ledger.quarantined)


def test_kept_columns_come_to_silver_and_to_both_sides_of_attributions(lake: Lake, day: Day) -> None:
    first = first_numbers(day[1])
    silver = _with(SILVER_EVENTS, ("publisher", "STRING"), ("position", "BIGINT"))
    for row in read_table(lake, silver):
        number = first[row[0], row[1]]
        assert row[-2:] == (publisher(number), number)
    gold = _with(ATTRIBUTIONS, ("publisher", "STRING"), ("position", "BIGINT"), ("click_publisher", "STRING"))
    statuses: Counter[str] = Counter()
    for row in read_table(lake, gold):
        found = dict(zip(gold.column_names, row, strict=True))
        shown, clicked = (
            first.get((kind, found[column])) if found[time] is not None else None
            for kind, column, time in (
                ("impression", "impression_id", "impression_time"),
                ("click", "click_id", "click_time"),
            )
        )
        statuses[found["status"]] += 1
        assert (found["publisher"], found["position"]) == ((None, None) if shown is None else (publisher(shown), shown))
        assert found["click_publisher"] == (None if clicked is None else publisher(clicked))
    assert set(statuses) == {"clicked", "unclicked", "orphan_click"}


def test_windows_are_counted_by_a_column_of_the_impression(lake: Lake, day: Day) -> None:
    """By campaign, window and publisher, from the attributions that the oracle gives."""
    first, expected = first_numbers(day[1]), defaultdict[tuple[datetime, str, str], list[int]](lambda: [0, 0, 0])
    for row in day[0].rows(ATTRIBUTIONS):
        found = dict(zip(ATTRIBUTIONS.column_names, row, strict=True))
        if found["impression_time"] is None:
            continue
        site = publisher(first["impression", found["impression_id"]])
        shown = expected[_window(found["impression_time"]), found["campaign_id"], site]
        if found["click_id"] is None or found["click_id"] == _first_click(day[0], found["impression_id"]):
            shown[0] += 1
            shown[2] += found["cost_micros"]
        if found["click_id"] is not None:
            expected[_window(found["click_time"]), found["campaign_id"], site][1] += 1
    grouped = _with(CAMPAIGN_STATS, ("publisher", "STRING"))
    rows = rows_by_name(lake, grouped)
    assert {
        (row["window_start"], row["campaign_id"], row["publisher"]): [
            row["impressions"],
            row["clicks"],
            row["cost_micros"],
        ]
        for row in rows
    } == expected
    assert len(rows) == len(expected)


def _window(time: datetime) -> datetime:
    return time - timedelta(minutes=time.minute % 10, seconds=time.second, microseconds=time.microsecond)


def _first_click(expected: Expected, impression: str) -> str:
    """Of the clicks of an impression, one: it has a row with each of them, and counts once."""
    return min(str(row[7]) for row in expected.rows(ATTRIBUTIONS) if row[1] == impression and row[7] is not None)


def _sources(**keep: dict[str, str]) -> Settings:
    return settings_for({**SOURCE, "keep": keep}, **PATIENT)


@pytest.mark.slow
def test_a_column_can_be_kept_later_and_every_checkpoint_survives(
    spark: SparkSession, day: Day, tmp_path: Path
) -> None:
    source, own = tmp_path / "source", open_lake(str(tmp_path / "lake"))
    both = write_foreign(tmp_path / "both", day[1])
    source.mkdir()
    first, second = sorted(both.iterdir())
    first.rename(source / first.name)
    without, later = _sources(), _sources(publisher={"from": "$.site.domain"})
    run_in(spark, without, own, source, drain=False)
    assert read_ledger(own).rows(RecordKind.PENDING, account="attribute") > 0
    found = preflight(own, later, JOB_OF_QUERY, source=FILES)
    assert [(one.query, one.verdict) for one in found] == [("ingest", Compatibility.SAFE)]
    second.rename(source / second.name)
    run_in(spark, later, own, source)
    for table in (SILVER_EVENTS, ATTRIBUTIONS, SESSIONS):
        assert_same_rows(read_table(own, table), day[0].rows(table), table)
    known = len(day[1][0])
    kept = {row[-1] for row in read_table(own, _with(SILVER_EVENTS, ("publisher", "STRING")))}
    assert kept == {None, *(publisher(number) for number in range(known, known + 5))}


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        pytest.param({}, "publisher", id="left out"),
        pytest.param({"publisher": {"from": "$.site.position", "type": "bigint"}}, "publisher", id="another type"),
    ],
)
def test_a_column_that_is_kept_is_neither_left_out_nor_retyped(
    keep: dict[str, dict[str, str]], said: str, lake: Lake
) -> None:
    position = {"position": {"from": "$.site.position", "type": "bigint"}}
    found = preflight(lake, _sources(**keep, **position), ["ingest"], source=FILES)
    assert [one.verdict for one in found] == [Compatibility.BREAKING]
    assert said in found[0].why


@pytest.mark.slow
def test_events_without_a_user_are_attributed_and_in_no_session(spark: SparkSession, tmp_path: Path) -> None:
    names = ("shown", "clicked", "alone", "bought")
    kinds = ("impression", "click", "impression", "conversion")
    events = [
        {
            "event_type": kind,
            "event_id": name,
            "event_time": f"2025-01-06T10:0{minute}:00+00:00",
            "user_id": "somebody" if name == "alone" else None,
            "campaign_id": "c",
            "ad_id": "a",
            "cost_micros": 7,
            "impression_id": "shown",
            "conversion_type": "purchase",
            "value_micros": 7,
            "currency": "EUR",
        }
        for minute, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    settings = settings_for({**SOURCE, "keep": {}, "may_lack": "user_id"}, **PATIENT)
    own = open_lake(str(tmp_path / "lake"))
    run_in(spark, settings, own, write_foreign(tmp_path / "source", [events]), measure=True)
    attributions = {(row[0], row[1], row[5]) for row in read_table(own, ATTRIBUTIONS)}
    assert attributions == {("clicked", "shown", None), ("unclicked", "alone", "somebody")}
    assert [row[1] for row in read_table(own, SESSIONS)] == ["somebody"]
    assert {row[0] for row in read_table(own, USER_STATUS)} == {"somebody"}
    ledger = read_ledger(own)
    left = (RecordKind.USERLESS, RecordKind.LATE, RecordKind.PENDING)
    counts = [ledger.rows(kind, account="sessionize") for kind in left]
    assert (ledger.kept, counts) == (4, [2, 0, 0]), "a conversion is in no session, with or without a user"


def test_the_first_source_that_means_a_record_gets_it(spark: SparkSession, tmp_path: Path) -> None:
    clicks = {
        "event_type": "'click'",
        "when": "$.kind = 'c'",
        "map": {"event_id": "$.id", "event_time": "$.at", "user_id": "$.u", "impression_id": "$.i"},
    }
    visits = {
        "event_type": "'activity'",
        "map": {"event_id": "sha2(concat($.u, $.at), 256)", "event_time": "$.at", "user_id": "$.u", "data": "$.page"},
        "unknown": "quarantine",
    }
    records = [
        {"kind": "c", "id": "c1", "at": "2025-01-06T10:00:00Z", "u": "u1", "i": "i1"},
        {"at": "2025-01-06T10:01:00Z", "u": "u1", "page": "home"},
        {"at": "2025-01-06T10:01:00Z", "u": "u1", "page": "home"},
        {"at": "2025-01-06T10:02:00Z", "u": "u1", "page": "home", "more": 1},
    ]
    settings = Settings.model_validate({"source": {"clicks": clicks, "visits": visits}})
    source = write_files(tmp_path / "source", [[json.dumps(record).encode() for record in records]])
    own = open_lake(str(tmp_path / "lake"))
    run_in(spark, settings, own, source)
    rows = rows_by_name(own, BRONZE_EVENTS)
    assert Counter((row["source_name"], row["verdict"]) for row in rows) == {
        ("clicks", "ok"): 1,
        ("visits", "ok"): 2,
        ("visits", "unknown_field"): 1,
    }
    ledger = read_ledger(own)
    assert (ledger.kept, ledger.duplicates) == (2, 1)
