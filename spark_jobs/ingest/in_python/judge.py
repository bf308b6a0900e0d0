"""The verdict on one record in plain Python, as :mod:`spark_jobs.ingest.judge` gives it in Spark."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import FIELDS, TEXTS, named_by_others
from spark_jobs.contract import events
from spark_jobs.contract.events import UnknownFields
from spark_jobs.contract.nobody import Nobody
from spark_jobs.ingest.in_python.event_rules import Given, RuleBrokenError, check, event_of, with_lower_ids
from spark_jobs.ingest.in_python.json_records import (
    Fraction,
    Integer,
    NotReadError,
    has_lone_surrogate,
    is_utf8,
    root_of,
    text_of,
)
from spark_jobs.mapping import Expression, Path, Record, evaluate
from spark_jobs.mapping.paths import ListPath
from spark_jobs.mapping.sources import SourceMapping, compile_sources, no_list_reason
from spark_jobs.mapping.times import time_of_text
from spark_jobs.mapping.types import MAX_INTEGER, MIN_INTEGER, Value

if TYPE_CHECKING:
    from spark_jobs.formats.decoding import Decoded

_NO_LIST = ListPath(())
"""In place of the list of an element that has no list within."""
_BLANK = " \t\r"
_BYTE_ORDER_MARK = "\ufeff"
_SHOWN = 200
_MAX_DIGITS = 20
_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)


@dataclass(frozen=True)
class Judgement:
    """A record with its verdict.

    Attributes:
        verdict: ``ok``, or the first rule that it breaks.
        source: the source that means it; None: none does.
        reason: what its record has where the rule is broken; empty where the verdict says it all.
        event: the fields of the event, if the verdict is ok.
        kept: the columns that the source keeps.
        nobody: the user id of the record, if it means nobody, so that the event has no user.
        place: where in the record: ``[2]`` for an element of its list, ``+NAME`` for a source that takes it, too.
    """

    verdict: str
    source: str | None = None
    reason: str = ""
    event: Mapping[str, Value | None] = field(default_factory=dict)
    kept: Mapping[str, Value | None] = field(default_factory=dict)
    nobody: str | None = None
    place: str = ""


@dataclass(frozen=True)
class _Arrival:
    """How a record came: when, from which topic or files (None: any source may mean it), and with which metadata."""

    received: datetime
    origin: str | None
    meta: str


class _BrokenError(Exception):
    """Raised with the verdict of the first rule that a record breaks."""

    def __init__(self, verdict: str, reason: str = "", source: str | None = None) -> None:
        self.judged = Judgement(verdict, source, reason)


class Judge:
    """Gives verdicts under the sources and limits of settings."""

    def __init__(self, settings: Settings, only: str | None = None) -> None:
        """Reads the mappings.

        Args:
            settings: the sources and limits.
            only: the name of a source: no other one counts.

        Raises:
            SettingsError: an expression is not in the language.
        """
        self._all = settings.sources
        self._sources = {name: one for name, one in self._all.items() if only in (None, name)}
        self._mappings = compile_sources(settings)
        self._only_named = named_by_others(self._sources)
        self._lists = tuple(dict.fromkeys(one.each for one in self._mappings.values() if one.each))
        self._limits, self._nobody = settings.ingest, Nobody(settings.ingest.nobody)

    def judge(
        self, record: "bytes | Decoded", received: datetime, origin: str | None = None, meta: str = "{}"
    ) -> list[Judgement]:
        """The verdicts on ``record``: one, or one for each event that it holds; none if it is blank.

        Args:
            record: its bytes, which are JSON; or what was decoded from it.
            received: when; with its zone.
            origin: its topic or folder; None: any source may mean it.
            meta: its metadata (:mod:`spark_jobs.ingest.in_python.meta`).
        """
        came = _Arrival(received, origin, meta)
        try:
            return self._judged(record, came) if isinstance(record, bytes) else self._judged_decoded(record, came)
        except _BrokenError as broken:
            return [self._of_source(broken.judged, came)]

    def _judged_decoded(self, record: "Decoded", came: _Arrival) -> list[Judgement]:
        if record.verdict:
            raise _BrokenError(record.verdict, record.reason or "")
        return [] if record.text is None else self._judged_text(record.text, came)

    def _of_source(
        self, judged: Judgement, came: _Arrival, each: ListPath | None = None, outer: Record | None = None
    ) -> Judgement:
        """``judged`` with its source; that of a record which cannot be read is the first that means an empty one."""
        if judged.source is not None or judged.verdict == events.NO_SOURCE:
            return judged
        empty = Record("{}", outer, meta=came.meta)
        return replace(judged, source=next(self._that_mean(empty, each, came.origin), None))

    def _judged(self, raw: bytes, came: _Arrival) -> list[Judgement]:
        text = raw.decode("utf-8", errors="replace")
        if not (text.startswith("{") and text.endswith("}")):
            text = text.strip(_BLANK)
            text = text[1:] if text.startswith(_BYTE_ORDER_MARK) else text
        if not text:
            return []
        if len(raw) > self._limits.max_record_bytes:
            raise _BrokenError(events.RECORD_TOO_LARGE, "" if is_utf8(raw) else events.NOT_UTF8_EITHER)
        if not is_utf8(raw):
            raise _BrokenError(events.INVALID_UTF8)
        return self._judged_text(text, came)

    def _judged_text(self, text: str, came: _Arrival) -> list[Judgement]:
        if has_lone_surrogate(text):
            raise _BrokenError(events.INVALID_UTF8)
        record = Record(text, meta=came.meta)
        return [
            replace(judged, place=f"{place}{judged.place}")
            for place, one, each in self._apart(record, came.origin)
            for judged in self._taken(one, each, came)
        ]

    def _apart(self, record: Record, origin: str | None) -> Iterator[tuple[str, Record, ListPath | None]]:
        """The elements of the first list of sources that the record has, each with its place; or else the record."""
        for each in self._lists:
            mappings = (self._mappings.get(name) for name in self._that_read(origin))
            if any(one and one.each == each for one in mappings) and (found := _elements(record, each.levels[0])):
                for number, one in enumerate(found):
                    yield from _within(f"[{number}]", one, each, 1)
                return
        yield "", record, None

    def _taken(self, record: Record, each: ListPath | None, came: _Arrival) -> Iterator[Judgement]:
        """The verdicts on a record, or element of the list ``each``: of its source, and of those that take it, too."""
        try:
            root = self._root(record, came.origin)
        except _BrokenError as broken:
            yield self._of_source(broken.judged, came, each, record.outer)
            return
        name = next(self._that_mean(record, each, came.origin), None)
        if name is None:
            is_whole = each in (None, _NO_LIST) and self._lists
            yield Judgement(events.NO_SOURCE, reason=no_list_reason(self._lists) if is_whole else "")
            return
        yield self._by(name, record, root, came.received)
        for other in self._all[name].also:
            if other in self._sources and self._is_meant(other, record, each):
                yield replace(self._by(other, record, root, came.received), place=f"+{other}")

    def _root(self, record: Record, origin: str | None) -> Mapping[str, Any]:
        try:
            root = root_of(record.text)
        except NotReadError as error:
            raise _BrokenError(error.verdict) from None
        if record.root() is None and not self._may_be_own(origin):
            raise _BrokenError(events.MALFORMED_JSON)
        return root

    def _by(self, name: str, record: Record, root: Mapping[str, Any], received: datetime) -> Judgement:
        """The verdict on ``record`` as one of the source ``name``."""
        try:
            mapping = self._mappings.get(name)
            if mapping and mapping.settings.unknown is UnknownFields.QUARANTINE:
                _check_keys(mapping, root)
            fields, kept = self._given(name, record, root)
            fields = with_lower_ids(fields) if self._limits.lower_ids else fields
            latest = received + self._limits.max_future_skew
            source = self._all[name]
            left_out = check(fields, self._limits.earliest_event_time, latest, source.may_lack, source.lenient)
            left_out |= _check_kept(kept, source.lenient)
        except RuleBrokenError as broken:
            return Judgement(broken.verdict, name, broken.reason)
        fields |= dict.fromkeys(fields.keys() & left_out.keys(), Given())
        kept |= dict.fromkeys(kept.keys() & left_out.keys(), Given())
        event, values = event_of(fields, self._nobody), {column: one.value for column, one in kept.items()}
        reason = f"{events.LEFT_OUT}{'; '.join(left_out.values())}" if left_out else ""
        given = fields["user_id"].value if event["user_id"] is None and "user_id" in fields else None
        nobody = given if isinstance(given, str) else None
        return Judgement(events.OK, name, reason, event=event, kept=values, nobody=nobody)

    def _may_be_own(self, origin: str | None) -> bool:
        """Whether a record may be in adloom's own format, which is not read as :class:`Record` reads."""
        return any(not self._sources[name].has_mapping for name in self._that_read(origin))

    def _that_read(self, origin: str | None) -> Iterator[str]:
        """The names of the sources that read records from ``origin``."""
        for name, source in self._sources.items():
            if source.reads(origin) and name not in self._only_named:
                yield name

    def _that_mean(self, record: Record, each: ListPath | None, origin: str | None) -> Iterator[str]:
        """The names of the sources that mean ``record``; the first one wins."""
        return (name for name in self._that_read(origin) if self._is_meant(name, record, each))

    def _is_meant(self, name: str, record: Record, each: ListPath | None) -> bool:
        mapping = self._mappings.get(name)
        if mapping is None:
            return each is None
        if mapping.each != each:
            return False
        return mapping.when is None or evaluate(mapping.when, mapping.ready(record)).value is True

    def _given(self, name: str, record: Record, root: Mapping[str, Any]) -> tuple[dict[str, Given], dict[str, Given]]:
        if mapping := self._mappings.get(name):
            record = mapping.ready(record)
            fields = {field: _mapped(field, one, record) for field, one in mapping.fields.items()}
            return fields, {column: _mapped(column, one, record) for column, one in mapping.kept.items()}
        return {field: _own(field, root.get(field)) for field in FIELDS}, {}


def _check_kept(kept: Mapping[str, Given], lenient: tuple[str, ...]) -> dict[str, str]:
    """Why columns are left out, by their names."""
    for name, one in kept.items():
        if one.is_wrong and name not in lenient:
            raise RuleBrokenError(events.INVALID_KEPT_COLUMN, one.reason)
    return {name: one.reason for name, one in kept.items() if one.is_wrong}


def _mapped(name: str, expression: Expression, record: Record) -> Given:
    outcome = evaluate(expression, record)
    is_wrong = outcome.value is None and outcome.has_failed
    if name in TEXTS and expression.bare_path and outcome.value is not None:
        is_wrong = not record.is_text(expression.bare_path)
    read = ", ".join(_quoted(str(path), record.get(path)) for path in expression.paths)
    return Given(outcome.value, is_wrong, f"{name} = {expression.text}: {read}")


def _within(place: str, record: Record, each: ListPath, depth: int) -> Iterator[tuple[str, Record, ListPath]]:
    """The elements of the lists within a record that is an element itself; without any, the record."""
    if depth == len(each.levels):
        yield place, record, each
    elif found := _elements(record, each.levels[depth]):
        for number, one in enumerate(found):
            yield from _within(f"{place}[{number}]", one, each, depth + 1)
    else:
        yield place, record, _NO_LIST


def _elements(record: Record, path: Path) -> list[Record]:
    """The elements of the list at ``path``, if ``record`` can be read: as an object, or as the list itself."""
    if record.root() is None or not _is_read(record.text, is_list=not path.steps):
        return []
    return [Record(one.text.strip(_BLANK), record) for one in record.elements(path)]


def _is_read(text: str, *, is_list: bool) -> bool:
    if is_list:
        return isinstance(Record(text, is_whole=True).root(), list)
    with suppress(NotReadError):
        return bool(root_of(text))
    return False


def _quoted(path: str, text: str | None) -> str:
    if text is None:
        return f"{path} is missing"
    return f'{path} is "{text[:_SHOWN]}…"' if len(text) > _SHOWN else f'{path} is "{text}"'


def _own(name: str, value: Any) -> Given:
    """A field of a record in adloom's own format."""
    if value is None:
        return Given(reason=_quoted(f"$.{name}", None))
    text = value.text if isinstance(value, Integer) else value if isinstance(value, str) else text_of(value)
    reason = _quoted(f"$.{name}", text)
    if name == "is_last":
        return Given(value, not isinstance(value, bool), reason)
    if name in events.MICROS:
        # Python refuses to read numbers of thousands of digits.
        amount = int(value) if isinstance(value, Integer) and len(value) <= _MAX_DIGITS else None
        is_bigint = amount is not None and MIN_INTEGER <= amount <= MAX_INTEGER
        return Given(amount if is_bigint else None, not is_bigint, reason)
    if name == "event_time":
        time = time_of_text(text) if _RFC_3339.fullmatch(text) else None
        return Given(time, time is None, reason)
    return Given(text, not isinstance(value, str) or isinstance(value, Fraction), reason)


def _check_keys(mapping: SourceMapping, root: Mapping[str, Any]) -> None:
    known = {path.steps[0] for path in mapping.paths if path.steps and not path.root}
    if other := [key for key in root if key not in known]:
        raise RuleBrokenError(events.UNKNOWN_FIELD, f"the mapping does not read {', '.join(other)}")
