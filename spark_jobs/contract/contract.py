"""The contract of a lake: what producers must send, and what consumers get. Plain data with a version."""

import re
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_jobs.errors import ContractError
from spark_jobs.places import CONTRACTS

FORMAT: Final = 1
"""The form of a contract as JSON."""


class Terms(BaseModel):
    """A part of a contract."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Version(Terms):
    """``major.minor``. A breaking change takes a new major, any other a new minor."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The version that ``text`` names; the settings check its form."""
        major, _, minor = text.partition(".")
        return cls(major=int(major), minor=int(minor))

    def is_after(self, other: "Version") -> bool:
        """Whether it is later than ``other``."""
        return (self.major, self.minor) > (other.major, other.minor)

    def after(self, *, is_breaking: bool) -> "Version":
        """The version that the next contract needs."""
        if is_breaking:
            return Version(major=self.major + 1, minor=0)
        return Version(major=self.major, minor=self.minor + 1)

    def __str__(self) -> str:
        """As :meth:`parse` reads it."""
        return f"{self.major}.{self.minor}"


class FieldTerms(Terms):
    """A field of an event, and its rules.

    ``event_types``: those that have it; empty: all. Lengths are in characters.
    """

    name: str
    type: str
    meaning: str
    event_types: tuple[str, ...] = ()
    required: bool
    max_length: int | None = None
    minimum: int | None = None
    verdicts: tuple[str, ...] = ()
    """Those of records that break its rules."""


class RecordTerms(Terms):
    """A rule about whole records, and its limit, if it has one."""

    verdict: str
    meaning: str
    limit: int | None = None
    unit: str = ""


class KeptTerms(Terms):
    """A column that a source keeps."""

    name: str
    type: str
    expression: str


class SourceTerms(Terms):
    """A named source: which records it takes, and how they become events."""

    name: str
    topics: tuple[str, ...] = ()
    path: str = ""
    files: tuple[str, ...] = ()
    """The patterns for its files; none: those of the format."""
    format: str
    encoding: dict[str, str] = Field(default_factory=dict)
    """The settings that decide how the bytes of a record are read, besides the format; those without effect are left
    out."""
    each: str = ""
    also: tuple[str, ...] = ()
    when: str = ""
    expressions: dict[str, str] = Field(default_factory=dict)
    """By field of an event, the expression that gives it."""
    let: dict[str, str] = Field(default_factory=dict)
    """By name, the expression of a text that is read as JSON."""
    keep: tuple[KeptTerms, ...] = ()
    may_lack: tuple[str, ...] = ()
    lenient: tuple[str, ...] = ()
    unknown: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """Its input: topics, or a folder; one empty name is the folder that a run is given."""
        return self.topics or tuple(f"{self.path}/{names}" for names in self.files) or (self.path,)


class ColumnTerms(Terms):
    """A column of a table, with its type in Spark SQL."""

    name: str
    type: str
    meaning: str


class Expectation(Terms):
    """A rule that validation checks: see :class:`expectations.rules.Rule`."""

    name: str
    kind: str
    column: str
    meaning: str
    severity: str
    when: str | None = None
    values: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    mostly: float = 1.0
    violation: str = ""
    """SQL predicate over the table's columns for the rows that break it; empty: it needs more than those columns."""


class TableTerms(Terms):
    """A table, the settings that say what its rows mean, and the rules that hold for them."""

    name: str
    path: str
    meaning: str
    columns: tuple[ColumnTerms, ...]
    partition_by: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    settings: dict[str, str] = Field(default_factory=dict)
    expectations: tuple[Expectation, ...] = ()


class Contract(Terms):
    """All that producers and consumers can rely on."""

    format: Literal[1] = FORMAT
    version: str
    name: str
    owner: str = ""
    fields: tuple[FieldTerms, ...]
    records: tuple[RecordTerms, ...]
    sources: tuple[SourceTerms, ...]
    """In the order in which they are tried: the first one that fits a record wins."""
    tables: tuple[TableTerms, ...]
    lake: tuple[Expectation, ...] = ()
    """Rules about the tables together."""


_VERSION = re.compile(r"\d{1,6}\.\d{1,6}")


def read_contract(text: str | bytes, place: str) -> Contract:
    """The contract in ``text`` (JSON), which lies at ``place``.

    Raises:
        ContractError: it is no contract, or one in the form of a later adloom.
    """
    try:
        found = Contract.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ContractError(
            f"{place} is no contract of this adloom: {where}: {first['msg']}; give a file that `adloom contract export "
            "--format json` of the same or an earlier adloom wrote"
        ) from error
    if not _VERSION.fullmatch(found.version):
        raise ContractError(f"{place}: version {found.version!r} is not major.minor, as in 1.0; export it again")
    return found


def contract_key(version: str) -> str:
    """Where a lake keeps the contract of ``version``, as JSON."""
    return f"{CONTRACTS}/{version}.json"


IN_USE_KEY: Final = f"{CONTRACTS}/in_use.json"
"""Names the version that the lake is in use with."""
