"""Conversions from the source to silver: beside every other event, and in a lake that an earlier adloom began."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import CONVERSION, TYPE_FIELDS
from spark_jobs.contract.tables import BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, USER_STATUS
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.sessionize.rebuild import open_sessions
from spark_jobs.queries.state_functions.known_states import users_there
from tests.support.lakes import read_table, rows_by_name
from tests.support.lateness import PATIENT
from tests.support.runs import run_in
from tests.support.source_files import write_files

_SETTINGS = Settings.model_validate({"sessionize": {"watermark": "3h"}, **PATIENT})
_OWN = TYPE_FIELDS[CONVERSION]


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
    left = open_sessions(silver, none, _NOON + timedelta(minutes=10), Settings().sessionize)
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
    rows = rows_by_name(lake, BRONZE_EVENTS)
    assert {row["event_id"]: (row["verdict"], row["reason"]) for row in rows} == {
        "good": ("ok", None),
        "text": ("invalid_value_micros", '$.value_micros is "5"'),
        "lower": ("invalid_currency", '$.currency is "eur"'),
        "none": ("missing_currency", "$.currency is missing"),
        "empty": ("invalid_order_id", '$.order_id is ""'),
        "itself": ("invalid_revokes", '$.revokes is "itself"'),
    }
    assert [row[1] for row in read_table(lake, SILVER_EVENTS)] == ["good"]
