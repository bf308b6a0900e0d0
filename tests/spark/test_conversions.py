"""Conversions from the source to silver: beside every other event, and in a lake that an earlier adloom began."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contracts.events import CONVERSION, TYPE_FIELDS
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, USER_STATUS, Table
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import TABLES
from spark_jobs.runtime.lakes import open_lake
from spark_jobs.transforms.known_states import users_there
from spark_jobs.transforms.open_rows import open_sessions
from tests.support.lakes import read_ledger, read_table
from tests.support.lateness import PATIENT
from tests.support.older import tables_without
from tests.support.oracle import assert_same_accounts, assert_same_rows, expected_tables
from tests.support.runs import run_in
from tests.support.source_files import read_files, write_files

_SETTINGS = Settings.model_validate({"sessionize": {"watermark": "3h"}, **PATIENT})
_OWN = TYPE_FIELDS[CONVERSION]


@dataclass
class _Upgraded:
    """A lake that an earlier version began; its columns then, and its source."""

    lake: Lake
    columns_before: list[str]
    source: Path


@pytest.fixture(scope="module")
def upgraded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Upgraded:
    folder = tmp_path_factory.mktemp("upgraded")
    spec = GeneratorSpec(events=800, seed=3, files=2, hours=1.5, conversions=0.9, late=0, duplicates=0.1)
    generate(spec, folder / "generated")
    first, second = read_files(folder / "generated")
    early = [record for record in first if b'"conversion"' in record]
    files = [[record for record in first if record not in early], [*early, *second]]
    whole, source = write_files(folder / "whole", files), folder / "source"
    source.mkdir()
    lake = open_lake(str(folder / "lake"))
    for number, file in enumerate(sorted(whole.iterdir())):
        (source / file.name).hardlink_to(file)
        if number:
            run_in(spark, _SETTINGS, lake, source, measure=True)
            break
        with tables_without(_OWN, BRONZE_EVENTS, SILVER_EVENTS):
            run_in(spark, _SETTINGS, lake, source, drain=False, measure=True)
            columns = spark.read.format("delta").load(lake.table(SILVER_EVENTS)).columns
    return _Upgraded(lake, columns, source)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_lake_from_before_there_were_conversions_goes_on(upgraded: _Upgraded, table: Table) -> None:
    assert not set(_OWN) & set(upgraded.columns_before)
    expected = expected_tables(upgraded.source, _SETTINGS, datetime.now(UTC))
    assert_same_rows(read_table(upgraded.lake, table), expected.rows(table), table)
    assert_same_accounts(read_ledger(upgraded.lake), expected.ledger)
    assert expected.ledger.conversions > 5


def test_without_its_conversions_a_lake_has_the_same_sessions_and_statuses(upgraded: _Upgraded) -> None:
    records = [record for file in read_files(upgraded.source) for record in file]
    others = [record for record in records if b'"conversion"' not in record]
    assert len(others) < len(records)
    expected = expected_tables(Path(), _SETTINGS, datetime.now(UTC), batches=[others])
    for table in (SESSIONS, USER_STATUS):
        assert_same_rows(read_table(upgraded.lake, table), expected.rows(table), table)


_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _silver(spark: SparkSession, *events: tuple[str, int]) -> DataFrame:
    """Events of one user: their types, and minutes after noon."""
    rows = [
        {
            "event_type": kind,
            "event_id": f"{kind}-{minute}",
            "event_time": _NOON + timedelta(minutes=minute),
            "user_id": "u1",
            "is_last": False,
        }
        for kind, minute in events
    ]
    return spark.createDataFrame([tuple(map(row.get, SILVER_EVENTS.column_names)) for row in rows], SILVER_EVENTS.ddl)


def test_a_conversion_holds_no_session_open(spark: SparkSession) -> None:
    silver = _silver(spark, ("click", 0), ("conversion", 4), ("click", 8), ("conversion", 12), ("heartbeat", 13))
    none = spark.createDataFrame([], SESSIONS.ddl)
    left = open_sessions(silver, none, _NOON + timedelta(minutes=10), timedelta(minutes=5))
    # The click at noon was late for its session; the newest row is there for the watermark.
    assert sorted(row["event_id"] for row in left.collect()) == ["click-8", "heartbeat-13"]


def test_a_conversion_keeps_no_user_online(spark: SparkSession) -> None:
    silver = _silver(spark, ("click", 0), ("conversion", 30))
    emitted = spark.createDataFrame([("u1", "online", _NOON)], USER_STATUS.ddl)
    (there,) = users_there(silver, emitted, _NOON + timedelta(hours=2)).collect()
    assert there["last_us"] == int(_NOON.timestamp()) * 1_000_000


def test_what_is_no_conversion_is_refused_with_the_value_that_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    good = {"event_type": "conversion", "event_time": "2025-01-06T12:00:00Z", "user_id": "u1"} | {
        "conversion_type": "purchase",
        "value_micros": 5,
        "currency": "EUR",
    }
    changes: dict[str, dict[str, object]] = {
        "good": {},
        "text": {"value_micros": "5"},
        "lower": {"currency": "eur"},
        "none": {"currency": None},
        "empty": {"order_id": ""},
        "itself": {"revokes": "itself"},
    }
    records = [json.dumps(good | {"event_id": name} | change).encode() for name, change in changes.items()]
    lake = open_lake(str(tmp_path / "lake"))
    run_in(spark, _SETTINGS, lake, write_files(tmp_path / "source", [records]))
    rows = [dict(zip(BRONZE_EVENTS.column_names, row, strict=True)) for row in read_table(lake, BRONZE_EVENTS)]
    assert {row["event_id"]: (row["verdict"], row["reason"]) for row in rows} == {
        "good": ("ok", None),
        "text": ("invalid_value_micros", '$.value_micros is "5"'),
        "lower": ("invalid_currency", '$.currency is "eur"'),
        "none": ("missing_currency", "$.currency is missing"),
        "empty": ("invalid_order_id", '$.order_id is ""'),
        "itself": ("invalid_revokes", '$.revokes is "itself"'),
    }
    assert [row[1] for row in read_table(lake, SILVER_EVENTS)] == ["good"]
