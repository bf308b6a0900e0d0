"""Named sources: where records come from, and the mapping that makes events of them."""

import re
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from spark_jobs.config.encoding import MORE_COLUMNS, UTF_8, Encoding, RecordFormat, names_of_files
from spark_jobs.config.folders import Folder
from spark_jobs.config.sections import Section, comma_separated
from spark_jobs.config.topics import check_topic, is_meant
from spark_jobs.contract.events import COMMON_FIELDS, ID_FIELDS, TEXT_LIMITS, TYPE_FIELDS, UnknownFields
from spark_jobs.contract.record_places import META
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, CAMPAIGN_STATS, SILVER_EVENTS, Column

EVENT_TYPE: Final = "event_type"
FIELDS: Final = (*COMMON_FIELDS, *(field for fields in TYPE_FIELDS.values() for field in fields))
"""The fields that a mapping can give, in the order in which they are judged."""
TEXTS: Final = ("event_type", *ID_FIELDS, *TEXT_LIMITS)
"""Of these: in a record they are text or whole numbers."""
_ALWAYS_NEEDED: Final = ("event_id", "event_time", "user_id")
_MAY_LACK: Final = ("user_id",)
_LENIENT: Final = ("is_last", *TEXT_LIMITS, "cost_micros", "data", "order_id")
"""Without ``revokes``, which would make a sale of a refund that names none."""
OWN_SOURCE: Final = "adloom"
"""The name of the source of records in adloom's own format, if the settings name no source."""


def _text_of(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


class KeptType(StrEnum):
    """The type of a column that is kept."""

    STRING = "string"
    BIGINT = "bigint"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"

    @property
    def sql_type(self) -> str:
        """As a type of Spark SQL."""
        return "DECIMAL(30,9)" if self is KeptType.DECIMAL else self.value.upper()


class KeptColumn(Section):
    """A column of its own, carried through to gold: an expression and a type."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, populate_by_name=True)

    expression: str = Field(alias="from", min_length=1, description="expression over the record")
    type: KeptType = Field(KeptType.STRING, description="string, bigint, decimal, boolean or timestamp")


_OF_MAPPINGS: Final = ("each", "let", "when", "also", "event_type", "map", "keep", "may_lack", "lenient")
"""Settings of sources that have a mapping."""
_OF_LINES: Final = (RecordFormat.CSV, RecordFormat.TEXT, RecordFormat.JSON, RecordFormat.ADLOOM)
_BELONG_TO: Final = {
    ("columns", "delimiter", "quote", "escape"): (RecordFormat.CSV,),
    ("comment", "skip_lines", "charset"): _OF_LINES,
    ("pattern",): (RecordFormat.TEXT,),
    ("schema_file", "in_registry"): (RecordFormat.AVRO, RecordFormat.PROTOBUF),
    ("message",): (RecordFormat.PROTOBUF,),
}
"""Settings of some formats only."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
CLICK_SIDE: Final = "click_"
"""Begins the names of kept columns of the click, in ``gold/attributions``."""
_TAKEN: Final = {
    column.name for table in (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS, CAMPAIGN_STATS) for column in table.columns
}


class SourceSettings(Section):
    """``[source.NAME]``: where records come from, and how they become events.

    An expression is a piece of Spark SQL over one record (:mod:`spark_jobs.mapping`).
    """

    topics: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        (),
        description="comma-separated Kafka topics that hold its records; tenant-*.events means every topic that fits",
    )
    path: Annotated[str, BeforeValidator(_text_of)] = Field(
        "", description="folder that holds its files, in place of topics: a path, or s3://bucket/prefix"
    )
    files: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        (),
        description="comma-separated patterns for its files below the folder, as *.log or **/*.gz, where **/ stands "
        "for any folders; default: the endings of its format, in the folder itself",
    )
    format: RecordFormat = Field(
        RecordFormat.JSON,
        description="json, csv, text, avro, protobuf (topics only), parquet (files only); adloom: JSON with the fields "
        "of an event, which needs no map",
    )
    columns: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        (),
        description="csv: names of the columns, in order; default: the first row of each file names them. With * at "
        "the end, further cells have numbers for names",
    )
    delimiter: str = Field(
        "",
        max_length=8,
        description='csv: what separates cells; default: a comma, in files named .tsv a tab ("\\t")',
    )
    quote: str = Field('"', max_length=1, description="csv: what encloses cells with delimiters; empty: nothing does")
    escape: str = Field(
        "",
        max_length=1,
        description="csv: what makes a delimiter or quote behind it text, as a backslash; default: none",
    )
    comment: str = Field(
        "", max_length=8, description='csv, and files of JSON: what lines begin with that are no records, as "#"'
    )
    skip_lines: int = Field(
        0, ge=0, description="csv, and files of JSON: lines at the beginning of each file that are no records"
    )
    charset: str = Field(
        UTF_8,
        description="csv, and files of JSON: how characters are encoded, as windows-1252; UTF-16 with its mark is "
        "found without it",
    )
    pattern: str = Field(
        "",
        description="text: regular expression for a line, whose named groups, as (?<user>[a-z]+), become fields; or "
        "combined, for logs of Apache and nginx",
    )
    skip_bytes: int = Field(
        0,
        ge=0,
        description="topics: bytes before each value, as 5 of Confluent's JSON Schema, 18 of AWS Glue, 9 of Apicurio, "
        "10 of Avro's single objects",
    )
    compressed: bool = Field(False, description="topics: whether values may be compressed by gzip, zstd, bzip2 or zlib")
    schema_file: Path | None = Field(
        None,
        description="avro, protobuf: .avsc or .proto file. With a registry, the schema to read records as; without "
        "one, the schema that they were written with",
    )
    message: str = Field(
        "", description="protobuf: name of the message; default: the one that a record names, or the file's first"
    )
    in_registry: bool = Field(
        True, description="avro, protobuf: whether records name a schema in the registry, if registry.url is set"
    )
    each: str = Field(
        "",
        description="path to a list in the record whose elements are the records, as $.events, or $ if the record is "
        "a list: $ is then an element, and $$ the record around it. $.users[*].events is the list in each element of "
        "another one: $$ is then that element, and $$$ the record around both",
    )
    let: dict[str, str] = Field(
        default_factory=dict,
        description="by a name, an expression that gives JSON: with let.body, $body.id is a path into it, which is "
        "read once for all",
    )
    when: str = Field(
        "", description="condition for the records that this source means; empty: all. The first source that fits wins"
    )
    also: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        (), description="comma-separated sources that take the records of this one, too, if they mean them"
    )
    event_type: str = Field(
        "", description="expression that gives impression, click, activity or conversion, e.g. \"'click'\""
    )
    map: dict[str, str] = Field(default_factory=dict, description="by field of an event, the expression that gives it")
    keep: dict[str, KeptColumn] = Field(
        default_factory=dict,
        description="columns of their own from bronze to gold: name = { from = expression, type = type }",
    )
    may_lack: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        (), description="user_id: events without a user are good; they take part in attributions, but not in sessions"
    )
    lenient: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        (),
        description="comma-separated optional fields and kept columns that are null where a record gives no valid "
        "value; default: the record is quarantined",
    )
    unknown: UnknownFields = Field(
        UnknownFields.KEEP,
        description="records with a field at their root that the mapping does not read: keep (in raw), or quarantine",
    )

    @property
    def has_mapping(self) -> bool:
        """Whether its records have another form than adloom's own."""
        return self.format is not RecordFormat.ADLOOM

    @property
    def origins(self) -> tuple[str, ...]:
        """The topics that it reads, or the files of its format in a folder; none: it means records of any origin."""
        return (*self.topics, *([self.origin_of_files] if self.path else []))

    def reads(self, origin: str | None) -> bool:
        """Whether it reads records of ``origin``; None: of an unknown one."""
        if origin is None or not self.origins:
            return True
        return is_meant(origin, self.topics) if self.topics else origin == self.origin_of_files

    @property
    def names(self) -> tuple[str, ...]:
        """The patterns for its files, by their paths below the folder."""
        return self.files or names_of_files(self.format)

    @property
    def folder(self) -> Folder | None:
        """The folder of its files; None: it names none."""
        return Folder.of(self.path) if self.path else None

    @property
    def origin_of_files(self) -> str:
        """The origin of the records of its files."""
        return f"{self.path}#{','.join(self.names)}"

    @property
    def encoding(self) -> Encoding:
        """How the bytes of its records are read."""
        # Settings of other formats have their defaults.
        given = {one.name: getattr(self, one.name) for one in fields(Encoding) if one.name != "format"}
        return Encoding(RecordFormat.JSON if self.format.is_json else self.format, **given)

    @property
    def expressions(self) -> dict[str, str]:
        """By field of an event, the expression that gives it, in the order in which fields are judged."""
        given = self.map | ({EVENT_TYPE: self.event_type} if self.event_type else {})
        return {field: given[field] for field in FIELDS if field in given}

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        self._check_origin()
        self._check_format()
        self._check_reading()
        if not self.has_mapping:
            if extra := [name for name in _OF_MAPPINGS if getattr(self, name)]:
                raise ValueError(
                    f'{extra[0]}: format adloom needs no mapping; give another format, as in format = "json"'
                )
            return self
        self._check_fields()
        self._check_kept()
        return self

    def _check_origin(self) -> None:
        for topic in self.topics:
            check_topic(topic)
        if self.path and self.topics:
            raise ValueError("path and topics are both set; a source has one of them: make two sources of it")
        if self.path:
            Folder.of(self.path)
        if self.files and self.topics:
            raise ValueError("files and topics are both set: a topic has no files; leave out files")
        if wrong := [one for one in self.files if one.startswith("/") or ".." in one.split("/") or one.endswith("/")]:
            raise ValueError(f"files: {wrong[0]} is no pattern below the folder; write one as *.log or **/*.gz")
        if self.path and self.format is RecordFormat.PROTOBUF:
            raise ValueError("path with format protobuf: there are no files of Protobuf; give topics, or write Avro")
        if self.format is RecordFormat.PROTOBUF and not self.topics:
            raise ValueError("topics is missing: format protobuf is that of records in topics")
        if self.topics and self.format is RecordFormat.PARQUET:
            raise ValueError("topics with format parquet: it is a format of files; give path, or another format")
        if self.topics and self.format is RecordFormat.CSV and not self.columns:
            raise ValueError("columns is missing: a record in a topic has no first row that names them")

    def _check_reading(self) -> None:
        if self.format is RecordFormat.TEXT and not self.pattern:
            raise ValueError("pattern is missing: it says which parts of a line are fields; or set pattern = combined")
        of_values = [name for name in ("skip_bytes", "compressed") if name in self.model_fields_set]
        if of_values and not self.topics:
            raise ValueError(f"{of_values[0]} is for values in topics, and this source has none; leave it out")
        of_lines = [name for name in ("comment", "skip_lines", "charset") if name in self.model_fields_set]
        if of_lines and self.topics and self.format.is_json:
            raise ValueError(f"{of_lines[0]} is for files, and this source has topics; leave it out")

    def _check_format(self) -> None:
        for names, formats in _BELONG_TO.items():
            given = [name for name in names if name in self.model_fields_set]
            if given and self.format not in formats:
                raise ValueError(
                    f"{given[0]} is a setting of format {' and '.join(formats)}, and format is {self.format}; "
                    f"leave it out, or correct format"
                )
        if repeated := [name for name in self.columns if self.columns.count(name) > 1]:
            raise ValueError(f"columns: {repeated[0]} is named twice; give each column a name of its own")
        if self.delimiter and {self.quote, "\n", "\r"} & set(self.delimiter):
            raise ValueError("delimiter: it cannot be the quote or an end of line; choose another character")
        if MORE_COLUMNS in self.columns[:-1] or self.columns == (MORE_COLUMNS,):
            raise ValueError(f"columns: {MORE_COLUMNS} stands for further cells; write it after the last name")
        if self.escape and self.escape in (self.quote, self.delimiter, "\n", "\r"):
            raise ValueError(
                "escape: it cannot be the quote, the delimiter or an end of line; choose another character"
            )
        try:
            "".encode(self.charset)
        except (LookupError, UnicodeError) as error:
            raise ValueError(
                f"charset: there is no {self.charset}; name one as utf-8, utf-16 or windows-1252"
            ) from error

    def _check_fields(self) -> None:
        if unknown := [field for field in self.map if field not in FIELDS]:
            raise ValueError(f"map.{unknown[0]}: an event has no such field; it has {', '.join(FIELDS)}")
        if self.event_type and EVENT_TYPE in self.map:
            raise ValueError("event_type is given twice; leave out map.event_type")
        if wrong := [field for field in self.may_lack if field not in _MAY_LACK]:
            raise ValueError(f"may_lack: {wrong[0]} is needed; only {', '.join(_MAY_LACK)} may be missing")
        if wrong := [name for name in self.lenient if name not in (*_LENIENT, *self.keep)]:
            raise ValueError(
                f"lenient: {wrong[0]} is needed, or no field of it; choose from {', '.join((*_LENIENT, *self.keep))}"
            )
        needed = [EVENT_TYPE, *(field for field in _ALWAYS_NEEDED if field not in self.may_lack)]
        if missing := [field for field in needed if field not in self.expressions]:
            where = "event_type" if missing[0] == EVENT_TYPE else f"map.{missing[0]}"
            raise ValueError(f"{where} is missing: every event needs it; give the expression that gives it")

    def _check_kept(self) -> None:
        if wrong := [name for name in self.let if not _NAME.fullmatch(name)]:
            raise ValueError(f"let.{wrong[0]}: its name has small letters, digits and _, as in body")
        if META in self.let:
            raise ValueError(f"let.{META}: ${META} is the metadata of a record")
        for name in self.keep:
            if not _NAME.fullmatch(name):
                raise ValueError(f"keep.{name}: a column is named by small letters, digits and _, as in publisher_id")
            if name in _TAKEN or name.startswith(CLICK_SIDE):
                raise ValueError(
                    f"keep.{name}: the tables have a column of that name, or keep it for the click's side "
                    f"({CLICK_SIDE}…); choose another"
                )


def kept_columns(sources: Mapping[str, SourceSettings]) -> tuple[Column, ...]:
    """The columns that ``sources`` keep, in the order of their first mention.

    Raises:
        ValueError: two sources keep a column of the same name with different types.
    """
    found: dict[str, tuple[str, KeptColumn]] = {}
    for source, settings in sources.items():
        for name, column in settings.keep.items():
            first, known = found.setdefault(name, (source, column))
            if known.type is not column.type:
                raise ValueError(
                    f"source.{source}.keep.{name}: type {column.type}, but {known.type} in source.{first}; a column "
                    "has one type: change one of them, or the name"
                )
    return tuple(
        Column(name, column.type.sql_type, f"kept from source {source}") for name, (source, column) in found.items()
    )


def named_by_others(sources: Mapping[str, SourceSettings]) -> frozenset[str]:
    """The sources that only take records of others, which name them in ``also``."""
    named = {name for source in sources.values() for name in source.also}
    return frozenset(name for name in named if name in sources and not sources[name].origins)


def check_also(sources: Mapping[str, SourceSettings]) -> None:
    """Checks what sources say of one another.

    Raises:
        ValueError: a source names one in ``also`` that cannot take its records.
    """
    for name, source in sources.items():
        for other in source.also:
            place = f"source.{name}.also: {other}"
            if other not in sources or other == name:
                raise ValueError(f"{place} is no other source; there are {', '.join(sources)}")
            if sources[other].also:
                raise ValueError(f"{place} has also itself; name all sources that take the records in {name}")
            if not sources[other].has_mapping:
                raise ValueError(f"{place} has no mapping, so it takes whole records in adloom's own format only")
            if sources[other].each not in ("", source.each):
                raise ValueError(f"{place} has another each; leave it out there: it takes the records of {name}")


def check_encodings(sources: Mapping[str, SourceSettings]) -> None:
    """Checks that sources which read the same records agree in how.

    Raises:
        ValueError: two sources read a topic, a folder, or any file of one format, but differ in a setting.
    """
    found: dict[tuple[str, str], tuple[str, Encoding]] = {}
    for name, source in sources.items():
        # Names distinguish files, so sources of different formats can share a folder.
        places = source.topics or (f"{source.folder or ''} {', '.join(source.names)}",)
        for place in places:
            kind = "topic" if source.topics else "files"
            same = (known for one, known in found.items() if one[0] == kind and _overlap(kind, place, one[1]))
            first, known = next(same, (name, source.encoding))
            found.setdefault((kind, place), (name, source.encoding))
            if known != source.encoding:
                what = next(one.name for one in fields(Encoding) if getattr(known, one.name) != _of(source, one.name))
                where = f"the topic {place}" if source.topics else f"the same files ({', '.join(source.names)})"
                raise ValueError(
                    f"source.{name}.{what}: differs from that of source.{first}, which reads {where}; records are "
                    "decoded once: give both the same"
                )


def _overlap(kind: str, place: str, other: str) -> bool:
    """Whether records may come from both, where one of them may be a pattern for topics."""
    return place == other or (kind == "topic" and (is_meant(place, [other]) or is_meant(other, [place])))


def _of(source: SourceSettings, name: str) -> object:
    return getattr(source.encoding, name)
