r"""Lines of text as JSON objects of text, by a pattern whose groups have names.

::

    pattern    (?<level>[A-Z]+) (?<user>\S+) (?<page>.*)
    line       INFO u-1 /home?a=1
    record     {"level": "INFO", "user": "u-1", "page": "/home?a=1"}
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from spark_jobs.config.encoding import Encoding
from spark_jobs.contract.events import DEFAULT_MAX_RECORD_BYTES, INVALID_UTF8, RECORD_TOO_LARGE
from spark_jobs.errors import SettingsError
from spark_jobs.formats.decoding import Decoded, decoded
from spark_jobs.formats.file_rows import MOST_RAW_BYTES, FileRow, rest_of_file
from spark_jobs.formats.input_file import InputFile
from spark_jobs.formats.refusal import Refused, invalid
from spark_jobs.formats.text_lines import DAMAGE, in_utf_8, is_comment, open_content, text_lines
from spark_jobs.mapping.errors import RefusalError
from spark_jobs.mapping.regex import parse_regex

COMBINED: Final = "combined"
KNOWN: Final = {
    COMBINED: (
        r'(?<ip>\S+) \S+ (?<user>\S+) \[(?<time>[^\]]+)\] "(?<request>.*)" (?<status>\d{3}) (?<bytes>\S+)'
        r'(?: "(?<referrer>.*)" "(?<agent>.*)")?'
    ),
}
"""By name, the patterns of the trade: ``combined`` is the log of Apache and nginx, with or without its last two."""
_PART: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P?<([A-Za-z][A-Za-z0-9_]*)>|\((?!\?)", re.DOTALL)


@dataclass(frozen=True)
class Pattern:
    """A pattern, and by name the number of each of its groups."""

    regex: re.Pattern[str]
    groups: tuple[tuple[str, int], ...]

    def record(self, line: str) -> str | None:
        """``line`` as a JSON object; None: it does not match."""
        found = self.regex.fullmatch(line)
        if found is None:
            return None
        return json.dumps(
            {name: found[group] for name, group in self.groups}, ensure_ascii=False, separators=(",", ":")
        )


@lru_cache(maxsize=100)
def pattern_of(text: str) -> Pattern:
    """The pattern that ``text`` is, or names.

    Raises:
        SettingsError: it is no regular expression of the language of mappings, or names no group, or one twice.
    """
    names, number = dict[str, int](), 0

    def unnamed(part: re.Match[str]) -> str:
        nonlocal number
        if not part[0].startswith("("):
            return part[0]
        number += 1
        if (name := part[1]) in names:
            raise SettingsError(f"pattern: two groups are named {name}; give each a name of its own")
        if name:
            names[name] = number
        return "("

    plain = _PART.sub(unnamed, KNOWN.get(text, text))
    if not names:
        raise SettingsError("pattern: it names no group, as (?<user>[a-z]+) does")
    try:
        return Pattern(parse_regex(plain).compiled(), tuple(names.items()))
    except RefusalError as error:
        raise SettingsError(f"pattern: {error}") from error


@dataclass(frozen=True)
class TextDecoder:
    """Decodes values of Kafka records, each one line.

    Attributes:
        encoding: its pattern and character set.
        max_bytes: longer values are not decoded.
    """

    encoding: Encoding
    max_bytes: int = DEFAULT_MAX_RECORD_BYTES

    def decode(self, value: bytes) -> Decoded:
        """See :class:`spark_jobs.formats.decoding.Decoder`."""
        return decoded(value, self.max_bytes, self._read)

    def _read(self, value: bytes) -> str:
        line = in_utf_8(value, self.encoding.charset)
        return _as_json(line, self.encoding, max(self.max_bytes, len(line)))  # in UTF-8 it may be longer


def read_text(file: InputFile, encoding: Encoding, max_bytes: int = DEFAULT_MAX_RECORD_BYTES) -> Iterator[FileRow]:
    """The lines of ``file`` that are not blank, in its order.

    Args:
        file: compressed or not, as its content says.
        encoding: its pattern, character set, and which lines are no records.
        max_bytes: longer lines are not read.

    Yields:
        Rows, and one for each line that could not be read.

    Raises:
        OSError: the file cannot be opened or read.
    """
    number = 0
    with closing(open_content(file, encoding.charset)) as content:
        try:
            for line in text_lines(content.lines(max_bytes), encoding):
                bare, place = line.rstrip(b"\r\n"), f"row={number}"
                if not bare.strip() or is_comment(bare, encoding):
                    continue
                try:
                    yield FileRow(place, _as_json(bare, encoding, max_bytes))
                except Refused as refused:
                    yield FileRow(place, None, refused.verdict, refused.reason, bare[:MOST_RAW_BYTES])
                number += 1
        except DAMAGE as error:
            yield rest_of_file(f"rows={number}-", error)


def _as_json(line: bytes, encoding: Encoding, max_bytes: int) -> str:
    if len(line) > max_bytes:
        raise Refused(RECORD_TOO_LARGE, f"the line has more than {max_bytes} bytes")
    try:
        text = line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise Refused(INVALID_UTF8, f"the line is not {encoding.charset}") from None
    if found := pattern_of(encoding.pattern).record(text):
        return found
    raise invalid("the line does not match the pattern")
