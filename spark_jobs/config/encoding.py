"""How the bytes of records are read: the formats, and what else decides it."""

from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path


class RecordFormat(StrEnum):
    """The format of the records of a source."""

    ADLOOM = "adloom"
    """JSON objects with the fields of an event; they need no mapping."""
    JSON = "json"
    """JSON objects of any form."""
    CSV = "csv"
    """Rows of text, separated by commas, tabs or another character."""
    AVRO = "avro"
    """Values of Kafka records, or object container files."""
    PROTOBUF = "protobuf"
    """Values of Kafka records."""
    PARQUET = "parquet"
    """Files."""
    TEXT = "text"
    """Lines, taken apart by a pattern."""

    @property
    def is_json(self) -> bool:
        """Whether records are JSON text as they arrive; others are decoded first."""
        return self in (RecordFormat.ADLOOM, RecordFormat.JSON)


UTF_8 = "utf-8"
MORE_COLUMNS = "*"
"""Ends ``columns`` if rows may have further cells."""


@dataclass(frozen=True)
class Encoding:
    """All that decides how the bytes of a record are read: sources that share records must agree in it.

    The attributes are settings of the source; those that its format does not use have their defaults.
    """

    format: RecordFormat
    columns: tuple[str, ...] = ()
    delimiter: str = ""
    quote: str = '"'
    escape: str = ""
    comment: str = ""
    skip_lines: int = 0
    charset: str = UTF_8
    pattern: str = ""
    skip_bytes: int = 0
    compressed: bool = False
    schema_file: Path | None = None
    message: str = ""
    in_registry: bool = True

    @property
    def is_decoded(self) -> bool:
        """Whether values in topics are bytes that become JSON first."""
        is_plain = self.format.is_json and not (self.skip_bytes or self.compressed)
        return not is_plain and self.format is not RecordFormat.PARQUET

    @property
    def differing(self) -> dict[str, str]:
        """By name, the attributes other than ``format`` that do not have their default, as text."""
        texts = {one.name: _text(getattr(self, one.name)) for one in fields(self) if one.name != "format"}
        defaults = {one.name: _text(one.default) for one in fields(self)}
        return {name: text for name, text in texts.items() if text != defaults[name]}


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


_SUFFIXES = {
    RecordFormat.JSON: ("jsonl", "ndjson", "json"),
    RecordFormat.CSV: ("csv", "tsv"),
    RecordFormat.AVRO: ("avro",),
    RecordFormat.PARQUET: ("parquet",),
    RecordFormat.TEXT: ("log", "txt"),
}
_TEXTS = (RecordFormat.JSON, RecordFormat.CSV, RecordFormat.TEXT)
COMPRESSED = (".gz", ".zst", ".bz2")
"""Endings of the names of files of text that are compressed; whether they are, their content says."""


def names_of_files(kind: RecordFormat) -> tuple[str, ...]:
    """The patterns for the names of the files that have the format ``kind``, if a source gives no others."""
    kind = RecordFormat.JSON if kind.is_json else kind
    more = COMPRESSED if kind in _TEXTS else ()
    return tuple(f"*.{suffix}{packed}" for suffix in _SUFFIXES.get(kind, ()) for packed in ("", *more))


def format_of_file(name: str) -> RecordFormat:
    """The format of a file by its ``name``; JSON if that does not say."""
    found = (kind for kind in (RecordFormat.CSV, RecordFormat.AVRO, RecordFormat.PARQUET) if _is_named(name, kind))
    return next(found, RecordFormat.JSON)


def _is_named(name: str, kind: RecordFormat) -> bool:
    return name.endswith(tuple(pattern.removeprefix("*") for pattern in names_of_files(kind)))
