"""Folders of files as streams: each file once, in order, by its own form."""

import gzip
import json
import os
import random
from collections import Counter
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.encoding import Encoding, RecordFormat, names_of_files
from spark_jobs.config.folders import Folder
from spark_jobs.config.sections import IngestSettings
from spark_jobs.config.settings import Settings
from spark_jobs.errors import SourceError
from spark_jobs.formats.files import FileReader
from spark_jobs.formats.sources import FileSet
from spark_jobs.ingest.arriving import arriving_files, places_of_files
from spark_jobs.ingest.files import in_blocks, read_files
from spark_jobs.ingest.input_files import files_of
from spark_jobs.ingest.judge import judge

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
    of = FileSet(Folder.of(source), names_of_files(kind), FileReader(Encoding(kind)), "here")
    stream = read_files(spark, [of], Settings(ingest=IngestSettings(max_bytes_per_batch=1)))
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


def test_files_are_found_below_the_folder_by_their_patterns(spark: SparkSession, tmp_path: Path) -> None:
    """Firehose's folders, Hive's folders, files without an ending, and what is hidden as Spark and Hive hide it."""
    files = {
        "2026/03/01/12/firehose-1": b'{"id":"a"}{"id":"b"}',
        "2026/03/01/13/firehose-2": gzip.compress(b'{"id":"c"}'),
        "dt=2026-03-01/part-1.csv": b"id\nd\n",
        "dt=2026-03-01/_part-2.csv": b"id\nhidden\n",
        "_temporary/dt=2026-03-01/part-3.csv": b"id\nhidden\n",
        "dt=2026-03-01/.part-4.csv": b"id\nhidden\n",
        "dt=2026-03-01/part-1.txt": b"nobody means it",
        "part-5.csv": b"id\nnot in a folder of a day\n",
    }
    for name, content in files.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(content)
    rule = {"event_id": "$.id", "event_time": "timestamp_seconds(1772366400)", "user_id": "'u'"}
    sources = {
        "delivered": {"path": tmp_path / "in", "files": "20*/**/firehose-*"},
        "daily": {"path": tmp_path / "in", "files": "dt=*/*.csv", "format": "csv"},
    }
    settings = Settings.model_validate(
        {"source": {name: _source(**{**one, "map": rule}) for name, one in sources.items()}}
    )
    there = [file.location for file in files_of(settings, None)]
    assert sorted(there) == sorted(f"{tmp_path}/in/{name}" for name in list(files)[:3])
    rows = _judged(spark, settings)
    assert {row["event_id"]: (row["verdict"], row["source_name"]) for row in rows} == {
        **dict.fromkeys("abc", ("ok", "delivered")),
        "d": ("ok", "daily"),
    }
    origins = places_of_files(settings)
    for row in rows:
        found = {origin for place, origin in origins.items() if _matches(spark, row["source"].partition("#")[0], place)}
        assert found == {settings.source[row["source_name"]].origin_of_files}


def _matches(spark: SparkSession, place: str, pattern: str) -> bool:
    return bool(spark.createDataFrame([(place,)], "place STRING").where(F.col("place").rlike(pattern)).count())


def _judged(spark: SparkSession, settings: Settings) -> list[Row]:
    name = f"judged_{uuid4().hex}"
    stream = judge(arriving_files(spark, settings, None), settings)
    stream.writeStream.format("memory").queryName(name).trigger(availableNow=True).start().awaitTermination()
    return spark.table(name).collect()


def test_no_file_ends_a_run_and_each_record_has_one_verdict(spark: SparkSession, tmp_path: Path) -> None:
    """Property: files of each format, cut off, spliced and overwritten at random; what was whole stays good."""
    chance = random.Random(7)
    folder, expected = tmp_path / "in", dict[str, int]()
    folder.mkdir()
    for number in range(60):
        kind = chance.choice(["jsonl", "json", "csv", "avro", "parquet"])
        name = f"{number}.{kind}"
        _write_any(folder / name, kind, _rows(*(f"{number}-{row}" for row in range(20))))
        content = (folder / name).read_bytes()
        if packed := kind in ("jsonl", "json", "csv") and chance.random() < 0.5:
            content = gzip.compress(content)
            (folder / name).unlink()
            name += ".gz"
        how = chance.choice(["whole", "cut", "spliced", "overwritten", "garbage"])
        at, to = sorted(chance.sample(range(1, len(content)), 2))
        damaged = {
            "whole": content,
            "cut": content[:at],
            "spliced": content[:at] + content[to:],
            "overwritten": content[:at] + chance.randbytes(min(30, to - at)) + content[min(to, at + 30) :],
            "garbage": chance.randbytes(200),
        }[how]
        (folder / name).write_bytes(damaged)
        expected[name] = {"whole": 20}.get(how, 0 if packed or how != "cut" else -1)
    for kind in ("csv", "jsonl"):
        (folder / f"no rights.{kind}").touch()
        (folder / f"a link.{kind}").symlink_to(folder / "nowhere")
    (folder / "a folder.json").mkdir()
    sources = {kind: _source(path=folder, format=kind) for kind in ("json", "csv", "avro", "parquet")}
    settings = Settings.model_validate({"source": sources})
    rows = _judged(spark, settings)
    good = Counter(
        unquote(row["source"]).partition("#")[0].rpartition("/")[2] for row in rows if row["verdict"] == "ok"
    )
    for name, count in expected.items():
        assert count != 20 or good[name] == 20, name
    assert sum(good.values()) > 20 * list(expected.values()).count(20) > 100
    places = [(row["source"], row["raw"]) for row in rows]
    assert len(set(places)) == len(places)
    unread = {_name(row) for row in rows if row["verdict"] != "ok"}
    assert len(unread) > 15


def _name(row: Row) -> str:
    return unquote(row["source"]).partition("#")[0].rpartition("/")[2]


def _write_any(place: Path, kind: str, rows: list[dict[str, Any]]) -> None:
    if kind == "jsonl":
        place.write_text("\n".join(map(json.dumps, rows)))
    elif kind == "json":
        place.write_text(json.dumps(rows, indent=1))
    elif kind == "avro":
        fields = [{"name": "id", "type": "string"}, {"name": "ts", "type": "long"}, {"name": "user", "type": "string"}]
        with place.open("wb") as out:
            fastavro.writer(out, fastavro.parse_schema({"type": "record", "name": "E", "fields": fields}), rows)
    else:
        _write(place, 1, rows)


def test_a_large_file_is_read_by_several_tasks_and_each_line_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_LEAST_BLOCK", "_LARGEST_BLOCK"):
        monkeypatch.setattr(f"spark_jobs.ingest.files.{name}", 700)
    (tmp_path / "in").mkdir()
    lines = [json.dumps(row) for row in _rows(*(f"{number:03}" for number in range(300)))]
    (tmp_path / "in/a.jsonl").write_text("\n".join(lines))
    (tmp_path / "in/b.json").write_text(json.dumps(_rows(*(f"b{number}" for number in range(50))), indent=1))
    (tmp_path / "in/c.jsonl").write_bytes(gzip.compress(json.dumps(_rows("c")[0]).encode()))
    (tmp_path / "in/d.jsonl").touch()
    rows = _judged(spark, Settings.model_validate({"source": {"all": _source(path=tmp_path / "in")}}))
    assert Counter(row["event_id"] for row in rows) == Counter(
        [*(f"{number:03}" for number in range(300)), *(f"b{number}" for number in range(50)), "c"]
    )
    of_lines = sorted(row["source"].rpartition("=")[2] for row in rows if "a.jsonl" in row["source"])
    ends = list(accumulate(len(line) + 1 for line in lines))
    assert of_lines == sorted(f"{begin}-{min(end, ends[-1] - 1)}" for begin, end in pairwise([0, *ends]))


def test_each_file_is_divided_among_all_tasks_unless_it_is_small(spark: SparkSession) -> None:
    mib = 1024 * 1024
    lengths = {"none": 0, "small": 4 * mib, "middle": 9 * mib + 1, "large": 1000 * mib}
    files = spark.createDataFrame(list(lengths.items()), "path STRING, length BIGINT")
    found: dict[str, list[tuple[int, int]]] = {}
    for row in in_blocks(files, 2).collect():
        found.setdefault(row.path, []).append((row.start, row.size))
    assert found["none"] == [(0, 4 * mib)]
    assert found["small"] == [(0, 4 * mib)]
    half = (9 * mib + 2) // 2
    assert sorted(found["middle"]) == [(0, half), (half, half)]
    assert sorted(found["large"]) == [(start, 32 * mib) for start in range(0, 1000 * mib, 32 * mib)]
