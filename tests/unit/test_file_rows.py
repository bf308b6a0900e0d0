"""Avro container files and Parquet files: rows as JSON text, and a verdict for what cannot be read."""

import bz2
import json
import lzma
import tracemalloc
import zlib
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.formats.avro_files import read_avro
from spark_jobs.formats.file_rows import FileRow
from spark_jobs.formats.parquet_files import read_parquet
from spark_jobs.formats.schema import AVRO, Schema

_EVENT = {"type": "record", "name": "E", "fields": [{"name": "id", "type": "string"}]}
_SYNC = bytes(range(100, 116))


def _crc(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "big")


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda data: data,
    "deflate": lambda data: zlib.compress(data)[2:-4],
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "snappy": lambda data: pa.Codec("snappy").compress(data, asbytes=True) + _crc(data),
    "zstandard": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}


def _long(value: int) -> bytes:
    rest, out = value << 1, b""
    while rest > 127:
        out, rest = out + bytes([rest & 127 | 128]), rest >> 7
    return out + bytes([rest])


def _block(packed: bytes, count: int, sync: bytes = _SYNC) -> bytes:
    return _long(count) + _long(len(packed)) + packed + sync


def _file(place: Path, *blocks: bytes, codec: str = "null", schema: Any = _EVENT) -> Path:
    meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    header = b"Obj\x01" + _long(2)
    for key, value in meta.items():
        header += _long(len(key)) + key.encode() + _long(len(value)) + value
    place.write_bytes(header + b"\0" + _SYNC + b"".join(blocks))
    return place


@pytest.mark.parametrize("codec", _CODECS)
def test_blocks_of_every_codec(tmp_path: Path, codec: str) -> None:
    pack = _CODECS[codec]
    file = _file(tmp_path / "f.avro", _block(pack(b"\x02a\x02b"), 2), _block(pack(b"\x02c"), 1), codec=codec)
    expected = [FileRow(f"row={row}", f'{{"id":"{name}"}}') for row, name in enumerate("abc")]
    assert list(read_avro(file)) == expected
    damaged = _file(tmp_path / "d.avro", _block(b"\xff" * 9, 2), _block(pack(b"\x02c"), 1), codec=codec)
    first, last = read_avro(damaged)
    assert (first.place, first.verdict, first.raw) == ("rows=0-1", "invalid_encoding", b"\xff" * 9)
    assert (last.place, last.text) == ("row=2", '{"id":"c"}')


def test_a_file_that_fastavro_wrote(tmp_path: Path) -> None:
    schema = {
        **_EVENT,
        "fields": [*_EVENT["fields"], {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}}],
    }
    rows = [{"id": f"e-{n}", "t": datetime(2026, 3, 1, 12, 0, 0, n, UTC)} for n in range(5000)]
    with (tmp_path / "f.avro").open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), rows, codec="deflate")
    found = [json.loads(row.text or "") for row in read_avro(tmp_path / "f.avro")]
    assert len(found) == 5000
    assert found[4999] == {"id": "e-4999", "t": "2026-03-01T12:00:00.004999Z"}
    mine = Schema(
        AVRO, json.dumps({**_EVENT, "fields": [*_EVENT["fields"], {"name": "n", "type": "int", "default": 3}]})
    )
    assert next(read_avro(tmp_path / "f.avro", mine)).text == '{"id":"e-0","n":3}'


def test_a_row_that_does_not_fit_takes_the_rest_of_its_block(tmp_path: Path) -> None:
    file = _file(tmp_path / "f.avro", _block(b"\x02a\x02\xff\x02b", 3), _block(b"\x02c", 1), _block(b"\x02d\x02e", 1))
    found = list(read_avro(file))
    assert [(row.place, row.text) for row in found] == [
        ("row=0", '{"id":"a"}'),
        ("rows=1-2", None),
        ("row=3", '{"id":"c"}'),
        ("row=4", '{"id":"d"}'),
        ("rows=4-4", None),
    ]
    assert (found[1].verdict, found[1].raw) == ("invalid_encoding", b"\x02\xff\x02b")
    assert "2 bytes follow the last row" in str(found[4].reason)


@pytest.mark.parametrize(
    "damaged",
    [b"\x02\x04\x02x" + bytes(16), b"\xff" * 40, b"\x02" + _long(10**9) + b"\x02x" + _SYNC, b"\x01\x02\x02x" + _SYNC],
)
def test_a_damaged_block_is_left_out_up_to_the_next_marker(tmp_path: Path, damaged: bytes) -> None:
    file = _file(tmp_path / "f.avro", _block(b"\x02a", 1), damaged, _block(b"\x02b", 1), _block(b"\x02c", 1))
    found = list(read_avro(file))
    assert (found[0].text, found[-1].text) == ('{"id":"a"}', '{"id":"c"}')
    assert [row.verdict for row in found if row.verdict] == ["invalid_encoding"]
    assert found[1].raw.startswith(damaged)


def test_a_file_that_was_cut_off_at_any_byte_gives_its_rows_and_a_verdict(tmp_path: Path) -> None:
    whole = _file(tmp_path / "f.avro", _block(b"\x02a", 1), _block(b"\x02b", 1)).read_bytes()
    begins = whole.index(_SYNC) + 16
    for end in range(len(whole)):
        (tmp_path / "cut.avro").write_bytes(whole[:end])
        found = list(read_avro(tmp_path / "cut.avro"))
        rows = sum(row.text is not None for row in found)
        at_block = max(end - begins, 0)
        assert rows == at_block // 20
        assert (end == begins or (at_block and at_block % 20 == 0)) == (found[-1:] == [] or found[-1].verdict is None)


@pytest.mark.parametrize(
    ("content", "verdict", "reason"),
    [
        (b"", "invalid_encoding", "does not begin"),
        (b'{"event_type":1}', "invalid_encoding", "does not begin"),
        (b"Obj\x01\xff", "invalid_encoding", "within its header"),
        (b"Obj\x01\0" + _SYNC, "incompatible_schema", "its schema is not JSON"),
        (b"Obj\x01\x02\x14avro.codec\x06lzo\0" + _SYNC, "incompatible_schema", "codec lzo is not supported"),
    ],
)
def test_a_file_that_is_no_container_gets_a_verdict(tmp_path: Path, content: bytes, verdict: str, reason: str) -> None:
    (tmp_path / "f.avro").write_bytes(content)
    (row,) = read_avro(tmp_path / "f.avro")
    assert (row.text, row.verdict) == (None, verdict)
    assert reason in str(row.reason)


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    for read in (read_avro, read_parquet):
        with pytest.raises(FileNotFoundError):
            list(read(tmp_path / "missing"))


def test_memory_goes_by_the_block(tmp_path: Path) -> None:
    block = _block(b"".join(b"\x80\x10" + b"x" * 1024 for _ in range(100)), 100)
    file = _file(tmp_path / "f.avro", *[block] * 300)
    assert file.stat().st_size > 30_000_000
    tracemalloc.start()
    assert sum(1 for _ in read_avro(file)) == 30_000
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_parquet_of_every_type(tmp_path: Path) -> None:
    instant = datetime(2026, 3, 1, 12, 0, 0, 123456, UTC)
    inner = pa.struct([("a", pa.int32()), ("b", pa.timestamp("ms", "UTC"))])
    columns: dict[str, tuple[pa.DataType, Any, Any]] = {
        "boolean": (pa.bool_(), True, True),
        "long": (pa.int64(), 2**63 - 1, 2**63 - 1),
        "unsigned": (pa.uint64(), 2**64 - 1, 2**64 - 1),
        "float": (pa.float32(), 0.5, 0.5),
        "double": (pa.float64(), float("nan"), "NaN"),
        "text": (pa.string(), 'ü"\n', 'ü"\n'),
        "large": (pa.large_string(), "x", "x"),
        "bytes": (pa.binary(), b"\x00\xff", "AP8="),
        "fixed": (pa.binary(2), b"\x00\xff", "AP8="),
        "decimal": (pa.decimal128(12, 6), Decimal("0.002100"), "0.002100"),
        "wide": (pa.decimal256(50, 2), Decimal("-1.10"), "-1.10"),
        "date": (pa.date32(), date(2026, 3, 1), "2026-03-01"),
        "millis": (pa.timestamp("ms", "UTC"), instant.replace(microsecond=123000), "2026-03-01T12:00:00.123000Z"),
        "micros": (pa.timestamp("us", "UTC"), instant, "2026-03-01T12:00:00.123456Z"),
        "zoned": (pa.timestamp("us", "Europe/Berlin"), instant, "2026-03-01T12:00:00.123456Z"),
        "nanos": (pa.timestamp("ns", "UTC"), 1_999, "1970-01-01T00:00:00.000001Z"),
        "before": (pa.timestamp("ns", "UTC"), -1, "1969-12-31T23:59:59.999999Z"),
        "local": (pa.timestamp("us"), instant.replace(tzinfo=None), "2026-03-01T12:00:00.123456"),
        "time": (pa.time64("us"), time(1, 2, 3, 4), "01:02:03.000004"),
        "seconds": (pa.time32("ms"), time(1, 2, 3), "01:02:03"),
        "symbol": (pa.dictionary(pa.int32(), pa.string()), "A", "A"),
        "length": (pa.duration("ms"), timedelta(seconds=90, milliseconds=250), "PT90.25S"),
        "backwards": (pa.duration("ns"), timedelta(seconds=-3), "-PT3S"),
        "list": (pa.list_(pa.int32()), [1, None, 3], [1, None, 3]),
        "empty": (pa.list_(pa.int32()), [], []),
        "struct": (inner, {"a": 1, "b": instant}, {"a": 1, "b": "2026-03-01T12:00:00.123000Z"}),
        "map": (pa.map_(pa.string(), pa.decimal128(4, 2)), [("k", Decimal("1.50"))], {"k": "1.50"}),
        "numbers": (
            pa.map_(pa.int32(), pa.list_(inner)),
            [(5, [None, {"a": 2, "b": None}])],
            {"5": [None, {"a": 2, "b": None}]},
        ),
    }
    schema = pa.schema([(name, kind) for name, (kind, _, _) in columns.items()])
    arrays = [
        pa.array([None, value, None], kind, safe=False) if name == "struct" else pa.array([None, value, None], kind)
        for name, (kind, value, _) in columns.items()
    ]
    pq.write_table(pa.table(arrays, schema=schema), tmp_path / "f.parquet")
    found = [json.loads(row.text or "") for row in read_parquet(tmp_path / "f.parquet")]
    empty = dict.fromkeys(columns)
    assert found == [empty, {name: shown for name, (_, _, shown) in columns.items()}, empty]


def test_parquet_columns_of_types_without_a_text_do_not_refuse_the_others(tmp_path: Path) -> None:
    columns = {
        "id": pa.array(["a", None]),
        "view": pa.array(["x", "y"], pa.string_view()),
        "bytes": pa.array([b"\0", b"\1"], pa.binary_view()),
        "views": pa.array([[1], [2, 3]], pa.list_view(pa.int32())),
        "half": pa.array([1.5, 2.0], pa.float16()),
    }
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    found = [json.loads(row.text or "") for row in read_parquet(tmp_path / "f.parquet")]
    assert [row["id"] for row in found] == ["a", None]
    assert [(row["view"], row["bytes"], row["views"], row["half"]) for row in found] == [
        ("x", "AA==", [1], 1.5),
        ("y", "AQ==", [2, 3], 2.0),
    ]


def test_a_block_that_announces_more_rows_than_it_has_bytes_for_ends(tmp_path: Path) -> None:
    nulls = _file(tmp_path / "f.avro", _block(b"", 2**40), schema="null")
    (row,) = read_avro(nulls)
    assert (row.verdict, row.reason) == ("invalid_encoding", "a block has 1099511627776 rows in 0 bytes")


def test_parquet_in_many_groups_and_batches(tmp_path: Path) -> None:
    rows = [{"n": n, "l": [n] * (n % 4), "m": [(str(n), n)] if n % 3 else None} for n in range(5000)]
    schema = pa.schema([("n", pa.int64()), ("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.int64()))])
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "f.parquet", row_group_size=1700)
    found = list(read_parquet(tmp_path / "f.parquet"))
    assert [row.place for row in found] == [f"row={n}" for n in range(5000)]
    expected = [{**row, "m": dict(row["m"]) if isinstance(row["m"], list) and row["m"] else None} for row in rows]  # type: ignore[arg-type]
    assert [json.loads(row.text or "") for row in found] == expected


def test_parquet_text_that_is_not_utf8_costs_one_row(tmp_path: Path) -> None:
    text = pa.array([b"a", b"\xff", b"c"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"t": text}), tmp_path / "f.parquet")
    found = list(read_parquet(tmp_path / "f.parquet"))
    assert [(row.place, row.text, row.verdict) for row in found] == [
        ("row=0", '{"t":"a"}', None),
        ("row=1", None, "invalid_encoding"),
        ("row=2", '{"t":"c"}', None),
    ]


def test_parquet_with_flipped_bytes_gives_rows_and_verdicts(tmp_path: Path) -> None:
    table = pa.table({"n": list(range(300)), "t": [f"text-{n}" for n in range(300)]})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=100, use_dictionary=False)
    whole, damaged = (tmp_path / "f.parquet").read_bytes(), tmp_path / "d.parquet"
    verdicts = 0
    for at in range(0, len(whole), 37):
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        for row in read_parquet(damaged):
            verdicts += row.verdict == "invalid_encoding"
            json.loads(row.text or "{}")
    assert verdicts > 10
    for end in (0, 4, 100, len(whole) - 1):
        damaged.write_bytes(whole[:end])
        assert [row.verdict for row in read_parquet(damaged)] == ["invalid_encoding"]
