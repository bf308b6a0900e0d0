"""JSON text of single values: exact, and readable by a mapping.

| value | JSON |
|---|---|
| integer of any width | number, exact |
| float, double | number, the shortest that reads back as the same double; NaN, Infinity and -Infinity as text |
| decimal | text with all its digits, as in ``"0.00210"``: readers often take a number for a double |
| instant | RFC 3339 text in UTC, with up to microseconds; finer parts are cut off |
| local time, date, time of day | the same text without a zone, or its part |
| bytes | base64 text |

An instant or date outside of the years 1 to 9999 has no such text and stays the number that was written.
"""

import base64
import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from json.encoder import encode_basestring
from typing import Final

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 UTC is added as Z, which is faster
_DAY_US = 86_400_000_000
NULL: Final = "null"


def quoted(text: str) -> str:
    """``text`` as a JSON string."""
    return encode_basestring(text)


def number(value: float) -> str:
    """A float, which may be NaN or infinite."""
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def binary(value: bytes) -> str:
    """Bytes as base64 text."""
    return f'"{base64.b64encode(value).decode("ascii")}"'


def decimal(unscaled: int, scale: int) -> str:
    """``unscaled`` / 10^``scale``, which is not negative, with all ``scale`` digits after the point."""
    if not scale:
        return f'"{unscaled}"'
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f'"{"-" if unscaled < 0 else ""}{digits[:-scale]}.{digits[-scale:]}"'


def instant(micros: int) -> str | None:
    """The time ``micros`` microseconds after 1970 in UTC; None outside of the years 1 to 9999."""
    try:
        return f'"{(_EPOCH + timedelta(microseconds=micros)).isoformat()}Z"'
    except OverflowError:
        return None


def local_instant(micros: int) -> str | None:
    """Like :func:`instant`, of a time in no particular zone."""
    text = instant(micros)
    return text and f'{text[:-2]}"'


def date(days: int) -> str | None:
    """The date ``days`` days after 1970; None outside of the years 1 to 9999."""
    try:
        return f'"{(_EPOCH + timedelta(days=days)).date().isoformat()}"'
    except OverflowError:
        return None


def time_of_day(micros: int) -> str | None:
    """The time ``micros`` microseconds after midnight; None outside of a day."""
    if not 0 <= micros < _DAY_US:
        return None
    return f'"{(_EPOCH + timedelta(microseconds=micros)).time().isoformat()}"'


def array(items: Iterable[str]) -> str:
    """An array of JSON texts."""
    return f"[{','.join(items)}]"


def table(entries: Iterable[tuple[str, str]]) -> str:
    """An object of keys and JSON texts."""
    return f"{{{','.join(f'{quoted(key)}:{text}' for key, text in entries)}}}"
