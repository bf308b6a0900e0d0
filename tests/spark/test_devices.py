"""The fields ip and user_agent from the source to silver, and in a lake that an earlier adloom began."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.open import open_lake
from tests.support.foreign import SOURCE, settings_for, write_foreign
from tests.support.lakes import read_table, rows_by_name
from tests.support.lateness import PATIENT
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.runs import run_in
from tests.support.source_files import read_files, write_files
from tests.support.verdicts import judge

_SETTINGS = Settings.model_validate({"sessionize": {"watermark": "3h"}, **PATIENT})
_SPEC = GeneratorSpec(events=800, seed=3, files=2, hours=1.5, bots=0.2, conversions=0.3, late=0, duplicates=0.1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[list[bytes]]:
    """The good records of a generated day."""
    folder, now = tmp_path_factory.mktemp("generated"), datetime.now(UTC)
    generate(_SPEC, folder)
    return [
        [record for record in file if judge(record, receipt=now, ingest=_SETTINGS.ingest).event]
        for file in read_files(folder)
    ]


def test_a_mapping_gives_what_native_events_give(spark: SparkSession, files: list[list[bytes]], tmp_path: Path) -> None:
    source = write_foreign(tmp_path / "source", [[json.loads(record) for record in file] for file in files])
    lake = open_lake(str(tmp_path / "lake"))
    run_in(spark, settings_for(SOURCE), lake, source)
    expected = expected_tables(write_files(tmp_path / "own", files), Settings(), datetime.now(UTC))
    assert_same_rows(read_table(lake, SILVER_EVENTS), expected.rows(SILVER_EVENTS), SILVER_EVENTS)


def test_what_is_no_device_is_refused_with_the_value_that_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    good = {"event_type": "activity", "event_time": "2025-01-06T12:00:00Z", "user_id": "u1"}
    changes: dict[str, dict[str, object]] = {
        "good": {"ip": "2001:db8::7", "user_agent": "Mozilla/5.0 (X11)"},
        "any text": {"ip": "not an address"},
        "number": {"ip": 3221225985},
        "empty": {"ip": ""},
        "object": {"ip": {"v4": "192.0.2.7"}},
        "fraction": {"ip": 192.5},
        "list": {"ip": ", ".join(["2001:db8:1111:2222:3333:4444:5555:6666"] * 3), "user_agent": "x" * 6000},
    }
    records = [json.dumps(good | {"event_id": name} | change).encode() for name, change in changes.items()]
    lake = open_lake(str(tmp_path / "lake"))
    run_in(spark, _SETTINGS, lake, write_files(tmp_path / "source", [records]))
    rows = rows_by_name(lake, BRONZE_EVENTS)
    assert {row["event_id"]: (row["verdict"], row["reason"]) for row in rows if row["verdict"] != "ok"} == {
        "object": ("invalid_ip", '$.ip is "{"v4":"192.0.2.7"}"'),
        "fraction": ("invalid_ip", '$.ip is "192.5"'),
    }
    silver = rows_by_name(lake, SILVER_EVENTS)
    assert {row["event_id"]: (row["ip"], row["user_agent"]) for row in silver if row["event_id"]} == {
        "good": ("2001:db8::7", "Mozilla/5.0 (X11)"),
        "any text": ("not an address", None),
        "number": ("3221225985", None),
        "empty": (None, None),
        "list": (None, "x" * 1024),
    }
