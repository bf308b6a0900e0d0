"""Functions of time."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from spark_jobs.mapping import times
from spark_jobs.mapping.declare import Function, Implementation, Overload, Parameter, overload
from spark_jobs.mapping.errors import RefusalError
from spark_jobs.mapping.functions.numeric import number_of_text_sql
from spark_jobs.mapping.numbers import integer_of_text, number_of_text, whole_product
from spark_jobs.mapping.sqltext import quoted
from spark_jobs.mapping.time_patterns import time_pattern
from spark_jobs.mapping.types import Type

_TEXT, _INTEGER, _NUMBER, _TIME = Type.TEXT, Type.INTEGER, Type.NUMBER, Type.TIME
_Pair = tuple[Callable[[str], str], Callable[[Any], datetime | None]]
"""An implementation in SQL, and in Python."""
_FIRST_LOCAL = f"timestamp'{times.FIRST_LOCAL} 00:00:00Z'"
_LAST_LOCAL = f"timestamp'{times.LAST_LOCAL} 23:59:59.999999Z'"
_MILLISECOND, _SECOND = 1000, 1_000_000
_FIRST_EPOCH_S, _AFTER_EPOCH_S = 100_000_000, 4_102_444_800
"""The seconds that ``parse_time`` takes for a time: 3 March 1973 to the end of 2099. Their range, times a power of
1000, overlaps with no other unit's, and with no date that is written as a number, such as 20260301."""
_EPOCH_UNITS = (
    *((_FIRST_EPOCH_S * 1000**3, "0.001"), (_FIRST_EPOCH_S * 1000**2, "1")),
    *((_FIRST_EPOCH_S * 1000, "1000"), (_FIRST_EPOCH_S, "1000000")),
)
"""From which number on it is one of nanoseconds, microseconds, milliseconds, seconds; and how many microseconds."""
_WHOLE_TIME = rf"\A(?:{times.TIME_PATTERN})\z"
_NO_SECONDS = r"\A(.{16})([Zz +-].*)\z"


def time_of_text_sql(text: str) -> str:
    """SQL of TEXT to TIME."""
    found = f"regexp_extract({text}, {quoted(_WHOLE_TIME)}, 1)"
    # Spark wants seconds in front of a zone.
    with_seconds = f"regexp_replace({found}, {quoted(_NO_SECONDS)}, '$1:00$2')"
    return f"try_cast(translate({with_seconds}, 'tz,', 'TZ.') as timestamp)"


def _of_number(micros: str) -> _Pair:
    """SQL and Python of a NUMBER of units of ``micros`` microseconds; what lies behind a microsecond is cut off."""

    def sql(number: str) -> str:
        count = f"try_cast({number} * {micros}bd as bigint)"
        return f"if({count} between {times.MIN_MICROS} and {times.MAX_MICROS}, timestamp_micros({count}), null)"

    return sql, partial(_time_of_number, Decimal(micros))


def _time_of_number(micros: Decimal, number: Decimal) -> datetime | None:
    return times.time_of_micros(whole_product(number, micros))


def _of_integer(micros: int) -> _Pair:
    function = {_SECOND: "timestamp_seconds", _MILLISECOND: "timestamp_millis", 1: "timestamp_micros"}[micros]
    least, most = times.MIN_MICROS // micros, times.MAX_MICROS // micros
    return f"if({{0}} between {least} and {most}, {function}({{0}}), null)".format, partial(_time_of, micros)


def _time_of(micros: int, count: int) -> datetime | None:
    return times.time_of_micros(count * micros)


def _of_text(integer: _Pair, number: _Pair) -> _Pair:
    """Of a text that is a number; whole ones, which nearly all are, are not made decimals."""

    def sql(text: str) -> str:
        return f"coalesce({integer[0](f'try_cast({text} as bigint)')}, {number[0](number_of_text_sql(text))})"

    def python(text: str) -> datetime | None:
        count, value = integer_of_text(text), number_of_text(text)
        found = None if count is None else integer[1](count)
        return number[1](value) if found is None and value is not None else found

    return sql, python


def _of_unit(name: str, micros: int, meaning: str, example: str) -> Function:
    integer, number = _of_integer(micros), _of_number(str(micros))
    return Function(
        name,
        f"{name}(number)",
        meaning,
        (f"{name}({example})", _EXAMPLE),
        (
            overload("count INTEGER", _TIME, *integer),
            overload("count NUMBER", _TIME, *number),
            overload("count TEXT", _TIME, *_of_text(integer, number)),
        ),
        can_fail=True,
    )


def _parse_time_sql(text: str) -> str:
    number = number_of_text_sql(text)
    units = " ".join(f"when {number} >= {least}bd then {micros}bd" for least, micros in _EPOCH_UNITS)
    count = f"try_cast(try_multiply({number}, case {units} end) as bigint)"
    first, last = _FIRST_EPOCH_S * _SECOND, _AFTER_EPOCH_S * _SECOND - 1
    return (
        f"coalesce({time_of_text_sql(text)}, if({count} between {first} and {last}, timestamp_micros({count}), null))"
    )


def _parse_time(text: str) -> datetime | None:
    if (time := times.time_of_text(text)) is not None:
        return time
    number = number_of_text(text)
    micros = next((micros for least, micros in _EPOCH_UNITS if number is not None and number >= least), None)
    if number is None or micros is None:
        return None
    count = whole_product(number, Decimal(micros))
    return times.time_of_micros(count) if count < _AFTER_EPOCH_S * _SECOND else None


def _units_of(micros: int) -> partial[int]:
    return partial(_count_of, micros)


def _count_of(micros: int, time: datetime) -> int:
    return times.micros_of(time) // micros


def _bind_to_timestamp(pattern: str) -> Implementation:
    found = time_pattern(pattern)
    return Implementation(lambda text: time_of_text_sql(found.sql(text)), found.time)


def _bind_zone(zone: str) -> Implementation:
    times.check_zone(zone)
    return Implementation(
        lambda time: (
            f"if({time} between {_FIRST_LOCAL} and {_LAST_LOCAL}, to_utc_timestamp({time}, {quoted(zone)}), null)"
        ),
        partial(times.utc_of_local, zone),
    )


def _utc_of_local_sql(time: str, zone: str) -> str:
    known = ", ".join(map(quoted, sorted(times.zones())))
    # Of a name that it does not know, to_utc_timestamp makes an error.
    local = f"try_cast(concat(cast({time} as string), ' ', {zone}) as timestamp)"
    return f"if({time} between {_FIRST_LOCAL} and {_LAST_LOCAL} and {zone} in ({known}), {local}, null)"


def _utc_of_local(time: datetime, zone: str) -> datetime | None:
    return times.utc_of_local(zone, time) if zone in times.zones() else None


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
    _of_unit(
        "timestamp_seconds",
        _SECOND,
        "The time this many seconds after 1970 began. Digits behind the microsecond are cut off. What lies outside the "
        "years 0001 to 9999 fails.",
        "1700000000.123",
    ),
    _of_unit("timestamp_millis", _MILLISECOND, "Likewise for milliseconds.", "1700000000123"),
    _of_unit("timestamp_micros", 1, "Likewise for microseconds.", "1700000000123000"),
    Function(
        "timestamp_nanos",
        "timestamp_nanos(number)",
        "Likewise for nanoseconds.",
        ("timestamp_nanos(1700000000123000999)", _EXAMPLE),
        (overload("count NUMBER", _TIME, *_of_number("0.001")),),
        can_fail=True,
        is_sparks=False,
    ),
    Function(
        "parse_time",
        "parse_time(text)",
        "The time that a text says, as `cast` reads it, or that a number is: seconds, milliseconds, microseconds or "
        "nanoseconds since 1970 began, whichever lies in the years 1973 to 2099. For fields that hold several of them.",
        ("parse_time('1700000000123')", _EXAMPLE),
        (overload("text TEXT", _TIME, _parse_time_sql, _parse_time),),
        can_fail=True,
        is_sparks=False,
    ),
    _counting("unix_seconds", "Seconds", _SECOND, 1_700_000_000),
    _counting("unix_millis", "Milliseconds", _MILLISECOND, 1_700_000_000_000),
    _counting("unix_micros", "Microseconds", 1, 1_700_000_000_000_000),
    Function(
        "to_timestamp",
        "to_timestamp(text[, 'pattern'])",
        "The time that a text says. Without a pattern as `cast` reads it; with one, the whole text must match: `yyyy`, "
        "`yy` (20yy), `MM`, `M`, `MMM` and `MMMM` (`Mar`, `March`), `dd`, `d`, `HH`, `H`, `hh` and `h` with `a` (`AM`, "
        "`p.m.`), `mm`, `ss`, `S` to `SSSSSSSSS` (that many digits of a fraction), `EEE` and `EEEE` (`Sun`, `Sunday`), "
        "`XXX` (`Z` or `+01:00`), `XX` and `Z` (`+0100`), `X` (`+01`), `z` (`UTC` or `GMT`), and letters in `''`. A "
        "single letter of a number takes one digit or two. Without a zone it is UTC.",
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
        "to_utc_timestamp(time, zone)",
        "For local times: the time at which clocks in the zone show what the argument shows in UTC. The zone is one of "
        "the IANA database by area and place, or `UTC`; if it is no literal, others fail. What the clocks show "
        "twice is the first of both; what they skip counts as if they had not been put forward. Days before "
        f"{times.FIRST_LOCAL} and after {times.LAST_LOCAL} fail.",
        ("to_utc_timestamp('2023-11-14 23:13:20.123', 'Europe/Berlin')", _EXAMPLE),
        (
            Overload((Parameter("time", _TIME), Parameter("zone", _TEXT, is_literal=True)), _TIME, _bind_zone),
            overload("time TIME, zone TEXT", _TIME, _utc_of_local_sql, _utc_of_local),
        ),
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
