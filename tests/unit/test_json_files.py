"""Files of JSON as they lie: lines, several values on one, arrays, values over lines."""

import bz2
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.config.encoding import Encoding, RecordFormat
from spark_jobs.contract.events import INVALID_ENCODING, RECORD_TOO_LARGE
from spark_jobs.formats.file_rows import FileRow
from spark_jobs.formats.files import FileReader
from spark_jobs.formats.json_files import Block, read_json

_JSON = Encoding(RecordFormat.JSON)
_FEW = 100_000
_VALUES: list[Any] = [{"id": 1, "t": "}{ [x] \u00e9\u4e2d\U0001f600"}, {"id": 2, "n": {"a": [{}, []]}}, {"id": 3}, {}]


def _rows(file: Path, content: bytes, encoding: Encoding = _JSON, **options: Any) -> list[FileRow]:
    file.write_bytes(content)
    return list(read_json(file, encoding, **options))


def _values(rows: list[FileRow]) -> list[Any]:
    assert not any(row.verdict for row in rows)
    return [json.loads(row.raw) for row in rows]


def _dumped(value: Any, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=False, **options)


_LAYOUTS = {
    "lines": "\n".join(map(_dumped, _VALUES)),
    "CRLF, blank lines": "\r\n\r\n  \r\n".join(map(_dumped, _VALUES)) + "\r\n",
    "on one line": "".join(map(_dumped, _VALUES)),
    "on one line, spaced": " ".join(map(_dumped, _VALUES)) + "\n",
    "two lines of two": "\n".join(["".join(map(_dumped, _VALUES[:2])), " ".join(map(_dumped, _VALUES[2:]))]),
    "array": _dumped(_VALUES),
    "array over lines": _dumped(_VALUES, indent=2),
    "array, one on each line": "[\n" + ",\n".join(map(_dumped, _VALUES)) + "\n]\n",
    "arrays on lines": "\n".join([_dumped(_VALUES[:1]), _dumped(_VALUES[1:]), "[]"]),
    "over lines": "\n".join(_dumped(value, indent=4) for value in _VALUES),
    "over lines, indented by tabs, in a row": "".join(_dumped(value, indent="\t") for value in _VALUES),
    "padded with zeros": "\n".join(map(_dumped, _VALUES)) + "\n" + "\0" * 5000,
    "zeros behind the last line": "\n".join(map(_dumped, _VALUES)) + "\0" * 99,
}


@pytest.mark.parametrize("layout", _LAYOUTS)
def test_each_value_is_a_record_however_it_lies_in_the_file(tmp_path: Path, layout: str) -> None:
    text, file = _LAYOUTS[layout], tmp_path / "a.any"
    for content in (text.encode(), b"\xef\xbb\xbf" + text.encode()):
        assert _values(_rows(file, content)) == _VALUES or content.startswith(b"\xef")
        rows = _rows(file, content)
        assert [json.loads(row.raw.removeprefix(b"\xef\xbb\xbf")) for row in rows] == _VALUES
        for row in rows:
            begin, end = map(int, row.place.removeprefix("bytes=").split("-"))
            assert json.loads(content[begin:end].strip(b"\0\r\n ").decode("utf-8-sig")) == json.loads(
                row.raw.decode("utf-8-sig")
            )
            assert content[:begin].count(b"\n") + 1 == row.line
    for packed in (gzip.compress(text.encode()), bz2.compress(text.encode()), _zstd(text.encode())):
        assert _values(_rows(file, packed)) == _VALUES
    for charset in ("utf-16", "utf-16-le", "utf-32"):
        assert _values(_rows(file, text.encode(charset), Encoding(RecordFormat.JSON, charset=charset))) == _VALUES
    assert _values(_rows(file, text.encode("utf-16"))) == _VALUES


def test_lines_that_are_no_records_are_left_out_where_the_source_says_so(tmp_path: Path) -> None:
    content = b'made by us\n# more\n{"id": 1}\n# end\n'
    encoding = Encoding(RecordFormat.JSON, comment="#", skip_lines=1)
    assert [(row.raw, row.line) for row in _rows(tmp_path / "a", content, encoding)] == [(b'{"id": 1}', 3)]
    pretty = b"made by us\n" + _dumped(_VALUES, indent=1).encode()
    assert _values(_rows(tmp_path / "a", pretty, Encoding(RecordFormat.JSON, skip_lines=1))) == _VALUES


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"a": 1,\n{"b": 2}\n{"c": 3}', [b'{"a": 1,', b'{"b": 2}', b'{"c": 3}']),
        (b'{"a": "x\n{"b": 2}\n{"c": 3}\n', [b'{"a": "x', b'{"b": 2}', b'{"c": 3}']),
        (b'{"b": 2}\n{"a": 1,\n{"c": 3}', [b'{"b": 2}', b'{"a": 1,', b'{"c": 3}']),
        (b'[{"a": 1}]\n{"b": 2}\n{"a": 1}{"b": 2}', [b'[{"a": 1}]', b'{"b": 2}', b'{"a": 1}{"b": 2}']),
        (b'{"b": 2}\nno JSON\n{"c": 3}', [b'{"b": 2}', b"no JSON", b'{"c": 3}']),
        (b'{"b": 2} {"a": \n{"c": 3}', [b'{"b": 2} {"a": ', b'{"c": 3}']),
        (b'[\n {"b": 2},\n {"a": nul},\n {"c": 3}\n]', [b'{"b": 2}', b'{"a": nul}', b'{"c": 3}']),
        (b'[\n {"b": 2},\n {"a": 1', [b'{"b": 2}', b'{"a": 1']),
        (b'{\n "b": 2\n}\n{\n "a": }\n}\n{\n "c": 3}', [b'{\n "b": 2\n}', b'{\n "a": }\n}', b'{\n "c": 3}']),
        (b"[1, true, null, [2], 3.5e7]", [b"1", b"true", b"null", b"[2]", b"3.5e7"]),
        (b'[{"a": 1}', [b'{"a": 1}']),
        (b"[" * 5000 + b'\n[{"b": 2}]', [b"[" * 5000, b'[{"b": 2}]']),
        (b"\xff\xfe\xfa", None),
        (b"\x00\x01\x02\n\x03", [b"\x00\x01\x02", b"\x03"]),
    ],
)
def test_what_is_no_value_is_a_record_of_its_own_and_the_others_count(
    tmp_path: Path, content: bytes, expected: list[bytes] | None
) -> None:
    rows = _rows(tmp_path / "a", content)
    if expected is not None:
        assert [row.raw for row in rows] == expected
    assert all(row.raw or row.verdict for row in rows)


def test_a_file_that_is_cut_off_gives_what_it_has_and_a_verdict(tmp_path: Path) -> None:
    lines = b"".join(
        b'{"id": %d, "r": "%s"}\n' % (n, random.Random(n).randbytes(20).hex().encode()) for n in range(999)
    )
    for packed in (gzip.compress(lines), bz2.compress(lines), _zstd(lines)):
        rows = _rows(tmp_path / "a.jsonl.gz", packed[: len(packed) * 3 // 4])
        *good, last = rows
        assert last.verdict == INVALID_ENCODING
        assert [row.raw for row in good] == lines.splitlines()[: len(good)]
        assert last.place == f"bytes={sum(len(row.raw) + 1 for row in good)}-"
    assert _rows(tmp_path / "a.jsonl.gz", b"\x1f\x8b no gzip")[-1].verdict == INVALID_ENCODING
    assert _rows(tmp_path / "a.jsonl.gz", lines[:20])[0].raw == lines[:20]
    pretty = gzip.compress(_dumped([{"id": n} for n in range(9999)], indent=1).encode())
    rows = _rows(tmp_path / "a.json.gz", pretty[: len(pretty) // 2])
    assert rows[-1].verdict == INVALID_ENCODING
    assert rows[0].raw == b'{\n  "id": 0\n }'


@pytest.mark.parametrize("layout", ["lines", "array", "pretty"])
def test_a_value_that_is_too_large_is_never_read_whole(tmp_path: Path, layout: str) -> None:
    values = [{"id": 1}, {"id": 2, "long": "x" * 3 * _FEW}, {"id": 3}]
    texts = {
        "lines": "\n".join(map(_dumped, values)),
        "array": "[\n" + ",\n".join(map(_dumped, values)) + "]",
        "pretty": _dumped(values, indent=2),
    }
    first, large, last = _rows(tmp_path / "a", texts[layout].encode(), max_bytes=_FEW)
    assert (json.loads(first.raw), json.loads(last.raw)) == ({"id": 1}, {"id": 3})
    assert large.verdict == RECORD_TOO_LARGE
    assert len(large.raw) <= _FEW + 2
    begin, end = map(int, large.place.removeprefix("bytes=").split("-"))
    assert 3 * _FEW < end - begin < 3 * _FEW + 50


@given(
    values=st.lists(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=40)), max_size=30),
    size=st.integers(1, 200),
    garbage=st.binary(max_size=20).filter(lambda text: b"\n" not in text),
)
def test_blocks_have_each_line_once(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], size: int, garbage: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "blocks.jsonl"
    lines = [_dumped({"id": 0}).encode(), *(_dumped(value).encode() for value in values), garbage]
    whole = _rows(file, b"\n".join(lines))
    blocks = range(0, file.stat().st_size, size)
    reader = FileReader(_JSON)
    parts = [row for start in blocks for row in reader.rows(file, Block(start, start + size))]
    assert [(row.place, row.raw) for row in parts] == [(row.place, row.raw) for row in whole]
    file.write_bytes(_dumped(values, indent=1).encode())
    assert [row for start in blocks for row in reader.rows(file, Block(start, start + size))] == list(reader.rows(file))


@given(
    content=st.lists(
        st.sampled_from(
            [b"{", b"}", b"[", b"]", b'"', b",", b":", b"\n", b" ", b"1", b"null", b'{"a":1}', b"\0", b"\xff"]
        )
        | st.binary(max_size=4),
        max_size=60,
    )
)
def test_any_bytes_end_in_records_of_which_none_is_lost(
    tmp_path_factory: pytest.TempPathFactory, content: list[bytes]
) -> None:
    file, text = tmp_path_factory.getbasetemp() / "any", b"".join(content)
    rows = _rows(file, text)
    other_texts = (b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"BZh", b"\x28\xb5\x2f\xfd")
    if text.startswith(other_texts) or any(row.verdict for row in rows):
        return
    place = 0
    for row in rows:
        begin, end = map(int, row.place.removeprefix("bytes=").split("-"))
        assert place <= begin <= end <= len(text)
        # What lies between records is white space, and the punctuation of arrays.
        assert not text[place:begin].strip(b" \t\r\n\0,[]"), (place, begin)
        assert row.raw in text[begin:end]
        place = end
    assert not text[place:].strip(b" \t\r\n\0,[]")


def _zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(content)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
