"""CSV and TSV, in files and in records of a topic: rows as JSON text, and a verdict for what cannot be read."""

import bz2
import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
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
    found = _read(tmp_path, b"1,2,3\n1\n", columns=("a", "*"))
    assert found == [("row=0", {"a": "1", "2": "2", "3": "3"}), ("row=1", {"a": "1"})]
    assert _read(tmp_path, b"1,2,3\n", columns=("a",)) == [("row=0", ("invalid_encoding", b"1,2,3\n"))]


def test_a_quote_in_a_text_costs_its_line_only(tmp_path: Path) -> None:
    rows = [f"k{number}\t{chr(34) if number % 100 == 0 else ''}best shoes" for number in range(500)]
    found = _read(tmp_path, "\n".join(["id\tterm", *rows]).encode(), "a.tsv")
    bad = [place for place, row in found if isinstance(row, tuple)]
    assert (len(found), bad) == (500, [f"row={number}" for number in range(0, 500, 100)])
    assert found[101] == ("row=101", {"id": "k101", "term": "best shoes"})
    unquoted = _read(tmp_path, "\n".join(["id\tterm", *rows]).encode(), "a.tsv", quote="")
    assert unquoted[100] == ("row=100", {"id": "k100", "term": '"best shoes'})


def test_a_cell_of_several_lines_is_limited(tmp_path: Path) -> None:
    place = tmp_path / "a.csv"
    lines = [f"{number},x" for number in range(1000)]
    place.write_text("\n".join(["a,b", '"open,1', *lines, '1,"2\n3"']))
    bad, *rows = list(read_csv(place, _encoding(), max_bytes=100))
    assert (bad.verdict, bad.raw) == ("invalid_encoding", b'"open,1\n')
    assert (bad.reason or "").endswith('set quote = ""')
    assert [json.loads(row.text or "")["a"] for row in rows] == [*map(str, range(1000)), "1"]
    assert json.loads(rows[-1].text or "")["b"] == "2\n3"


def test_a_line_that_is_too_long_is_refused_without_being_kept(tmp_path: Path) -> None:
    place = tmp_path / "a.csv"
    place.write_bytes(b"a,b\n1,2\n" + b"x" * 5_000_000 + b",y\n3,4\n")
    one, long, last = list(read_csv(place, _encoding(), max_bytes=1000))
    assert (one.text, last.text) == ('{"a":"1","b":"2"}', '{"a":"3","b":"4"}')
    assert (long.verdict, len(long.raw)) == ("record_too_large", 1002)


@pytest.mark.parametrize(
    ("content", "values", "expected"),
    [
        pytest.param(b"#v 1\n# a b\na,b\n1,2\n#end\n", {"comment": "#"}, _ONE, id="comments"),
        pytest.param(b"Report\nof\na,b\n1,2\n", {"skip_lines": 2}, _ONE, id="lines-before"),
        pytest.param(b"sep=;\r\na;b\r\n1;2\r\n", {}, _ONE, id="excel"),
        pytest.param("a,b\n1,2\n".encode("utf-16"), {}, _ONE, id="utf-16"),
        pytest.param("a,b\n1,2\n".encode("utf-16-le"), {"charset": "utf-16-le"}, _ONE, id="utf-16-without-its-mark"),
        pytest.param(b"a||b\n1||2\n", {"delimiter": "||"}, _ONE, id="long-delimiter"),
        pytest.param(b'a||b\n"x||y"||2\n', {"delimiter": "||"}, [("row=0", {"a": "x||y", "b": "2"})], id="in-quotes"),
        pytest.param(
            b"a|b\nx\\|y|2\n", {"delimiter": "|", "escape": "\\"}, [("row=0", {"a": "x|y", "b": "2"})], id="escape"
        ),
        pytest.param(b"a,b\n\xe4,2\n", {"charset": "windows-1252"}, [("row=0", {"a": "ä", "b": "2"})], id="windows"),
        pytest.param(
            b"a,b\n\x81,2\n1,2\n",
            {"charset": "windows-1252"},
            [("row=0", ("invalid_utf8", b"\xff,2\n")), ("row=1", {"a": "1", "b": "2"})],
            id="no-text-in-its-charset",
        ),
    ],
)
def test_files_as_programs_write_them(
    tmp_path: Path, content: bytes, values: dict[str, Any], expected: list[tuple[str, Any]]
) -> None:
    assert _read(tmp_path, content, **values) == expected


@pytest.mark.parametrize(
    "compress", [gzip.compress, bz2.compress, lambda data: pa.Codec("zstd").compress(data, asbytes=True)]
)
def test_the_content_says_how_it_is_compressed(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    place = tmp_path / "a.csv"
    place.write_bytes(compress(b"a,b\n1,2\n") + compress(b"3,4\n"))
    assert [row.text for row in read_csv(place, _encoding())] == ['{"a":"1","b":"2"}', '{"a":"3","b":"4"}']


_OTHER_BEGINNINGS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"\x1f\x8b", b"BZh", b"\x28\xb5", b"sep=")
"""Of text that is compressed, or in another character set, or for Excel."""


@given(st.binary(max_size=300), st.sampled_from(["", '"']), st.sampled_from([10, 40, 1000]))
def test_any_bytes_of_a_file_end_and_none_of_its_lines_is_lost(content: bytes, quote: str, most: int) -> None:
    """Property: each line that is not blank is a part of some row, or of a verdict, in its order."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "a.csv"
        place.write_bytes(content)
        rows = list(read_csv(place, _encoding(columns=("a", "*"), quote=quote), max_bytes=most))
    assert all((row.text is None) == (row.verdict is not None) for row in rows)
    assert [row.place for row in rows if row.place.startswith("row=")] == [
        f"row={number}" for number in range(sum(row.place.startswith("row=") for row in rows))
    ]
    if not quote and not content.startswith(
        (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"\x1f\x8b", b"BZh", b"\x28\xb5", b"sep=")
    ):
        lines = [line for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip(b"\r")]
        assert len(rows) >= len(lines)


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
