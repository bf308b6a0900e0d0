"""The content of a sample of records: its paths, their types and values."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from spark_jobs.mapping import MappingError, Path, Record
from spark_jobs.mapping.expression import Expression, evaluate, parse_expression
from spark_jobs.mapping.paths import OUTER_ROOT, OUTERMOST_ROOT, ListPath, Step, parse_path
from spark_jobs.mapping.record import text_of
from spark_jobs.mapping.types import Type

_MAX_COLUMNS = 400
"""Paths that are looked at: objects whose keys are values, such as ids, have one path per value."""
_MAX_DEPTH = 12
_BYTE_ORDER_MARK = "\ufeff"


class ValueKind(StrEnum):
    """The kind of JSON at a path."""

    TEXT = "text"
    INTEGER = "whole number"
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    ARRAY = "array"
    NULL = "null"


_NESTED = {ValueKind.OBJECT: "{}", ValueKind.ARRAY: "[]"}
_FEW = 0.02
_BLANKS = ("", "-", "null", "NULL", "None", "N/A")


@dataclass
class Column:
    """The values of one path, or of an expression over one, in the records of a sample.

    Attributes:
        expression: in the mapping language.
        keys: what names it: the keys of its path without indexes; for a query parameter, the parameter.
        values: by number of the record, the value as TEXT. Null and missing ones are not in it. Every object is there
            as ``{}`` and every array as ``[]``, since nothing is chosen by their content.
        kinds: how often each kind occurs in the whole sample.
        sizes: how often an array there has each number of elements.
        is_derived: whether it is more than a path.
    """

    expression: str
    keys: tuple[str, ...]
    values: dict[int, str] = field(default_factory=dict)
    kinds: Counter[ValueKind] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    is_derived: bool = False

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each value occurs."""
        return Counter(self.values.values())

    @cached_property
    def is_scalar(self) -> bool:
        """Whether its values are neither objects nor arrays, a few broken records aside."""
        nested = self.kinds[ValueKind.OBJECT] + self.kinds[ValueKind.ARRAY]
        return bool(self.values) and nested <= _FEW * self.kinds.total()

    @cached_property
    def blanks(self) -> tuple[str, ...]:
        """The values that stand for none: the empty text in CSV, ``-`` in logs of servers."""
        return tuple(blank for blank in _BLANKS if blank in self.counts)

    @cached_property
    def given(self) -> AbstractSet[int]:
        """The records in which it has a value that stands for something."""
        if not self.blanks:
            return self.values.keys()
        return {row for row, value in self.values.items() if value not in self.blanks}

    @property
    def or_null(self) -> str:
        """The expression, with null for what stands for none."""
        expression = self.expression
        for blank in self.blanks:
            expression = f"nullif({expression}, '{blank}')"
        return expression

    @cached_property
    def distinct(self) -> AbstractSet[str]:
        """Its values that stand for something."""
        return self.counts.keys() - set(self.blanks)

    @property
    def elements(self) -> int:
        """How many elements its arrays have together."""
        return sum(size * count for size, count in self.sizes.items())

    @property
    def uniqueness(self) -> float:
        """Different values per record that has one: 1 if no value occurs twice."""
        return len(self.distinct) / len(self.given) if self.given else 0.0

    def share(self, rows: int) -> float:
        """Of ``rows`` records, those that have a value."""
        return len(self.given) / rows if rows else 0.0

    def examples(self, count: int = 3) -> list[str]:
        """Its first values, each once."""
        return [value for value in self.counts if value not in self.blanks][:count]

    def within(self, rows: AbstractSet[int]) -> "Column":
        """The same of only these records."""
        values = {row: value for row, value in self.values.items() if row in rows}
        return replace(self, values=values)


@dataclass(frozen=True)
class Profile:
    """A sample, by column.

    Attributes:
        records: by number, those that are looked at; repetitions of a whole record are left out.
        columns: by expression, in the order in which they were met.
        unreadable: records that are no JSON object.
        repeated: records that are exactly like an earlier one.
        left_out: whether there were more paths than are looked at.
        of: what the records are called.
    """

    records: Mapping[int, Record]
    columns: Mapping[str, Column]
    unreadable: int = 0
    repeated: int = 0
    left_out: bool = False
    of: str = "records"

    @property
    def rows(self) -> int:
        """How many records are looked at."""
        return len(self.records)

    @cached_property
    def lists(self) -> tuple[Column, ...]:
        """The columns that are lists of several objects in some record."""
        return tuple(
            column
            for column in self.columns.values()
            if max(column.sizes, default=0) > 1
            and f"{column.expression}[0]" in self.columns
            and self.columns[f"{column.expression}[0]"].kinds[ValueKind.OBJECT]
        )

    @cached_property
    def scalars(self) -> tuple[Column, ...]:
        """The columns whose values are neither objects nor arrays."""
        return tuple(column for column in self.columns.values() if column.is_scalar)

    def within(self, rows: AbstractSet[int], of: str) -> "Profile":
        """The same of only these records, called ``of``, without the columns that are empty there."""
        narrowed = ((name, column.within(rows)) for name, column in self.columns.items())
        columns = {name: column for name, column in narrowed if column.values}
        return replace(self, records={row: self.records[row] for row in sorted(rows)}, columns=columns, of=of)

    def with_columns(self, more: Iterable[Column]) -> "Profile":
        """With ``more`` columns; those without a value are left out."""
        return replace(self, columns={**self.columns, **{one.expression: one for one in more if one.values}})


class NoRecordsError(Exception):
    """Raised when no record of a sample is a JSON object."""

    def __init__(self, records: int) -> None:
        super().__init__(f"{records:,} records")
        self.records = records


def profile_of(records: Iterable[bytes]) -> Profile:
    """The profile of ``records``, each JSON as bytes; blank ones do not count.

    Raises:
        NoRecordsError: none of them is a JSON object.
    """
    found: dict[int, Record] = {}
    known: set[str] = set()
    unreadable = repeated = 0
    for raw in records:
        text = raw.decode("utf-8", errors="replace").strip(" \t\r\n").removeprefix(_BYTE_ORDER_MARK)
        record = Record(text)
        if text in known:
            repeated += 1
        elif text and (not isinstance(record.root(), dict) or not text.endswith("}")):
            unreadable += 1
        elif text:
            known.add(text)
            found[len(found)] = record
    if not found:
        raise NoRecordsError(unreadable)
    walk = _Walk()
    for row, record in found.items():
        walk.visit(row, record.root(), (), ())
    return Profile(found, walk.columns, unreadable, repeated, walk.left_out)


def profile_of_elements(profile: Profile, lists: ListPath) -> Profile:
    """The profile of the elements of a list, and of what their records have around it.

    Raises:
        NoRecordsError: none of them is an object.
    """
    elements = list(profile.records.values())
    for path in lists.levels:
        elements = [one for record in elements for one in record.elements(path)]
    found = {row: one for row, one in enumerate(elements) if isinstance(one.root(), dict)}
    if not found:
        raise NoRecordsError(len(elements))
    walk = _Walk()
    for row, one in found.items():
        walk.visit(row, one.root(), (), ())
        assert one.outer, "elements lie in records"  # noqa: S101
        walk.visit(row, one.outer.root(), (), (), _Around(OUTER_ROOT, lists.levels[-1].steps))
        if len(lists.levels) > 1:
            walk.visit(row, one.outermost.root(), (), (), _Around(OUTERMOST_ROOT, lists.levels[0].steps))
    return Profile(found, walk.columns, len(elements) - len(found), left_out=walk.left_out)


class _Around(NamedTuple):
    """A record around elements: the root of paths into it, and where their list lies, which is left out."""

    root: str = ""
    left_out: tuple[Step, ...] = ()


_ITSELF = _Around()


class _Walk:
    """Collects columns; of arrays, it visits the first element."""

    def __init__(self) -> None:
        self.columns: dict[str, Column] = {}
        self.left_out = False
        self._by_path: dict[Path, Column | None] = {}

    def visit(
        self,
        row: int,
        value: object,
        steps: tuple[str | int, ...],
        keys: tuple[str, ...],
        of: _Around = _ITSELF,
    ) -> None:
        """Takes in a value of a record, or of what lies around one."""
        if steps == of.left_out and steps:
            return
        path = Path(steps, of.root)
        if steps and (column := self._column(path, keys)):
            kind = _kind(value)
            column.kinds[kind] += 1
            if kind is not ValueKind.NULL:
                column.values[row] = _NESTED.get(kind) or text_of(value) or ""
        if len(steps) >= _MAX_DEPTH:
            return
        if isinstance(value, dict):
            for key, member in value.items():
                self.visit(row, member, (*steps, key), (*keys, key), of)
        elif isinstance(value, list) and value and steps:
            if column := self._column(path, keys):
                column.sizes[len(value)] += 1
            self.visit(row, value[0], (*steps, 0), keys, of)

    def _column(self, path: Path, keys: tuple[str, ...]) -> Column | None:
        if path not in self._by_path:
            self._by_path[path] = self._new(path, keys)
        return self._by_path[path]

    def _new(self, path: Path, keys: tuple[str, ...]) -> Column | None:
        if len(self.columns) >= _MAX_COLUMNS:
            self.left_out = True
            return None
        try:
            if parse_path(str(path)) != path:
                return None
        except MappingError:
            return None  # a key that no path can name
        return self.columns.setdefault(str(path), Column(str(path), keys))


def _kind(value: object) -> ValueKind:
    if value is None:
        return ValueKind.NULL
    if isinstance(value, bool):
        return ValueKind.BOOLEAN
    if isinstance(value, dict):
        return ValueKind.OBJECT
    if isinstance(value, list):
        return ValueKind.ARRAY
    if type(value) is str:
        return ValueKind.TEXT
    # Numbers are texts of a type of their own, as written.
    return ValueKind.NUMBER if {".", "e", "E"} & set(str(value)) else ValueKind.INTEGER


def parsed_expression(expression: str) -> Expression:
    """``expression``, which may be one over an element of a list."""
    return parse_expression(expression, {OUTER_ROOT: OUTER_ROOT, OUTERMOST_ROOT: OUTERMOST_ROOT})


def derived(expression: str, keys: Sequence[str], profile: Profile, rows: Iterable[int]) -> Column:
    """The column of an ``expression`` that gives text, evaluated for ``rows``."""
    parsed = parsed_expression(expression)
    values = {row: evaluate(parsed, profile.records[row]).value for row in rows}
    given = {row: value for row, value in values.items() if isinstance(value, str)}
    assert parsed.type is Type.TEXT, expression  # noqa: S101 callers write such expressions only
    return Column(expression, tuple(keys), given, Counter({ValueKind.TEXT: len(given)}), is_derived=True)
