"""An id that stands for thousands of people, through all jobs: it is the user of nothing."""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    BRONZE_EVENTS,
    PATHS,
    SESSIONS,
    SILVER_EVENTS,
    USER_STATUS,
    Table,
)
from spark_jobs.credit.run import credit
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import RecordKind
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.traffic_rules.evaluate import expected_marks
from tests.support.invalid import rule_set
from tests.support.lakes import read_ledger, read_table, rows_by_name
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.runs import run_in
from tests.support.source_files import write_files

pytestmark = pytest.mark.slow

_NOBODY = "00000000-0000-0000-0000-000000000000"
_MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
_SETTINGS = Settings()


def _event(kind: str, name: str, minute: float, user: str, **fields: Any) -> dict[str, Any]:
    time = (_MIDNIGHT + timedelta(minutes=minute)).isoformat()
    return {"event_type": kind, "event_id": name, "event_time": time, "user_id": user, **fields}


def _shown(name: str, minute: float, user: str) -> dict[str, Any]:
    return _event("impression", f"i{name}", minute, user, campaign_id="c", ad_id="a", cost_micros=7)


def _clicked(name: str, minute: float, user: str) -> dict[str, Any]:
    return _event("click", f"k{name}", minute, user, impression_id=f"i{name}")


def _bought(name: str, minute: float, user: str) -> dict[str, Any]:
    money = {"conversion_type": "purchase", "value_micros": 1_000_000, "currency": "EUR"}
    return _event("conversion", f"p{name}", minute, user, **money)


def _of_many_people() -> list[dict[str, Any]]:
    """An event every 4 minutes of a day, among them 20 impressions with their clicks; and 5 conversions."""
    visits = [_event("activity", f"v{n}", 4 * n, _NOBODY) for n in range(360)]
    ads = [build(f"{n}", 60 * n + after, _NOBODY) for n in range(20) for after, build in ((1, _shown), (2, _clicked))]
    return [*visits, *ads, *(_bought(f"{n}", 240 * n + 130, _NOBODY) for n in range(5))]


def _of_one_person() -> list[dict[str, Any]]:
    return [_shown("u", 600, "u"), _clicked("u", 601, "u"), _event("activity", "vu", 603, "u"), _bought("u", 620, "u")]


@dataclass(frozen=True)
class _Day:
    lake: Lake
    source: Path

    def users(self, table: Table) -> Counter[str | None]:
        place = table.column_names.index("user_id")
        return Counter(row[place] for row in read_table(self.lake, table))


@pytest.fixture(scope="module")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Day:
    folder = tmp_path_factory.mktemp("nobody")
    events = sorted([*_of_many_people(), *_of_one_person()], key=lambda one: str(one["event_time"]))
    source = write_files(folder / "source", [[json.dumps(one).encode() for one in events]])
    lake = open_lake(str(folder / "lake"))
    run_in(spark, _SETTINGS, lake, source, measure=True)
    credit(OpenLake.of(lake, _SETTINGS, spark))
    return _Day(lake, source)


def test_the_record_is_kept_as_it_came_and_its_event_has_no_user(day: _Day) -> None:
    names = [BRONZE_EVENTS.column_names.index(name) for name in ("user_id", "raw")]
    users = {
        (user, json.loads(raw)["user_id"])
        for user, raw in ([row[n] for n in names] for row in read_table(day.lake, BRONZE_EVENTS))
    }
    assert users == {(None, _NOBODY), ("u", "u")}
    assert day.users(SILVER_EVENTS) == {None: 405, "u": 4}


def test_there_is_no_session_without_end_and_no_status(day: _Day) -> None:
    (session,) = read_table(day.lake, SESSIONS)
    row = dict(zip(SESSIONS.column_names, session, strict=True))
    assert (row["user_id"], row["event_count"], row["session_end"] - row["session_start"]) == (
        "u",
        3,
        timedelta(minutes=3),
    )
    assert day.users(USER_STATUS).keys() == {"u"}
    assert read_ledger(day.lake).rows(RecordKind.USERLESS, account="sessionize") == 400


def test_clicks_find_their_impressions_and_strangers_get_no_credit(day: _Day) -> None:
    assert day.users(ATTRIBUTIONS) == {None: 20, "u": 1}
    paths = rows_by_name(day.lake, PATHS)
    outcomes = Counter((row["user_id"], row["outcome"], row["path_length"]) for row in paths)
    assert outcomes == {(None, "organic", 0): 5, ("u", "click_through", 1): 1}


def test_every_table_is_as_an_independent_computation_has_it(day: _Day) -> None:
    expected = expected_tables(day.source, _SETTINGS, datetime.now(UTC))
    for table in (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS, SESSIONS, USER_STATUS):
        assert_same_rows(read_table(day.lake, table), expected.rows(table), table)


def test_no_rule_about_a_user_marks_the_events_of_nobody(spark: SparkSession, day: _Day) -> None:
    by_user = {"class": "givt", "event_type": "click", "key": "user_id", "window": "1d"}
    rules = rule_set(
        {"id": "rate", "kind": "rate", "threshold": 1, **by_user},
        {"id": "sequence", "kind": "sequence", "threshold": 1, "without": ["conversion"], **by_user},
        {"id": "delay", "class": "givt", "kind": "delay", "event_type": "conversion", "threshold": "1d"},
    )
    silver = OpenLake.of(day.lake, _SETTINGS, spark).read(SILVER_EVENTS)
    marks = expected_marks(silver, rules, _MIDNIGHT + timedelta(days=2)).select("rule_id", "event_id").collect()
    assert [tuple(row) for row in marks] == [("delay", "pu")]
