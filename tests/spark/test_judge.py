"""Spark's verdicts against those of the strict judge written apart from it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.ingest.judge import judge
from tests.support.lakes import RunLake, read_table
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.verdict_cases import VERDICT_CASES


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[bytes, list[str]]:
    """The verdicts of all cases, by the record as received."""
    file = tmp_path_factory.mktemp("verdicts") / "records.jsonl"
    file.write_bytes(b"\n".join(record for _, record, _ in VERDICT_CASES))
    lines = spark.read.option("lineSep", "\n").text(str(file))
    now = F.current_timestamp()
    records = lines.select(
        F.col("value").alias("raw"),
        F.hex("value").alias("source"),
        now.alias("ingest_time"),
        now.alias("received_time"),
        F.lit(None).cast("string").alias("origin"),
    )
    verdicts: dict[bytes, list[str]] = {}
    rows: list[Row] = judge(records, Settings()).select("source", "verdict").collect()
    for row in rows:
        verdicts.setdefault(bytes.fromhex(row.source), []).append(row.verdict)
    return verdicts


@pytest.mark.parametrize(("record", "verdict"), [pytest.param(r, v, id=name) for name, r, v in VERDICT_CASES])
def test_the_record_gets_its_verdict(record: bytes, verdict: str, judged: dict[bytes, list[str]]) -> None:
    # A byte order mark at the beginning of a file is gone before the record is seen.
    found = judged.get(record) or judged[record.removeprefix(b"\xef\xbb\xbf")]
    assert set(found) == {verdict}


def test_the_future_begins_at_the_receipt_of_the_record_not_at_its_batch(spark: SparkSession) -> None:
    record = {"event_type": "activity", "event_id": "a", "event_time": "2026-01-01T12:05:00Z", "user_id": "u"}
    received = {"in time": "2026-01-01 12:00:00", "too early": "2026-01-01 11:59:59.999"}
    rows = [(json.dumps(record), source, "2026-01-01 18:00:00", time) for source, time in received.items()]
    records = spark.createDataFrame(rows, "raw STRING, source STRING, ingest_time STRING, received_time STRING")
    typed = records.withColumns({name: F.col(name).cast("timestamp") for name in ("ingest_time", "received_time")})
    typed = typed.withColumn("origin", F.lit(None).cast("string"))
    verdicts = {row.source: row.verdict for row in judge(typed, Settings()).collect()}
    assert verdicts == {"in time": "ok", "too early": "event_time_in_future"}


def test_the_reason_shows_a_value_of_another_type(spark: SparkSession) -> None:
    values = {
        '"cost_micros": 0.5': '$.cost_micros is "0.5"',
        '"cost_micros": "12"': '$.cost_micros is "12"',
        '"cost_micros": 12345678901234567890': '$.cost_micros is "12345678901234567890"',
        '"cost_micros": -1': '$.cost_micros is "-1"',
        '"is_last": "yes"': '$.is_last is "yes"',
        '"is_last": {"a": 1}': '$.is_last is "{"a":1}"',
    }
    event = '{"event_type": "impression", "event_id": "i", "event_time": "2026-01-01T12:05:00Z", "user_id": "u", '
    ids = '"campaign_id": "c", "ad_id": "a"'
    now = F.lit(datetime(2026, 2, 1, tzinfo=UTC))
    rows = [(f"{event}{value}, {ids}}}", value) for value in values]
    records = spark.createDataFrame(rows, "raw STRING, source STRING").withColumns(
        {"ingest_time": now, "received_time": now, "origin": F.lit(None).cast("string")}
    )
    assert {row.source: row.reason for row in judge(records, Settings()).collect()} == values


def test_bronze_holds_every_record_of_every_case(run_lake: RunLake, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "records.jsonl").write_bytes(b"\n".join(record for _, record, _ in VERDICT_CASES))
    expected = expected_tables(source, Settings(), datetime.now(UTC))
    assert_same_rows(read_table(run_lake(source), BRONZE_EVENTS), expected.rows(BRONZE_EVENTS), BRONZE_EVENTS)
