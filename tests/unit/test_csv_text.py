"""CSV and TSV, in files and in records of a topic: rows as JSON text, and a verdict for what cannot be read."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.config.encoding import Encoding, RecordFormat
from spark_jobs.formats.csv_text import CsvDecoder, read_csv


def _encoding(**values: Any) -> Encoding:
    return Encoding(RecordFormat.CSV, **values)


def _read(tmp_path: Path, content: bytes, name: str = "a.csv", **values: Any) -> list[tuple[str, Any]]:
    """The rows of a file with ``content``: place, and the row's object, or its verdict and bytes."""
    place = tmp_path / name
    place.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return [
        (row.place, json.loads(row.text) if row.text else (row.verdict, row.raw))
        for row in read_csv(place, _encoding(**values))
    ]


_ONE = [("row=0", {"a": "1", "b": "2"})]


@pytest.mark.parametrize(
    ("name", "content", "values"),
    [
        pytest.param("a.csv", b"a,b\n1,2\n", {}, id="first-row-names"),
        pytest.param("a.csv", b"a,b\r\n1,2", {}, id="no-last-line-end"),
        pytest.param("a.csv", b"\xef\xbb\xbfa,b\n1,2\n", {}, id="byte-order-mark"),
        pytest.param("a.csv", b"a,b\n\n1,2\n\n", {}, id="blank-lines"),
        pytest.param("a.csv", b"1,2\n", {"columns": ("a", "b")}, id="settings-name"),
        pytest.param("a.csv", b"a,b\n1,2\n", {"columns": ("a", "b")}, id="first-row-repeats-the-settings"),
        pytest.param("a.tsv", b"a\tb\n1\t2\n", {}, id="tabs-in-tsv"),
        pytest.param("a.tsv.gz", b"a\tb\n1\t2\n", {}, id="compressed"),
        pytest.param("a.csv", b"a;b\n1;2\n", {"delimiter": ";"}, id="delimiter"),
        pytest.param("a.csv", b'"a",b\n"1","2"\n', {}, id="quotes"),
        pytest.param("a.csv", b"'a',b\n'1',2\n", {"quote": "'"}, id="other-quote"),
    ],
)
def test_a_row_is_an_object_of_texts(tmp_path: Path, name: str, content: bytes, values: dict[str, Any]) -> None:
    assert _read(tmp_path, content, name, **values) == _ONE


def test_cells_are_texts_and_empty_ones_null(tmp_path: Path) -> None:
    content = 'a,b,c\n"x,""y""\nz",,ü\u2028\0\n'.encode()
    assert _read(tmp_path, content) == [("row=0", {"a": 'x,"y"\nz', "b": None, "c": "ü\u2028\0"})]


def test_without_a_quote_nothing_is_quoted(tmp_path: Path) -> None:
    assert _read(tmp_path, b'a\tb\n{"x": 1}\t"\n', "a.tsv", quote="") == [("row=0", {"a": '{"x": 1}', "b": '"'})]


def test_a_bad_row_has_a_verdict_and_the_next_one_is_read(tmp_path: Path) -> None:
    content = b'a,b\n1\n1,2,3\n"x"y,2\n\xff,2\n1,2\n'
    assert _read(tmp_path, content) == [
        ("row=0", ("invalid_encoding", b"1\n")),
        ("row=1", ("invalid_encoding", b"1,2,3\n")),
        ("row=2", ("invalid_encoding", b'"x"y,2\n')),
        ("row=3", ("invalid_utf8", b"\xff,2\n")),
        ("row=4", {"a": "1", "b": "2"}),
    ]


def test_cells_beyond_the_named_columns_are_numbered(tmp_path: Path) -> None:
    assert _read(tmp_path, b"1,2,3\n", columns=("a",)) == [("row=0", {"a": "1", "2": "2", "3": "3"})]


def test_a_first_row_with_a_repeated_name_ends_the_file(tmp_path: Path) -> None:
    assert _read(tmp_path, b"a,a\n1,2\n") == [("row=0", ("invalid_encoding", b"a,a\n"))]


def test_a_compressed_file_that_is_cut_off_gives_what_can_be_read(tmp_path: Path) -> None:
    place = tmp_path / "a.csv.gz"
    lines = [f"{number},{hash(str(number))}" for number in range(20_000)]
    whole = gzip.compress("\n".join(["a,b", *lines]).encode())
    place.write_bytes(whole[: len(whole) // 2])
    *rows, last = list(read_csv(place, _encoding()))
    assert [json.loads(row.text or "") for row in rows] == [
        dict(zip("ab", line.split(","), strict=True)) for line in lines[: len(rows)]
    ]
    assert len(rows) > 5000
    assert (last.verdict, last.place) == ("invalid_encoding", f"rows={len(rows)}-")


def test_an_error_of_reading_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        list(read_csv(tmp_path / "missing.csv", _encoding()))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"1,2", '{"a":"1","b":"2"}'),
        (b"1,2\n", '{"a":"1","b":"2"}'),
        (b'"1\n2",', '{"a":"1\\n2","b":null}'),
        (b"1", "the row has 1 cells, and there are 2 columns"),
        (b"1,2\n3,4", "the row cannot be read: new-line character seen in unquoted field"),
        (b"", "the value has 0 rows; it must have one"),
        (b"\xff,1", "the row is not UTF-8"),
        (b"x" * 101, "the value has 101 bytes, more than 100"),
    ],
)
def test_a_value_is_one_row(value: bytes, expected: str) -> None:
    found = CsvDecoder(_encoding(columns=("a", "b")), max_bytes=100).decode(value)
    assert (found.text or found.reason or "").startswith(expected)
    assert (found.text is None) == (found.verdict is not None)


_CELLS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.lists(_CELLS, min_size=2, max_size=2), max_size=5), st.sampled_from([",", "\t", ";", "|"]))
def test_what_a_writer_writes_is_read_back(rows: list[list[str]], delimiter: str) -> None:
    """Property: any rows of text, as Python's own writer writes them, by value."""
    for row in rows:
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerow(row)
        decoded = CsvDecoder(_encoding(columns=("a", "b"), delimiter=delimiter)).decode(out.getvalue().encode())
        assert decoded.text is not None, decoded
        assert json.loads(decoded.text) == {name: cell or None for name, cell in zip("ab", row, strict=True)}


@given(st.binary(max_size=200))
def test_any_bytes_give_text_or_a_verdict(value: bytes) -> None:
    found = CsvDecoder(_encoding(columns=("a",))).decode(value)
    assert (found.text is None) == (found.verdict is not None) == bool(found.reason)
