"""The judge of one record, in plain Python: written from the event contract, sharing no code with the jobs."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple, TypeVar

from spark_jobs.config.durations import microseconds
from spark_jobs.config.sections import IngestSettings
from spark_jobs.contract.events import (
    ACTIVITY,
    CLICK,
    CONVERSION,
    DUPLICATE_KEY,
    EVENT_TIME_IN_FUTURE,
    EVENT_TIME_TOO_OLD,
    EVENT_TYPES,
    IMPRESSION,
    INVALID_UTF8,
    MALFORMED_JSON,
    MAX_ID_CHARACTERS,
    NOT_AN_OBJECT,
    OK,
    RECORD_TOO_LARGE,
    invalid,
    missing,
)
from tests.support.strict_json import Integer, NotJsonError, Object, has_unpaired_surrogate, parse

UTF8_BOM: Final = b"\xef\xbb\xbf"
MAX_MICROS: Final = {"cost_micros": 10**12, "value_micros": 10**15}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_MAX_OFFSET_MINUTES: Final = 18 * 60

_T = TypeVar("_T")
_D = TypeVar("_D")


class Event(NamedTuple):
    """The parsed fields of a good record, in the order of the contract; ``event_time`` is UTC without a zone."""

    event_type: str
    event_id: str
    event_time: datetime
    user_id: str | None
    is_last: bool
    campaign_id: str | None = None
    ad_id: str | None = None
    cost_micros: int | None = None
    impression_id: str | None = None
    data: str | None = None
    conversion_type: str | None = None
    value_micros: int | None = None
    currency: str | None = None
    order_id: str | None = None
    revokes: str | None = None
    ip: str | None = None
    user_agent: str | None = None


@dataclass(frozen=True)
class Judged:
    """A record as bronze holds it: its text, its verdict, and its fields if the verdict is ``ok``."""

    raw: str
    verdict: str
    event: Event | None


class _RuleBrokenError(Exception):
    """Raised with the verdict of the first rule a record breaks."""


def judge(record: bytes, *, receipt: datetime, ingest: IngestSettings) -> Judged:
    """The verdict on ``record``, the bytes between two line feeds, received at ``receipt`` (with a zone)."""
    content = record.removeprefix(UTF8_BOM)
    try:
        text: str | None = content.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    raw = content.decode("latin-1") if text is None else text
    try:
        earliest = _since_epoch(ingest.earliest_event_time)
        latest = _since_epoch(receipt) + microseconds(ingest.max_future_skew)
        fields = _root(_sound(record, text, ingest))
        return Judged(raw, OK, _event(_lowered(fields) if ingest.lower_ids else fields, earliest, latest, ingest))
    except _RuleBrokenError as broken:
        return Judged(raw, str(broken), None)


def _sound(record: bytes, text: str | None, ingest: IngestSettings) -> str:
    if len(record) > ingest.max_record_bytes:
        raise _RuleBrokenError(RECORD_TOO_LARGE)
    if text is None or has_unpaired_surrogate(text):
        raise _RuleBrokenError(INVALID_UTF8)
    return text


def _root(text: str) -> dict[str, object]:
    try:
        value = parse(text)
    except NotJsonError:
        raise _RuleBrokenError(MALFORMED_JSON) from None
    if not isinstance(value, Object):
        raise _RuleBrokenError(NOT_AN_OBJECT)
    fields = dict(value.members)
    if len(fields) != len(value.members):
        raise _RuleBrokenError(DUPLICATE_KEY)
    return fields


def _lowered(fields: dict[str, object]) -> dict[str, object]:
    """``fields`` with the ids of events and users in small letters, as far as they are ASCII."""
    return {
        name: "".join(chr(ord(one) + 32) if "A" <= one <= "Z" else one for one in value)
        if isinstance(value, str) and name in ("event_id", "impression_id", "revokes", "user_id")
        else value
        for name, value in fields.items()
    }


def _event(fields: dict[str, object], earliest: int, latest: int, ingest: IngestSettings) -> Event:
    event_type = _required(fields, "event_type", lambda value: value if value in EVENT_TYPES else None)
    event_id = _required(fields, "event_id", _id_text)
    event_time = _required(fields, "event_time", _rfc3339)
    if event_time < earliest:
        raise _RuleBrokenError(EVENT_TIME_TOO_OLD)
    if event_time > latest:
        raise _RuleBrokenError(EVENT_TIME_IN_FUTURE)
    event = Event(
        event_type=str(event_type),
        event_id=event_id,
        event_time=_EPOCH.replace(tzinfo=None) + timedelta(microseconds=event_time),
        user_id=_person(_required(fields, "user_id", _id_text), ingest),
        is_last=_optional(fields, "is_last", lambda value: value if isinstance(value, bool) else None, default=False),
        ip=_whole(_optional(fields, "ip", _text, default=None), 64),
        user_agent=(_optional(fields, "user_agent", _text, default=None) or "")[:1024] or None,
    )
    if event_type == IMPRESSION:
        return event._replace(
            campaign_id=_required(fields, "campaign_id", _id_text),
            ad_id=_required(fields, "ad_id", _id_text),
            cost_micros=_optional(fields, "cost_micros", _micros("cost_micros"), default=None),
        )
    if event_type == CLICK:
        return event._replace(impression_id=_required(fields, "impression_id", _id_text))
    if event_type == CONVERSION:
        return _conversion(event, fields)
    assert event_type == ACTIVITY
    return event._replace(data=_optional(fields, "data", _text, default=None))


def _conversion(event: Event, fields: dict[str, object]) -> Event:
    def other(value: object) -> str | None:
        text = _id_text(value)
        return None if text == event.event_id else text

    kind = _required(fields, "conversion_type", _id_text)
    value = _required(fields, "value_micros", _micros("value_micros"))
    has_currency = value > 0 or fields.get("currency") is not None
    return event._replace(
        conversion_type=kind,
        value_micros=value,
        currency=_required(fields, "currency", _currency) if has_currency else None,
        order_id=_optional(fields, "order_id", _id_text, default=None),
        revokes=_optional(fields, "revokes", other, default=None),
    )


def _required(fields: dict[str, object], name: str, read: Callable[[object], _T | None]) -> _T:
    if fields.get(name) is None:
        raise _RuleBrokenError(missing(name))
    value = read(fields[name])
    if value is None:
        raise _RuleBrokenError(invalid(name))
    return value


def _optional(fields: dict[str, object], name: str, read: Callable[[object], _T | None], *, default: _D) -> _T | _D:
    return default if fields.get(name) is None else _required(fields, name, read)


def _text(value: object) -> str | None:
    if isinstance(value, Integer):
        # The decimal text of minus zero is that of zero.
        return "0" if value.text == "-0" else value.text
    return value if isinstance(value, str) else None


def _id_text(value: object) -> str | None:
    text = _text(value)
    return text if text is not None and 1 <= len(text) <= MAX_ID_CHARACTERS and "\0" not in text else None


def _person(user: str, ingest: IngestSettings) -> str | None:
    """``user``, or None if it is an id that means nobody, whatever the case of its ASCII letters."""
    return None if any(_is_like(_lower(user), _lower(one)) for one in ingest.nobody) else user


def _is_like(text: str, pattern: str) -> bool:
    """Whether ``text`` begins, goes on and ends with the parts of ``pattern`` between its stars, in their order."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    *between, last = rest
    if not text.startswith(first) or not text[len(first) :].endswith(last):
        return False
    within = text[len(first) : len(text) - len(last)]
    for part in between:
        _, found, within = within.partition(part)
        if part and not found:
            return False
    return True


def _lower(text: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def _whole(text: str | None, most: int) -> str | None:
    return text if text and len(text) <= most else None


def _micros(name: str) -> Callable[[object], int | None]:
    most = MAX_MICROS[name]

    def read(value: object) -> int | None:
        # Python refuses to read very long ones as a number.
        if not isinstance(value, Integer) or len(value.text) > len(str(most)):
            return None
        amount = int(value.text)
        return amount if 0 <= amount <= most else None

    return read


def _currency(value: object) -> str | None:
    is_code = isinstance(value, str) and len(value) == 3 and all("A" <= letter <= "Z" for letter in value)
    return str(value) if is_code else None


def _rfc3339(value: object) -> int | None:
    """Microseconds since the epoch that an RFC 3339 text names; None unless it is one, past the epoch."""
    match = _RFC3339.fullmatch(value) if isinstance(value, str) else None
    if not match:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction, sign, offset_hours, offset_minutes = match.groups()[6:]
    offset = int(offset_hours) * 60 + int(offset_minutes) if sign else 0
    if hour > 23 or minute > 59 or second > 59 or (sign and int(offset_minutes) > 59) or offset > _MAX_OFFSET_MINUTES:
        return None
    try:
        days = date(year, month, day).toordinal() - _EPOCH.toordinal()
    except ValueError:
        return None
    minutes = days * 1440 + hour * 60 + minute - (-offset if sign == "-" else offset)
    total = (minutes * 60 + second) * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))
    return total if total > 0 else None


def _since_epoch(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)
