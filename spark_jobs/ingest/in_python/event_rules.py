"""The rules of the contract about the fields of one event, in plain Python."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from string import ascii_lowercase, ascii_uppercase

from spark_jobs.config.durations import EPOCH
from spark_jobs.config.sources import FIELDS
from spark_jobs.contract import events
from spark_jobs.contract.nobody import Nobody
from spark_jobs.mapping.types import Value

_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)
_CURRENCY = re.compile(events.CURRENCY_PATTERN)


@dataclass(frozen=True)
class Given:
    """A field as a record gives it: its value, whether it is given but no value of its type, and what is there."""

    value: Value | None = None
    is_wrong: bool = False
    reason: str = ""


class RuleBrokenError(Exception):
    """Raised with the verdict of the first rule that an event breaks."""

    def __init__(self, verdict: str, reason: str = "") -> None:
        super().__init__(verdict)
        self.verdict, self.reason = verdict, reason


def check(
    fields: Mapping[str, Given],
    earliest: datetime,
    latest: datetime,
    may_lack: tuple[str, ...] = (),
    lenient: tuple[str, ...] = (),
) -> dict[str, str]:
    """Checks the fields of an event in the order of the contract.

    Args:
        fields: by name, what the record gives.
        earliest: its time may not lie earlier.
        latest: its time may not lie later.
        may_lack: fields that need not be there.
        lenient: optional fields that are left out where they are wrong.

    Returns:
        By field that is left out, why.

    Raises:
        RuleBrokenError: a rule is broken.
    """
    left_out: dict[str, str] = {}
    optional = partial(_optional, fields, lenient, left_out)
    event_type = _needed(fields, "event_type", lambda value: value in events.EVENT_TYPES)
    _needed(fields, "event_id", _is_id)
    time = _needed(fields, "event_time", lambda value: isinstance(value, datetime) and value > EPOCH)
    if isinstance(time, datetime) and time < earliest:
        raise RuleBrokenError(events.EVENT_TIME_TOO_OLD, fields["event_time"].reason)
    if isinstance(time, datetime) and time > latest:
        raise RuleBrokenError(events.EVENT_TIME_IN_FUTURE, fields["event_time"].reason)
    _needed(fields, "user_id", _is_id, may_lack=may_lack)
    optional("is_last", lambda _: True)
    for name in events.TEXT_LIMITS:
        optional(name, lambda _: True)
    if event_type == events.IMPRESSION:
        _needed(fields, "campaign_id", _is_id)
        _needed(fields, "ad_id", _is_id)
        optional("cost_micros", _is_amount_of("cost_micros"))
    elif event_type == events.CLICK:
        _needed(fields, "impression_id", _is_id)
    elif event_type == events.CONVERSION:
        _check_conversion(fields, optional)
    else:
        optional("data", lambda _: True)
    return left_out


def lowered(text: str) -> str:
    """``text`` with small ASCII letters, as Spark's side lowers ids."""
    return text.translate(_SMALL)


def with_lower_ids(fields: Mapping[str, Given]) -> dict[str, Given]:
    """``fields`` with small ASCII letters in the ids of events and users."""
    return {
        name: replace(one, value=lowered(one.value))
        if name in events.CASELESS_IDS and isinstance(one.value, str)
        else one
        for name, one in fields.items()
    }


def event_of(fields: Mapping[str, Given], nobody: Nobody) -> dict[str, Value | None]:
    """The event that good fields are: those of other types are null, and so is a user that means ``nobody``."""
    given = {name: fields[name].value if name in fields else None for name in FIELDS}
    if nobody.is_meant_by(given["user_id"]):
        given["user_id"] = None
    given["is_last"] = bool(given["is_last"])
    for name, most in events.TEXT_LIMITS.items():
        text = str(given[name] or "")
        given[name] = (text[:most] if name in events.CUT_FIELDS or len(text) <= most else "") or None
    for event_type, names in events.TYPE_FIELDS.items():
        if given["event_type"] != event_type:
            given |= dict.fromkeys(names)
    return given


def _check_conversion(fields: Mapping[str, Given], optional: Callable[[str, Callable[[Value], bool]], None]) -> None:
    event_id = fields["event_id"].value
    _needed(fields, "conversion_type", _is_id)
    value = _needed(fields, "value_micros", _is_amount_of("value_micros"))
    _needed(fields, "currency", _is_currency, may_lack=() if value else ("currency",))
    optional("order_id", _is_id)
    optional("revokes", lambda revoked: _is_id(revoked) and revoked != event_id)


def _needed(
    fields: Mapping[str, Given], name: str, is_good: Callable[[Value], bool], may_lack: tuple[str, ...] = ()
) -> Value | None:
    one = fields.get(name, Given(reason="the mapping of the source does not give it"))
    if one.value is None and not one.is_wrong:
        if name in may_lack:
            return None
        raise RuleBrokenError(events.missing(name), one.reason)
    if one.is_wrong or one.value is None or not is_good(one.value):
        raise RuleBrokenError(events.invalid(name), one.reason)
    return one.value


def _optional(
    fields: Mapping[str, Given],
    lenient: tuple[str, ...],
    left_out: dict[str, str],
    name: str,
    is_good: Callable[[Value], bool],
) -> None:
    one = fields.get(name, Given())
    if one.is_wrong or (one.value is not None and not is_good(one.value)):
        if name in lenient:
            left_out[name] = one.reason
            return
        raise RuleBrokenError(events.invalid(name), one.reason)


def _is_id(value: Value) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= events.MAX_ID_CHARACTERS and "\0" not in value


def _is_amount_of(name: str) -> Callable[[Value], bool]:
    return lambda value: isinstance(value, int) and 0 <= value <= events.AMOUNT_LIMITS[name]


def _is_currency(value: Value) -> bool:
    return isinstance(value, str) and _CURRENCY.fullmatch(value) is not None
