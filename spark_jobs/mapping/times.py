"""TIME in Python, and the texts that are times."""

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from spark_jobs.mapping.errors import RefusalError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
MIN_MICROS, MAX_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond of the years 0001 to 9999."""
_EDGE_DAYS = ("0001-01-01", "9999-12-31")
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?"
_OFFSET = "[+-][0-9]{2}(?::?[0-9]{2})?"
_REGION = r"(?:\[[A-Za-z][A-Za-z0-9_/+-]*\])?"
TIME_PATTERN = (
    rf"((?!0000|(?:{'|'.join(_EDGE_DAYS)}).+:.*{_OFFSET}{_REGION}\z)[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}"
    rf"(?:\z|[Tt ]{_CLOCK}(?:\z|[Zz]| ?(?:UTC|GMT)| ?{_OFFSET}))){_REGION}"
)
r"""Of a text that is a time, for Java (``\z``): its first group. An offset on the first or last day could leave the
range. The name of a region in brackets, which Java writes behind an offset, adds nothing to it."""
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:\Z|[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    rf"(?:\Z|[Zz]| ?(?:UTC|GMT)| ?([+-])([0-9]{{2}})(?::?([0-9]{{2}}))?)){_REGION}"
)
_MICRO_DIGITS = 6
_MAX_OFFSET = 18 * 60
"""Minutes that Java allows."""
_MINUTES = 60
_TOO_NEW = {"America/Coyhaique"}
"""Zones that a Java in use does not know yet."""
FIRST_LOCAL, LAST_LOCAL = "1970-01-01", "2099-12-31"
"""The days that a zone is known for: before, sources of time zones differ; after, rules are guesses."""
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_UNITS = {
    "second": {"microsecond": 0},
    "minute": {"microsecond": 0, "second": 0},
    "hour": {"microsecond": 0, "second": 0, "minute": 0},
    "day": {"microsecond": 0, "second": 0, "minute": 0, "hour": 0},
    "month": {"microsecond": 0, "second": 0, "minute": 0, "hour": 0, "day": 1},
    "year": {"microsecond": 0, "second": 0, "minute": 0, "hour": 0, "day": 1, "month": 1},
}
UNITS = tuple(_UNITS)
"""Of ``date_trunc``."""


def time_of_text(text: str) -> datetime | None:
    """TEXT to TIME."""
    found = _TIME.fullmatch(text)
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = found.groups()
    offset = int(hours) * _MINUTES + int(minutes or 0) if sign else 0
    if sign and (int(minutes or 0) >= _MINUTES or offset > _MAX_OFFSET or text.startswith(_EDGE_DAYS)):
        return None
    zone = timezone(timedelta(minutes=-offset if sign == "-" else offset)) if offset else UTC
    try:
        micros = int((fraction or "")[:_MICRO_DIGITS].ljust(_MICRO_DIGITS, "0"))
        time = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micros, zone
        )
    except ValueError:
        return None
    return time.astimezone(UTC)


def text_of_time(time: datetime) -> str:
    """TIME to TEXT, in UTC, without needless zeros."""
    text = time.replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def micros_of(time: datetime) -> int:
    """Microseconds since 1970."""
    return (time - EPOCH) // _MICROSECOND


def time_of_micros(micros: int) -> datetime | None:
    """The time this many microseconds after 1970 began."""
    return EPOCH + timedelta(microseconds=micros) if MIN_MICROS <= micros <= MAX_MICROS else None


def truncated_to(unit: str, time: datetime) -> datetime:
    """The start of the ``unit``, in UTC, that ``time`` lies in."""
    return time.replace(**_UNITS[unit])  # type: ignore[arg-type]


def check_zone(name: str) -> None:
    """Refuses what is no zone of the IANA database, by area and place.

    Raises:
        RefusalError: it is none.
    """
    if name not in zones():
        raise RefusalError(f"{name!r} is no time zone", "name one as in 'Europe/Berlin', or 'UTC'")


@cache
def zones() -> frozenset[str]:
    """The zones of the IANA database by area and place, and UTC."""
    areas = ("Africa/", "America/", "Antarctica/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")
    known = available_timezones() - _TOO_NEW
    return frozenset({"UTC", *(zone for zone in known if zone.startswith((*areas, "Etc/")))})


def utc_of_local(zone: str, local: datetime) -> datetime | None:
    """The time at which clocks in ``zone`` show what ``local`` shows in UTC.

    What they show twice is the first of both; what they skip is as if they had not been put forward yet.
    """
    if not _FIRST <= local < _LAST:
        return None
    return local.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(UTC)
