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
    schema_file: Path | None = None
    message: str = ""
    in_registry: bool = True

    @property
    def differing(self) -> dict[str, str]:
        """By name, the attributes other than ``format`` that do not have their default, as text."""
        texts = {one.name: _text(getattr(self, one.name)) for one in fields(self) if one.name != "format"}
        defaults = {one.name: _text(one.default) for one in fields(self)}
        return {name: text for name, text in texts.items() if text != defaults[name]}


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


_SUFFIXES = {
    ".csv": RecordFormat.CSV,
    ".tsv": RecordFormat.CSV,
    ".csv.gz": RecordFormat.CSV,
    ".tsv.gz": RecordFormat.CSV,
    ".avro": RecordFormat.AVRO,
    ".parquet": RecordFormat.PARQUET,
}
ROW_FILES = tuple(f"*{suffix}" for suffix in _SUFFIXES)
"""Names of the files that Spark does not read as lines."""


def format_of_file(name: str) -> RecordFormat:
    """The format of a file by its ``name``; JSON Lines if it has no ending of :data:`ROW_FILES`."""
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), RecordFormat.JSON)
