"""Folders of CSV, Avro and Parquet files as streams: each file once, in order, by its own schema."""

import gzip
import os
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession

from spark_jobs.config.encoding import Encoding, RecordFormat
from spark_jobs.config.sections import IngestSettings
from spark_jobs.config.settings import Settings
from spark_jobs.errors import SourceError
from spark_jobs.formats.files import FileReader
from spark_jobs.ingest.arriving import arriving_files
from spark_jobs.ingest.judge import judge
from spark_jobs.ingest.row_files import RowFolder, read_row_files

_FIELD = {"name": "id", "type": "string"}
_LATER = {"name": "n", "type": "int"}
_KINDS = (RecordFormat.CSV, RecordFormat.AVRO, RecordFormat.PARQUET)


def _write(place: Path, number: int, rows: list[dict[str, Any]]) -> None:
    if place.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), place)
    elif place.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        place.write_text("\n".join(lines), encoding="utf-8")
    else:
        fields = [_FIELD, _LATER][: len(rows[0])]
        schema = fastavro.parse_schema({"type": "record", "name": "E", "fields": fields})
        with place.open("wb") as out:
            fastavro.writer(out, schema, rows)
    os.utime(place, (number, number))


def _run(spark: SparkSession, source: Path, kind: RecordFormat, folder: Path) -> list[Row]:
    """All rows so far, after a query on the checkpoint in ``folder`` has taken what is there."""
    # One file a batch, so that the order of files is seen.
    readers = {kind: (FileReader(Encoding(kind)), "here")}
    stream = read_row_files(spark, [RowFolder(source, readers)], IngestSettings(max_bytes_per_batch=1))
    out, checkpoint = str(folder / "out"), str(folder / "checkpoint")
    query = stream.writeStream.format("delta").option("checkpointLocation", checkpoint).trigger(availableNow=True)
    query.start(out).awaitTermination()
    return spark.read.format("delta").load(out).orderBy("ingest_time", "source").collect()


@pytest.mark.parametrize("kind", _KINDS)
def test_files_are_streamed_once_by_their_own_schemas(spark: SparkSession, tmp_path: Path, kind: RecordFormat) -> None:
    source = tmp_path / "so urce%20"
    source.mkdir()
    _write(source / f"b.{kind}", 1, [{"id": "a"}, {"id": "b"}])
    _write(source / f"a b%20.{kind}", 2, [{"id": "c", "n": 7}])
    (source / f"broken.{kind}").write_bytes(b"\xff" * 20)
    os.utime(source / f"broken.{kind}", (3, 3))
    (source / "other.txt").write_text("{}")
    (source / "lines.jsonl").write_text("{}")
    found = _run(spark, source, kind, tmp_path)
    seven = '"7"' if kind is RecordFormat.CSV else "7"
    assert [row["text"] for row in found] == ['{"id":"a"}', '{"id":"b"}', f'{{"id":"c","n":{seven}}}', None]
    places = [f"b.{kind}#row=0", f"b.{kind}#row=1", f"a b%20.{kind}#row=0"]
    assert [row["source"] for row in found[:3]] == [f"file://{source}/{place}" for place in places]
    assert [row["raw"] for row in found[:3]] == [row["text"] for row in found[:3]]
    assert found[3]["decode_verdict"] == ("invalid_utf8" if kind is RecordFormat.CSV else "invalid_encoding")
    assert found[3]["decode_reason"]
    assert found[3]["raw"]
    assert {row["origin"] for row in found} == {"here"}
    assert all(row["ingest_time"] == row["received_time"] for row in found)
    _write(source / f"c.{kind}", 4, [{"id": "d"}])
    assert [row["text"] for row in _run(spark, source, kind, tmp_path)][4:] == ['{"id":"d"}']


_MAP = {"event_id": "$.id", "event_time": "timestamp_seconds($.ts)", "user_id": "$.user"}
_TIME = 1772366400


def _source(**values: Any) -> dict[str, Any]:
    return {"event_type": "'activity'", "map": _MAP, **values}


def _rows(*ids: str) -> list[dict[str, Any]]:
    return [{"id": one, "ts": _TIME, "user": f"u-{one}"} for one in ids]


def test_folders_and_formats_are_read_side_by_side_and_each_by_its_own_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two folders, one with two formats; files that no source means are not read."""
    one, two = tmp_path / "o ne%20+", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    (one / "a.jsonl").write_text('{"id": "json", "ts": 1772366400, "user": "u-json"}\n')
    _write(one / "a.csv", 1, _rows("csv"))
    with gzip.open(one / "b.tsv.gz", "wt") as file:
        file.write("id\tts\tuser\ntsv\t1772366400\tu-tsv\nshort\t1\n")
    pq.write_table(pa.Table.from_pylist(_rows("parquet")), two / "a.parquet")
    _write(two / "not read.csv", 1, _rows("nobody"))
    sources = {
        "text": _source(path=one),
        "cells": _source(path=one, format="csv", keep={"place": {"from": "'here'"}}),
        "tables": _source(path=two, format="parquet"),
    }
    settings = Settings.model_validate({"source": sources})
    stream = arriving_files(spark, settings, None)
    query = judge(stream, settings).writeStream.format("memory").queryName("two_folders").trigger(availableNow=True)
    query.start().awaitTermination()
    found = {row["event_id"] or row["raw"]: row for row in spark.table("two_folders").collect()}
    verdicts = {name: (row["verdict"], row["source_name"]) for name, row in found.items()}
    assert verdicts == {
        "json": ("ok", "text"),
        "csv": ("ok", "cells"),
        "tsv": ("ok", "cells"),
        "parquet": ("ok", "tables"),
        "short\t1\n": ("invalid_encoding", "cells"),
    }
    assert found["short\t1\n"]["reason"] == "the row has 2 cells, and there are 3 columns"


def test_a_row_larger_than_the_limit_has_a_verdict(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path / "a.csv", 1, [*_rows("ok"), *_rows("x" * 2000)])
    settings = Settings.model_validate({"source": {"a": _source(format="csv")}, "ingest": {"max_record_bytes": 1024}})
    stream = judge(arriving_files(spark, settings, tmp_path), settings)
    stream.writeStream.format("memory").queryName("too_large").trigger(availableNow=True).start().awaitTermination()
    found = {row["verdict"]: row["raw"] for row in spark.table("too_large").collect()}
    assert sorted(found) == ["ok", "record_too_large"]
    assert "x" * 2000 in found["record_too_large"]


def test_a_folder_without_such_files_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    settings = Settings.model_validate({"source": {"a": _source(format="csv")}})
    for folder, reason in (
        (tmp_path, r"no file named .*\*\.csv"),
        (tmp_path / "missing", "not a folder"),
        (tmp_path / "{a,b}", "would take { for a part of a pattern"),
    ):
        with pytest.raises(SourceError, match=reason):
            arriving_files(spark, settings, folder)
