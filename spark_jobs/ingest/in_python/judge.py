"""The verdict on one record in plain Python, as :mod:`spark_jobs.ingest.judge` gives it in Spark."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import FIELDS, TEXTS
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
from spark_jobs.mapping import Expression, Record, evaluate
from spark_jobs.mapping.sources import SourceMapping, compile_sources
from spark_jobs.mapping.times import time_of_text
from spark_jobs.mapping.types import MAX_INTEGER, MIN_INTEGER, Value

if TYPE_CHECKING:
    from spark_jobs.formats.decoding import Decoded

_BLANK = " \t\r"
_BYTE_ORDER_MARK = "\ufeff"
_SHOWN = 200
_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
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
    """

    verdict: str
    source: str | None = None
    reason: str = ""
    event: Mapping[str, Value | None] = field(default_factory=dict)
    kept: Mapping[str, Value | None] = field(default_factory=dict)
    nobody: str | None = None


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
        self._sources = {name: one for name, one in settings.sources.items() if only in (None, name)}
        self._mappings = compile_sources(settings)
        self._limits, self._nobody = settings.ingest, Nobody(settings.ingest.nobody)
        self._is_sure = len(self._sources) == 1 and not any(one.when for one in self._sources.values())

    def judge(self, record: bytes, received: datetime, origin: str | None = None) -> Judgement | None:
        """The verdict on ``record``; None if it is blank.

        Args:
            record: its bytes, which are JSON.
            received: when; with its zone.
            origin: its topic or folder; None: any source may mean it.
        """
        try:
            return self._judged(record, received, origin)
        except _BrokenError as broken:
            return self._of_source(broken.judged, origin)

    def judge_decoded(self, record: "Decoded", received: datetime, origin: str | None = None) -> Judgement | None:
        """The same for a record that is not JSON, once it is decoded; None if it is empty."""
        if record.verdict:
            return self._of_source(Judgement(record.verdict, reason=record.reason or ""), origin)
        if record.text is None:
            return None
        try:
            return self._judged_text(record.text, received, origin)
        except _BrokenError as broken:
            return self._of_source(broken.judged, origin)

    def _of_source(self, judged: Judgement, origin: str | None) -> Judgement:
        """``judged`` with its source; that of a record which cannot be read is the first that means an empty one."""
        if judged.source is not None or judged.verdict == events.NO_SOURCE:
            return judged
        return replace(judged, source=next(self._that_mean(Record("{}"), origin), None))

    def _judged(self, raw: bytes, received: datetime, origin: str | None) -> Judgement | None:
        text = raw.decode("utf-8", errors="replace")
        if not (text.startswith("{") and text.endswith("}")):
            text = text.strip(_BLANK)
            text = text[1:] if text.startswith(_BYTE_ORDER_MARK) else text
        if not text:
            return None
        if len(raw) > self._limits.max_record_bytes:
            raise _BrokenError(events.RECORD_TOO_LARGE, "" if is_utf8(raw) else events.NOT_UTF8_EITHER)
        if not is_utf8(raw):
            raise _BrokenError(events.INVALID_UTF8)
        return self._judged_text(text, received, origin)

    def _judged_text(self, text: str, received: datetime, origin: str | None) -> Judgement:
        if has_lone_surrogate(text):
            raise _BrokenError(events.INVALID_UTF8)
        try:
            root = root_of(text)
        except NotReadError as error:
            raise _BrokenError(error.verdict) from None
        record = Record(text)
        if record.root() is None and not self._may_be_own(origin):
            raise _BrokenError(events.MALFORMED_JSON)
        name = self._meant_by(record, root, origin)
        try:
            fields, kept = self._given(name, record, root)
            fields = with_lower_ids(fields) if self._limits.lower_ids else fields
            latest = received + self._limits.max_future_skew
            check(fields, self._limits.earliest_event_time, latest, self._sources[name].may_lack)
            _check_kept(kept)
        except RuleBrokenError as broken:
            raise _BrokenError(broken.verdict, broken.reason, name) from None
        event, values = event_of(fields, self._nobody), {column: one.value for column, one in kept.items()}
        given = fields["user_id"].value if event["user_id"] is None and "user_id" in fields else None
        return Judgement(events.OK, name, event=event, kept=values, nobody=given if isinstance(given, str) else None)

    def _may_be_own(self, origin: str | None) -> bool:
        """Whether a record may be in adloom's own format, which is not read as :class:`Record` reads."""
        own = (one for one in self._sources.values() if not one.has_mapping)
        return any(origin is None or origin in one.origins for one in own)

    def _meant_by(self, record: Record, root: Mapping[str, Any], origin: str | None) -> str:
        for name in self._that_mean(record, origin):
            mapping = self._mappings.get(name)
            if mapping and mapping.settings.unknown is UnknownFields.QUARANTINE:
                _check_keys(mapping, root)
            return name
        raise _BrokenError(events.NO_SOURCE)

    def _that_mean(self, record: Record, origin: str | None) -> Iterator[str]:
        """The names of the sources that mean ``record``; the first one wins."""
        for name, source in self._sources.items():
            mapping = self._mappings.get(name)
            if origin is not None and origin not in source.origins:
                continue
            if mapping is None or mapping.when is None or evaluate(mapping.when, record).value is True:
                yield name

    def _given(self, name: str, record: Record, root: Mapping[str, Any]) -> tuple[dict[str, Given], dict[str, Given]]:
        if mapping := self._mappings.get(name):
            fields = {field: _mapped(field, one, record) for field, one in mapping.fields.items()}
            return fields, {column: _mapped(column, one, record) for column, one in mapping.kept.items()}
        return {field: _own(field, root.get(field)) for field in FIELDS}, {}


def _check_kept(kept: Mapping[str, Given]) -> None:
    for one in kept.values():
        if one.is_wrong:
            raise RuleBrokenError(events.INVALID_KEPT_COLUMN, one.reason)


def _mapped(name: str, expression: Expression, record: Record) -> Given:
    outcome = evaluate(expression, record)
    is_wrong = outcome.value is None and outcome.has_failed
    if name in TEXTS and expression.bare_path and outcome.value is not None:
        is_wrong = not record.is_text(expression.bare_path)
    read = ", ".join(_quoted(str(path), record.get(path)) for path in expression.paths)
    return Given(outcome.value, is_wrong, f"{name} = {expression.text}: {read}")


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
        amount = int(value) if isinstance(value, Integer) else None
        is_bigint = amount is not None and MIN_INTEGER <= amount <= MAX_INTEGER
        return Given(amount if is_bigint else None, not is_bigint, reason)
    if name == "event_time":
        time = time_of_text(text) if _RFC_3339.fullmatch(text) else None
        return Given(time, time is None, reason)
    return Given(text, not isinstance(value, str) or isinstance(value, Fraction), reason)


def _check_keys(mapping: SourceMapping, root: Mapping[str, Any]) -> None:
    known = {path.steps[0] for path in mapping.paths if path.steps}
    if other := [key for key in root if key not in known]:
        raise _BrokenError(events.UNKNOWN_FIELD, f"the mapping does not read {', '.join(other)}", mapping.name)
