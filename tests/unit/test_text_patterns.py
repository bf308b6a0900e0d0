"""Lines of text by patterns, and values within other bytes."""

import bz2
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.config.encoding import Encoding, RecordFormat
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import INVALID_ENCODING, INVALID_UTF8, RECORD_TOO_LARGE
from spark_jobs.errors import SettingsError
from spark_jobs.formats.files import FileReader
from spark_jobs.formats.sources import decoders
from spark_jobs.formats.text_patterns import TextDecoder, pattern_of
from spark_jobs.formats.wrapped import WrappedDecoder


def _text(pattern: str, **others: str) -> Encoding:
    return Encoding(RecordFormat.TEXT, pattern=pattern, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        (
            r"(?<level>[A-Z]+) (?P<user>\S+)(?: (?<page>/.*))?",
            "INFO u /a b",
            {"level": "INFO", "user": "u", "page": "/a b"},
        ),
        (r"(?<level>[A-Z]+) (?P<user>\S+)(?: (?<page>/.*))?", "INFO u", {"level": "INFO", "user": "u", "page": None}),
        (r"([a-z])\(([(<]*)\)(?<last>.*)", 'a((<)\u00e9"', {"last": '\u00e9"'}),
        (
            "combined",
            '::1 - joe [10/Oct/2000:13:55:36 -0700] "GET /a\\"b HTTP/1.0" 200 -',
            {
                "ip": "::1",
                "user": "joe",
                "time": "10/Oct/2000:13:55:36 -0700",
                "status": "200",
                "bytes": "-",
                "request": 'GET /a\\"b HTTP/1.0',
                "referrer": None,
                "agent": None,
            },
        ),
    ],
)
def test_named_groups_are_fields(pattern: str, line: str, expected: dict[str, str | None]) -> None:
    found = TextDecoder(_text(pattern)).decode(f"{line}\r\n".encode())
    assert json.loads(found.text or "") == expected


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a)", "names no group"),
        ("(?<a>x)(?<a>y)", "two groups are named a"),
        ("(?<a>(?:x|y)*)", "pattern: "),
        ("(?<a>x", "pattern: "),
        (r"(?<a>x)\1", "pattern: "),
    ],
)
def test_a_pattern_is_refused_at_the_start(pattern: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        pattern_of(pattern)


def test_lines_of_files_that_do_not_match_have_verdicts(tmp_path: Path) -> None:
    content = "made by us\n# more\na 1\n\nnone\nb 2\n\u00fc 3\n" + "c 4" * 40
    (tmp_path / "a.log").write_bytes(gzip.compress(content.encode("cp1252")))
    encoding = Encoding(RecordFormat.TEXT, pattern=r"(?<id>\w) (?<n>\d)|(?<other>\W \d)", comment="#", skip_lines=1)
    for charset, last in (("windows-1252", '{"id":null,"n":null,"other":"\u00fc 3"}'), ("utf-8", None)):
        reader = FileReader(Encoding(**{**vars(encoding), "charset": charset}), max_bytes=100)
        rows = list(reader.rows(tmp_path / "a.log"))
        assert [row.text for row in rows] == [
            *('{"id":"a","n":"1","other":null}', None, '{"id":"b","n":"2","other":null}', last, None),
        ]
        assert rows[1][2:5] == (INVALID_ENCODING, "the line does not match the pattern", b"none")
        assert [row.verdict for row in rows[3:]] == [None if last else INVALID_UTF8, RECORD_TOO_LARGE]
        assert [row.place for row in rows] == [f"row={number}" for number in range(5)]


@given(st.binary(max_size=60), st.sampled_from(["combined", r"(?<a>.*),(?<b>[^,]*)"]))
def test_any_bytes_end_in_a_record_or_a_verdict(value: bytes, pattern: str) -> None:
    found = TextDecoder(_text(pattern)).decode(value)
    assert (found.text is None) == (found.verdict is not None)


def _zstd(content: bytes) -> bytes:
    packed: bytes = pa.Codec("zstd").compress(content, asbytes=True)
    return packed


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, zlib.compress, _zstd])
def test_values_are_read_behind_a_header_and_decompressed(pack: type[bytes]) -> None:
    decoder = WrappedDecoder(None, 5, is_compressed=True, max_bytes=100)
    assert decoder.decode(b"\0\0\0\0\7" + pack(b'\xef\xbb\xbf {"a": 1}\n')) == ('{"a": 1}', None, None)
    assert decoder.decode(b"\0\0\0").verdict == INVALID_ENCODING
    assert decoder.decode(b"\0\0\0\0\7" + pack(b"\xff")).verdict == INVALID_UTF8
    assert decoder.decode(b"\0\0\0\0\7" + pack(b"x" * 1000)).verdict == RECORD_TOO_LARGE
    if pack is not bytes:
        assert decoder.decode(b"\0\0\0\0\7" + pack(b'{"a": 1}' * 9)[:-7]).verdict == INVALID_ENCODING


def test_what_is_wrapped_is_decoded_as_its_format_says() -> None:
    rule = {"event_type": "'activity'", "map": {"event_id": "$.id", "event_time": "$.t", "user_id": "$.u"}}
    sources: dict[str, dict[str, Any]] = {
        "json": {"topics": "j", "skip_bytes": 5},
        "plain": {"topics": "p"},
        "lines": {"topics": "l", "format": "text", "pattern": "(?<id>.*)", "compressed": True},
        "rows": {"topics": "r", "format": "csv", "columns": "id", "skip_bytes": 1},
    }
    found = decoders(Settings.model_validate({"source": {name: one | rule for name, one in sources.items()}}), None)
    assert sorted(found) == ["j", "l", "r"]
    assert found["j"].decode(b'\0\0\0\0\1{"id":"a"}').text == '{"id":"a"}'
    assert found["l"].decode(gzip.compress(b"a")).text == '{"id":"a"}'
    assert found["r"].decode(b"\1a").text == '{"id":"a"}'


@given(st.binary(max_size=80), st.integers(0, 4))
def test_any_wrapped_bytes_end_in_a_text_or_a_verdict(value: bytes, skip: int) -> None:
    for head in (b"", b"\x1f\x8b\x08\0\0\0\0\0\0\3", b"\x78\x9c", b"\x28\xb5\x2f\xfd", b"BZh9"):
        found = WrappedDecoder(None, skip, is_compressed=True).decode(b"\0" * skip + head + value)
        assert (found.text is None) == (found.verdict is not None)
