"""The metadata of a record: the same for both engines, and kept for a later mapping."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.durations import EPOCH, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import OK
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.ingest.in_python import meta as in_python
from spark_jobs.ingest.in_python.judge import Judge
from spark_jobs.ingest.judge import judge
from spark_jobs.ingest.meta import kafka_time, of_kafka
from spark_jobs.ingest.requeue import requeue
from spark_jobs.ingest.requeue_model import Selection
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.spark.open_lake import OpenLake
from tests.spark.test_verdict_agreement import run_rarely
from tests.support.lakes import rows_by_name
from tests.support.older import tables_without
from tests.support.quarantines import Record, put

_RECEIVED = datetime(2026, 8, 1, tzinfo=UTC)
_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_NOON_MS = round(_NOON.timestamp() * 1000)
_CLICK = {
    "event_type": "'click'",
    "when": "$meta.headers.ce_type = 'click'",
    "map": {
        "event_id": "$meta.headers['ce_id']",
        "event_time": "coalesce($meta.headers.ce_time, $meta.time)",
        "user_id": "$meta.key",
        "impression_id": "$.imp",
    },
}
_REST = {
    "event_type": "'activity'",
    "unknown": "quarantine",
    "let": {"trace": "$meta.headers.trace"},
    "map": {
        "event_id": "concat_ws('-', $meta.topic, $meta.partition, $meta.offset)",
        "event_time": "coalesce(timestamp_millis($trace.at), $.at)",
        "user_id": "coalesce($.user, $meta.headers.user)",
        "data": "$meta.headers",
    },
}
_SETTINGS = Settings.model_validate({"source": {"click": _CLICK, "rest": _REST}})
_FIELDS = "value BINARY, source STRING, key BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, ms BIGINT"
_PARTS = st.one_of(
    st.none(),
    st.sampled_from([b"", b"click", b"e1", b"2026-03-01T12:00:00.123456789Z", b'{"at": 1772366400000}', b"\xff\xe9"]),
    st.text(max_size=3).map(str.encode),
    st.binary(max_size=3),
)
_HEADERS = st.lists(st.tuples(st.sampled_from(["ce_id", "ce_type", "ce_time", "trace", "user", "", "é"]), _PARTS))
_VALUES = st.sampled_from(
    [b'{"imp": "i"}', b'{"at": "2026-03-01T12:00:00Z", "user": "u"}', b'{"trace": 1}', b"{}", b"[]", b"\xff", b"x"]
)
_TIMES = st.sampled_from([-1, 0, 1_772_366_400, _NOON_MS, _NOON_MS + 7, 253_402_300_799_999, 10**15])


@st.composite
def _messages(draw: st.DrawFn) -> tuple[bytes, bytes | None, list[tuple[str, bytes | None]] | None, int]:
    return draw(_VALUES), draw(_PARTS), draw(st.one_of(st.none(), _HEADERS)), draw(_TIMES)


@given(st.lists(_messages(), min_size=100, max_size=100))
@run_rarely
def test_both_engines_know_the_same(
    spark: SparkSession,
    messages: list[tuple[bytes, bytes | None, list[tuple[str, bytes | None]] | None, int]],
) -> None:
    rows = [
        (bytearray(value), f"t.x/3/{offset}", key and bytearray(key), headers, ms)
        for offset, (value, key, headers, ms) in enumerate(messages)
    ]
    frame = spark.createDataFrame(rows, _FIELDS)
    time = kafka_time(F.timestamp_millis("ms"))
    known = frame.select(
        F.col("value").cast("string").alias("raw"),
        "source",
        F.lit("t.x").alias("origin"),
        *[F.lit(_RECEIVED).alias(name) for name in ("ingest_time", "received_time")],
        of_kafka(F.col("source"), F.col("key"), F.col("headers"), time).alias("received_meta"),
    )
    judged = judge(known.coalesce(1), _SETTINGS).withColumn("us", F.unix_micros("event_time"))
    found = {row.source: row for row in judged.collect()}
    own = Judge(_SETTINGS)
    for offset, (value, key, headers, ms) in enumerate(messages):
        meta = in_python.of_kafka(("t.x", 3, offset), key, headers or (), ms)
        (one,) = own.judge(value, _RECEIVED, "t.x", meta)
        row = found[f"t.x/3/{offset}"]
        assert (one.verdict, one.source, one.reason or None) == (row.verdict, row.source_name, row.reason), (
            value,
            meta,
        )
        if one.verdict == OK:
            time_of_event = one.event["event_time"]
            assert isinstance(time_of_event, datetime)
            assert row.received_meta is None
            assert microseconds(time_of_event - EPOCH) == row.us
            names = ("event_id", "user_id", "impression_id", "data")
            assert [one.event[name] for name in names] == [row[name] for name in names]
        else:
            assert json.loads(row.received_meta).get("offset") == offset


def test_the_last_of_headers_with_one_name_counts(spark: SparkSession) -> None:
    headers = [("ce_id", b"first"), ("ce_type", b"click"), ("ce_id", b"last")]
    frame = spark.createDataFrame([(b"{}", "t/0/0", b"u", headers, _NOON_MS)], _FIELDS)
    columns = F.col("source"), F.col("key"), F.col("headers"), F.timestamp_millis("ms")
    (row,) = frame.select(of_kafka(*columns)).collect()
    assert json.loads(row[0]) == json.loads(in_python.of_kafka(("t", 0, 0), b"u", headers, _NOON_MS))
    assert json.loads(row[0]) == {
        "topic": "t",
        "partition": 0,
        "offset": 0,
        "key": "u",
        "time": "2026-03-01T12:00:00.000Z",
        "headers": {"ce_id": "last", "ce_type": "click"},
    }


def test_a_later_mapping_reads_it_of_records_in_quarantine(spark: SparkSession, tmp_path: Path) -> None:
    headers = [("ce_id", b"e1"), ("ce_type", b"click")]
    records = [
        Record(b'{"imp": "i"}', "t/0/5", _NOON, "t", in_python.of_kafka(("t", 0, 5), b"u", headers, _NOON_MS)),
        Record(b'{"at": "2026-03-01T12:00:00Z", "user": "v"}', "t/1/7", _NOON, "t"),
        Record(b'{"imp": "i"}', "file:///logs/dt=2026-03-01/a.jsonl#bytes=0-12", _NOON),
    ]
    lake = open_lake(str(tmp_path / "lake"))
    put(spark, lake, 0, _NOON, records, Settings())
    of_file = {
        "event_type": "'activity'",
        "when": "$meta.file is not null",
        "map": {
            "event_id": "$meta.file",
            "event_time": r"to_timestamp(regexp_extract($meta.file, 'dt=([0-9-]+)', 1), 'yyyy-MM-dd')",
            "user_id": "$.imp",
        },
    }
    now = Settings.model_validate({"source": {"file": of_file, "click": _CLICK, "rest": _REST}})
    assert requeue(OpenLake.of(lake, now, spark), Selection()).fit == 3
    found = _requeued(lake)
    assert [(row["event_id"], row["user_id"], row["event_time"]) for row in found] == [
        ("e1", "u", _NOON.replace(tzinfo=None)),
        ("file:///logs/dt=2026-03-01/a.jsonl", "i", _NOON.replace(tzinfo=None, hour=0)),
        ("t-1-7", "v", _NOON.replace(tzinfo=None)),
    ]


def test_of_records_that_an_earlier_version_received_the_place_is_known(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    with tables_without(("received_meta",), BRONZE_EVENTS):
        put(
            spark,
            lake,
            0,
            _NOON - timedelta(minutes=1),
            [Record(b'{"at": "2026-03-01T12:00:00Z", "user": "v"}', "t/1/7", _NOON, "t")],
            Settings(),
        )
    assert requeue(OpenLake.of(lake, _SETTINGS, spark), Selection()).fit == 1
    assert [row["event_id"] for row in _requeued(lake)] == ["t-1-7"]


def _requeued(lake: Lake) -> list[dict[str, object]]:
    rows = [row for row in rows_by_name(lake, BRONZE_EVENTS) if row["requeued_from"]]
    assert not any(row["received_meta"] for row in rows)
    return sorted(rows, key=lambda row: str(row["event_id"]))
