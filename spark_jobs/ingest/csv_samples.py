"""The delimiter of a CSV file for which no settings give it yet."""

import gzip
import re
import zlib
from pathlib import Path

from spark_jobs.errors import SourceError

_DELIMITERS = ",\t;|"
_OF_ACCESS_LOG = re.compile(r"\S+ \S+ \S+ \[\d{2}/[A-Z][a-z]{2}/\d{4}:")
"""How a line of the log of a web server begins."""
_HEAD = 64 * 1024


def delimiter_of(file: Path) -> str:
    """The delimiter that the first line of ``file`` (``.gz``: decompressed) has most often.

    Raises:
        SourceError: it cannot be read, is an access log, or its first line is not UTF-8, has one column only, or
            names none.
    """
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
            header = lines.readline(_HEAD).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{file} is not UTF-8: byte {error.start}; convert it, as with iconv") from error
    if _OF_ACCESS_LOG.match(header):
        cat = "zcat" if file.suffix == ".gz" else "cat"
        raise SourceError(
            f"{file} is the access log of a web server, and no table: make each line a record, as with "
            f"{cat} {file} | jq -Rc '{{line: .}}' > records.jsonl, and take the fields from it by "
            "regexp_extract($.line, …) (docs/mapping.md)"
        )
    found = max(_DELIMITERS, key=header.count)
    if found not in header:
        raise SourceError(
            f"{file} is neither JSON Lines nor CSV: its first line is {header[:80].strip()!r}; a CSV file begins "
            "with the names of its columns, separated by a comma, tab, semicolon or |"
        )
    _check_header(file, [name.strip().strip('"') for name in header.split(found)])
    return found


def _check_header(file: Path, names: list[str]) -> None:
    wrong = [name for name in names if not name or name.replace(".", "", 1).isdigit()]
    if wrong:
        found = f"a column named {wrong[0]!r}"
        raise SourceError(f"{file}: its first line has {found}; put the names of the columns there")
    if twice := [name for name in names if names.count(name) > 1]:
        raise SourceError(f"{file}: two columns are named {twice[0]!r}; rename one of them in the first line")
