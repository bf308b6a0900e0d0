"""Requeue of records that are not JSON: values are decoded again, rows of files are judged as they were read."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import OK
from spark_jobs.formats.sources import decoders
from spark_jobs.ingest.arriving import places_of_files
from spark_jobs.ingest.judge import judge
from spark_jobs.ingest.quarantine import as_received
from tests.support.avro_schemas import encoded

pytestmark = pytest.mark.derived

_AVRO = {"type": "record", "name": "E", "fields": [{"name": "id", "type": "string"}, {"name": "ts", "type": "long"}]}
_THEN = datetime(2026, 3, 1, 13, tzinfo=UTC)
_SECONDS = int((_THEN - timedelta(hours=1)).timestamp())
_COLUMNS = (
    "raw STRING, source STRING, ingest_time TIMESTAMP, verdict STRING, source_name STRING, reason STRING, "
    "received_time TIMESTAMP, received_meta STRING"
)


def _source(**values: Any) -> dict[str, Any]:
    fields = {"event_id": "$.id", "event_time": "timestamp_seconds($.ts)", "user_id": "'u'"}
    return {"event_type": "'activity'", "map": fields, **values}


def _judged(
    spark: SparkSession, settings: Settings, rows: list[tuple[str, str, str]]
) -> dict[str, tuple[str, Any, Any]]:
    """By place of each row (raw, place, verdict): the verdict now, the source, and the id."""
    records = [(raw, place, _THEN, verdict, None, "as it was", _THEN, None) for raw, place, verdict in rows]
    quarantined = spark.createDataFrame(records, _COLUMNS).coalesce(1)
    received = as_received(quarantined, F.lit(datetime.now(UTC)), decoders(settings, None), places_of_files(settings))
    found = judge(received, settings).collect()
    assert {(row["raw"], row["source"]) for row in found} == {(raw, place) for raw, place, _ in rows}
    return {row["source"]: (row["verdict"], row["source_name"], row["event_id"]) for row in found}


def test_values_of_topics_are_decoded_again(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "e.avsc").write_text(json.dumps(_AVRO), encoding="utf-8")
    avro = _source(topics="ads", format="avro", schema_file=tmp_path / "e.avsc")
    csv = _source(topics="rows", format="csv", columns="id,ts")
    settings = Settings.model_validate({"source": {"a": avro, "c": csv, "j": _source(topics="texts")}})
    value = encoded(_AVRO, {"id": "\u00fc", "ts": _SECONDS}).decode("iso-8859-1")
    rows = [
        (value, "ads/0/1", "invalid_event_time"),
        (value[:-1], "ads/0/2", "unknown_schema"),
        # Received when the settings said that the topic had JSON: its bytes happened to be UTF-8.
        (encoded(_AVRO, {"id": "x", "ts": _SECONDS}).decode("iso-8859-1"), "ads/0/3", "invalid_utf8"),
        (f"7,{_SECONDS}", "rows/0/1", "missing_event_id"),
        (json.dumps({"id": 8, "ts": _SECONDS}), "texts/0/1", "no_source"),
    ]
    assert _judged(spark, settings, rows) == {
        "ads/0/1": (OK, "a", "\u00fc"),
        "ads/0/2": ("invalid_encoding", "a", None),
        "ads/0/3": (OK, "a", "x"),
        "rows/0/1": (OK, "c", "7"),
        "texts/0/1": (OK, "j", "8"),
    }


def test_rows_of_files_belong_to_the_source_of_their_folder(spark: SparkSession, tmp_path: Path) -> None:
    one, two = tmp_path / "o ne", tmp_path / "two"
    sources = {
        "lines": _source(path=one),
        "cells": _source(path=one, format="csv"),
        "tables": _source(path=two, format="parquet"),
    }
    raw = json.dumps({"id": 8, "ts": str(_SECONDS)})
    in_lines = f"file://{tmp_path}/o%20ne/a.jsonl.gz#bytes=0-99"
    places = [f"file://{one}/a#b.csv#row=3", f"file://{two}/a.parquet#row=0", in_lines]
    unread = f"file://{one}/a.csv#rows=4-"
    rows = [*((raw, place, "invalid_event_time") for place in places), ("1,2", unread, "invalid_encoding")]
    assert _judged(spark, Settings.model_validate({"source": sources}), rows) == {
        places[0]: (OK, "cells", "8"),
        places[1]: (OK, "tables", "8"),
        places[2]: (OK, "lines", "8"),
        unread: ("invalid_encoding", "cells", None),
    }
