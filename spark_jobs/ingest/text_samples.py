"""How the rows of a file of text lie, for which no settings say it yet."""

import re
from contextlib import closing
from itertools import islice
from pathlib import Path

from spark_jobs.config.encoding import Encoding, RecordFormat
from spark_jobs.errors import SourceError
from spark_jobs.formats.csv_text import W3C_FIELDS
from spark_jobs.formats.text_lines import DAMAGE, open_content
from spark_jobs.formats.text_patterns import COMBINED

_COMMENT = "#"
_DELIMITERS = ",\t;|"
_OF_ACCESS_LOG = re.compile(r"\S+ \S+ \S+ \[\d{2}/[A-Z][a-z]{2}/\d{4}:")
"""How a line of the log of a web server begins."""
_HEAD = 64 * 1024
_LINES = 100


def encoding_of(file: Path, charset: str) -> Encoding:
    """How the rows of ``file``, compressed or not, are read, by its first lines: as CSV, or as a web server's log.

    Raises:
        SourceError: it cannot be read, or its first line is not UTF-8, has one column only, or names none.
    """
    try:
        with closing(open_content(file, charset)) as content:
            lines = [line.decode("utf-8-sig").rstrip("\r\n") for line in islice(content.lines(_HEAD), _LINES)]
    except (*DAMAGE, OSError) as error:
        raise SourceError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{file} is not UTF-8: byte {error.start}; convert it, as with iconv") from error
    rows = [line for line in lines if not line.startswith(_COMMENT)]
    header, comment = rows[0] if rows else "", _COMMENT if len(rows) < len(lines) else ""
    if _OF_ACCESS_LOG.match(header):
        return Encoding(RecordFormat.TEXT, pattern=COMBINED, comment=comment, charset=charset)
    is_named = any(line.startswith(W3C_FIELDS) for line in lines)
    found = max(f"{_DELIMITERS} " if is_named else _DELIMITERS, key=header.count)
    if found not in header:
        raise SourceError(
            f"{file} is neither JSON nor CSV: its first line is {header[:80].strip()!r}; a CSV file begins "
            "with the names of its columns, separated by a comma, tab, semicolon or |; other lines are read by "
            'format = "text" and a pattern (docs/events.md)'
        )
    if not is_named:
        _check_header(file, [name.strip().strip('"') for name in header.split(found)])
    # A comma needs no setting.
    return Encoding(RecordFormat.CSV, delimiter=found.replace(",", ""), comment=comment, charset=charset)


def _check_header(file: Path, names: list[str]) -> None:
    wrong = [name for name in names if not name or name.replace(".", "", 1).isdigit()]
    if wrong:
        found = f"a column named {wrong[0]!r}"
        raise SourceError(f"{file}: its first line has {found}; put the names of the columns there")
    if twice := [name for name in names if names.count(name) > 1]:
        raise SourceError(f"{file}: two columns are named {twice[0]!r}; rename one of them in the first line")
