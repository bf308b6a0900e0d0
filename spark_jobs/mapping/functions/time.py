"""Functions of time."""

import re
from datetime import datetime
from decimal import Decimal
from functools import partial

from spark_jobs.mapping import times
from spark_jobs.mapping.declare import Function, Implementation, Overload, Parameter, overload
from spark_jobs.mapping.errors import RefusalError
from spark_jobs.mapping.numbers import micros_of_seconds
from spark_jobs.mapping.sqltext import quoted
from spark_jobs.mapping.types import Type

_TEXT, _INTEGER, _TIME = Type.TEXT, Type.INTEGER, Type.TIME
_MILLISECOND, _SECOND = 1000, 1_000_000
_FIELDS = {
    "yyyy": ("year", "[0-9]{4}"),
    "MM": ("month", "[0-9]{2}"),
    "dd": ("day", "[0-9]{2}"),
    "HH": ("hour", "[0-9]{2}"),
    "mm": ("minute", "[0-9]{2}"),
    "ss": ("second", "[0-9]{2}"),
    "XXX": ("zone", "(?:Z|[+-][0-9]{2}:[0-9]{2})"),
}
_FIELD = re.compile(r"yyyy|MM|dd|HH|mm|ss|S{1,6}|XXX|'((?:[^']|'')*)'|([A-Za-z'])|(.)", re.DOTALL)


def time_of_text_sql(text: str) -> str:
    """SQL of TEXT to TIME."""
    found = rf"\A(?:{times.TIME_PATTERN})\z"
    return f"try_cast(translate(regexp_extract({text}, {quoted(found)}, 0), 'tz', 'TZ') as timestamp)"


def _of_units(function: str, micros: int) -> tuple[str, partial[datetime | None]]:
    least, most = times.MIN_MICROS // micros, times.MAX_MICROS // micros
    return f"if({{0}} between {least} and {most}, {function}({{0}}), null)", partial(_time_of, micros)


def _time_of(micros: int, count: int) -> datetime | None:
    return times.time_of_micros(count * micros)


def _time_of_seconds(seconds: Decimal) -> datetime | None:
    return times.time_of_micros(micros_of_seconds(seconds))


def _time_of_seconds_sql(seconds: str) -> str:
    micros = f"try_cast({seconds} * 1000000bd as bigint)"
    return f"if({micros} between {times.MIN_MICROS} and {times.MAX_MICROS}, timestamp_micros({micros}), null)"


def _units_of(micros: int) -> partial[int]:
    return partial(_count_of, micros)


def _count_of(micros: int, time: datetime) -> int:
    return times.micros_of(time) // micros


def _bind_to_timestamp(pattern: str) -> Implementation:
    regex, template = _compiled_pattern(pattern)
    matches = re.compile(regex).fullmatch

    def python(text: str) -> datetime | None:
        found = matches(text)
        return times.time_of_text(found.expand(template.replace("$", "\\"))) if found else None

    whole = rf"\A{regex}\z"

    def sql(text: str) -> str:
        checked = f"regexp_extract({text}, {quoted(whole)}, 0)"
        return time_of_text_sql(f"regexp_replace({checked}, {quoted(whole)}, {quoted(template)})")

    return Implementation(sql, python)


def _compiled_pattern(pattern: str) -> tuple[str, str]:
    """The regular expression of texts of ``pattern``, and what makes RFC 3339 of its groups (``$1`` and so on)."""
    parts: list[str] = []
    groups: dict[str, str] = {}
    for found in _FIELD.finditer(pattern):
        if found[2]:
            raise RefusalError(
                f"the pattern {pattern!r} has {found[0]!r} at character {found.start() + 1}",
                "use yyyy, MM, dd, HH, mm, ss, S to SSSSSS, XXX, and letters in ''",
            )
        if found[3] or found[1] is not None:
            parts.append(re.escape(found[3] or found[1].replace("''", "'") or "'"))
            continue
        name, regex = _FIELDS.get(found[0], ("fraction", f"[0-9]{{{len(found[0])}}}"))
        if name in groups:
            raise RefusalError(f"the pattern {pattern!r} has the {name} twice")
        groups[name] = f"${len(groups) + 1}"
        parts.append(f"({regex})")
    return "".join(parts), _template(pattern, groups)


def _template(pattern: str, groups: dict[str, str]) -> str:
    needed = ["year", "month", "day"]
    for name, before in (("minute", "hour"), ("second", "minute"), ("fraction", "second")):
        if name in groups:
            needed.append(before)
    if missing := [name for name in needed if name not in groups]:
        raise RefusalError(f"the pattern {pattern!r} lacks the {missing[0]}")
    clock = ":".join(groups.get(name, "00") for name in ("hour", "minute", "second"))
    fraction = f".{groups['fraction']}" if "fraction" in groups else ""
    return f"{groups['year']}-{groups['month']}-{groups['day']}T{clock}{fraction}{groups.get('zone', 'Z')}"


def _bind_zone(zone: str) -> Implementation:
    times.check_zone(zone)
    first, last = f"timestamp'{times.FIRST_LOCAL} 00:00:00Z'", f"timestamp'{times.LAST_LOCAL} 23:59:59.999999Z'"
    return Implementation(
        lambda time: f"if({time} between {first} and {last}, to_utc_timestamp({time}, {quoted(zone)}), null)",
        partial(times.utc_of_local, zone),
    )


def _bind_trunc(unit: str) -> Implementation:
    if unit.lower() not in times.UNITS:
        raise RefusalError(f"date_trunc has no unit {unit!r}", f"use one of {', '.join(times.UNITS)}")
    return Implementation(
        lambda time: f"date_trunc({quoted(unit.lower())}, {time})", partial(times.truncated_to, unit.lower())
    )


def _counting(name: str, unit: str, micros: int, example: int) -> Function:
    return Function(
        name,
        f"{name}(time)",
        f"{unit} since 1970 began, in UTC; a started one before 1970 counts.",
        (f"{name}(to_timestamp('2023-11-14T22:13:20Z'))", example),
        (overload("time TIME", _INTEGER, f"{name}({{}})", _units_of(micros)),),
    )


_EXAMPLE = times.time_of_text("2023-11-14T22:13:20.123Z")
FUNCTIONS = (
    Function(
        "timestamp_seconds",
        "timestamp_seconds(number)",
        "The time this many seconds after 1970 began. Digits behind the microsecond are cut off. What lies outside the "
        "years 0001 to 9999 fails.",
        ("timestamp_seconds(1700000000.123)", _EXAMPLE),
        (overload("seconds NUMBER", _TIME, _time_of_seconds_sql, _time_of_seconds),),
        can_fail=True,
    ),
    Function(
        "timestamp_millis",
        "timestamp_millis(integer)",
        "Likewise for milliseconds.",
        ("timestamp_millis(1700000000123)", _EXAMPLE),
        (overload("millis INTEGER", _TIME, *_of_units("timestamp_millis", _MILLISECOND)),),
        can_fail=True,
    ),
    Function(
        "timestamp_micros",
        "timestamp_micros(integer)",
        "Likewise for microseconds.",
        ("timestamp_micros(1700000000123000)", _EXAMPLE),
        (overload("micros INTEGER", _TIME, *_of_units("timestamp_micros", 1)),),
        can_fail=True,
    ),
    _counting("unix_seconds", "Seconds", _SECOND, 1_700_000_000),
    _counting("unix_millis", "Milliseconds", _MILLISECOND, 1_700_000_000_000),
    _counting("unix_micros", "Microseconds", 1, 1_700_000_000_000_000),
    Function(
        "to_timestamp",
        "to_timestamp(text[, 'pattern'])",
        "The time that a text says. Without a pattern as `cast` reads it; with one, the whole text must match: `yyyy`, "
        "`MM`, `dd`, `HH`, `mm`, `ss`, `S` to `SSSSSS` (that many digits of a fraction), `XXX` (`Z` or `+01:00`), and "
        "letters in `''`. Without a zone it is UTC.",
        ("to_timestamp('14.11.2023 22:13:20.123', 'dd.MM.yyyy HH:mm:ss.SSS')", _EXAMPLE),
        (
            overload("text TEXT", _TIME, time_of_text_sql, times.time_of_text),
            Overload(
                (Parameter("text", _TEXT), Parameter("pattern", _TEXT, is_literal=True)), _TIME, _bind_to_timestamp
            ),
        ),
        can_fail=True,
    ),
    Function(
        "to_utc_timestamp",
        "to_utc_timestamp(time, 'zone')",
        "For local times: the time at which clocks in the zone show what the argument shows in UTC. What they show "
        "twice is the first of both; what they skip counts as if they had not been put forward. Days before "
        f"{times.FIRST_LOCAL} and after {times.LAST_LOCAL} fail.",
        ("to_utc_timestamp('2023-11-14 23:13:20.123', 'Europe/Berlin')", _EXAMPLE),
        (Overload((Parameter("time", _TIME), Parameter("zone", _TEXT, is_literal=True)), _TIME, _bind_zone),),
        can_fail=True,
    ),
    Function(
        "date_trunc",
        "date_trunc('unit', time)",
        "The start of the unit, in UTC: second, minute, hour, day, month or year.",
        ("date_trunc('day', '2023-11-14T22:13:20Z')", times.time_of_text("2023-11-14")),
        (Overload((Parameter("unit", _TEXT, is_literal=True), Parameter("time", _TIME)), _TIME, _bind_trunc),),
    ),
)
