"""Which expression makes a time of the values of a column."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from spark_jobs.mapping.coercion import coerced
from spark_jobs.mapping.expression import Expression, evaluate
from spark_jobs.mapping.suggest.profile import Column, Profile, parsed_expression
from spark_jobs.mapping.types import Type

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Numbers that would be times before are not taken for times."""
_AHEAD = timedelta(days=366)
_TRIED, _COMPARED = 400, 50
_ENOUGH = 0.95
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+]?[0-9]+)?")
_SHAPE = re.compile(
    r"(?P<date>9999(?P<a>[-/.]?)99(?P=a)99|99(?P<b>[-/.])99(?P=b)9999)"
    r"(?:(?P<between>T| |, |)(?P<time>99:99:99|99:99|999999)(?P<fraction>[.,]9{1,6})?"
    r"(?P<zone>Z| ?[+-]99:99| UTC| GMT)?)?"
)
_DATE, _CLOCK = re.compile(r"9999-99-99"), re.compile(r"99:99:99(?:\.9{1,6})?")


@dataclass(frozen=True)
class TimeReading:
    """How times are read from a column.

    Attributes:
        expression: gives TIME, or text that is one.
        rows: the records in which there is a value.
        check: what a person should decide; empty: nothing.
        is_day: whether the values say only the day.
    """

    expression: str
    rows: frozenset[int]
    check: str = ""
    is_day: bool = False


def read_time(column: Column, profile: Profile, now: datetime) -> TimeReading | None:
    """How the values of ``column`` are times, nearly all from 2000 to a year after ``now``; None: they are not."""
    rows = list(column.given)
    tried = rows[:: max(1, len(rows) // _TRIED)]
    values = [column.values[row] for row in tried]
    shapes = [shape for shape, _ in Counter(map(_shape, values)).most_common(3)]
    if not any(any(map(str.isdigit, value)) for value in values):
        return None
    for expression, check in _attempts(column.or_null, values, shapes):
        good = sum(_is_plausible(time, now) for time in times(expression, profile, tried))
        if good >= _ENOUGH * len(tried):
            return TimeReading(expression, frozenset(rows), check, is_day=_is_day(shapes) and "HH" not in expression)
    return None


def read_pair(columns: Sequence[Column], profile: Profile, now: datetime) -> TimeReading | None:
    """How a day in one of ``columns`` and the time of day in another one are a time."""
    by_shape: dict[re.Pattern[str], Column] = {}
    for column in columns:
        shapes = {_shape(value) for value in column.examples(20)}
        for pattern in (_DATE, _CLOCK):
            if shapes and all(pattern.fullmatch(shape) for shape in shapes):
                by_shape.setdefault(pattern, column)
    if len(by_shape) < 2:  # noqa: PLR2004 both
        return None
    day, clock = by_shape[_DATE], by_shape[_CLOCK]
    expression = f"concat({day.or_null}, ' ', {clock.or_null})"
    rows = sorted(set(day.given) & set(clock.given))
    tried = rows[:: max(1, len(rows) // _TRIED)]
    good = sum(_is_plausible(time, now) for time in times(expression, profile, tried))
    return TimeReading(expression, frozenset(rows), NO_ZONE) if tried and good >= _ENOUGH * len(tried) else None


def is_finer(one: TimeReading, other: TimeReading, profile: Profile) -> bool:
    """Whether ``one`` gives the times of ``other`` to a part of the second, which that one does not."""
    rows = sorted(one.rows & other.rows)[:_COMPARED]
    pairs = list(zip(times(one.expression, profile, rows), times(other.expression, profile, rows), strict=True))
    are_same = all(a is not None and b is not None and a.replace(microsecond=0) == b for a, b in pairs)
    return are_same and any(a != b for a, b in pairs)


def times(expression: str, profile: Profile, rows: Sequence[int]) -> list[datetime | None]:
    """The times that ``expression`` gives for ``rows``."""
    parsed = as_type(expression, Type.TIME)
    values = [evaluate(parsed, profile.records[row]).value for row in rows]
    return [value if isinstance(value, datetime) else None for value in values]


def as_type(expression: str, target: Type) -> Expression:
    """``expression`` as a field of that type takes it."""
    parsed = parsed_expression(expression)
    return replace(parsed, node=coerced(parsed.node, target))


NO_ZONE = "the times name no zone and count as UTC; if they are local, use to_utc_timestamp(…, 'Area/City')"
_AMBIGUOUS = "taken for month/day/year, as no day after the 12th occurs; if it is day/month/year, swap MM and dd"
_MONTHS = 12
_NAMED_PATTERNS = (
    ("dd/MMM/yyyy:HH:mm:ss Z", ""),
    ("EEE, d MMM yyyy HH:mm:ss z", ""),
    ("EEE, d MMM yyyy HH:mm:ss Z", ""),
    ("EEE MMM d HH:mm:ss yyyy", NO_ZONE),
    ("d MMM yyyy HH:mm:ss", NO_ZONE),
    ("MMM d, yyyy HH:mm:ss", NO_ZONE),
    ("MMM d, yyyy h:mm:ss a", NO_ZONE),
    ("M/d/yyyy h:mm:ss a", f"{_AMBIGUOUS}; {NO_ZONE}"),
    ("M/d/yyyy h:mm a", f"{_AMBIGUOUS}; {NO_ZONE}"),
    ("M/d/yyyy H:mm", f"{_AMBIGUOUS}; {NO_ZONE}"),
    ("yyyy-MM-dd-HH:mm:ss", NO_ZONE),
    *((hour, f"the times say only the hour; {NO_ZONE}") for hour in ("yyMMddHH", "yyyyMMddHH")),
)
"""Patterns that people write, with what a person should decide."""


def _shape(value: str) -> str:
    return re.sub("[0-9]", "9", value)


def _is_day(shapes: Sequence[str]) -> bool:
    found = [_SHAPE.fullmatch(shape) for shape in shapes]
    return all(one is not None and one["time"] is None for one in found)


def _is_plausible(time: datetime | None, now: datetime) -> bool:
    return time is not None and EARLIEST <= time <= now + _AHEAD


def _attempts(path: str, values: Sequence[str], shapes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Expressions that may read the values, each with what a person should decide."""
    if sum(bool(_NUMBER.fullmatch(value)) for value in values) >= _ENOUGH * len(values):
        for unit in ("seconds", "millis", "micros", "nanos"):
            yield f"timestamp_{unit}({path})", ""
    else:
        yield path, "" if all(_names_zone(shape) for shape in shapes) else NO_ZONE
    yield from _patterns(path, values, shapes)
    for pattern, check in _NAMED_PATTERNS:
        yield f"to_timestamp({path}, {_quoted(pattern)})", check
    yield f"parse_time({path})", "some are numbers, and some texts or of another unit"


def _names_zone(shape: str) -> bool:
    return bool(re.search(r"(?:Z|z|UTC|GMT|:99.*[+-]99:?99)$", shape))


def _patterns(path: str, values: Sequence[str], shapes: Sequence[str]) -> Iterator[tuple[str, str]]:
    found = [one for one in map(_SHAPE.fullmatch, shapes) if one]
    if not found:
        return
    zone = "" if all(one["zone"] for one in found) else NO_ZONE
    first, check = _order(values) if any(one["b"] == "/" for one in found) else ("dd", "")
    calls = [f"to_timestamp({path}, {_quoted(_pattern(one, first))})" for one in found]
    yield (calls[0] if len(calls) == 1 else f"coalesce({', '.join(calls)})"), "; ".join(filter(None, (check, zone)))


def _order(values: Sequence[str]) -> tuple[str, str]:
    """The part that comes first in 01/02/2026, and what to check unless a day after the 12th shows it."""
    parts = [found.groups() for value in values if (found := re.match("([0-9]{2})/([0-9]{2})/", value))]
    if any(int(first) > _MONTHS for first, _ in parts):
        return "dd", ""
    return "MM", "" if any(int(second) > _MONTHS for _, second in parts) else _AMBIGUOUS


def _pattern(found: re.Match[str], first: str) -> str:
    a, b = found["a"] or "", found["b"]
    second = "MM" if first == "dd" else "dd"
    pattern = f"{first}{b}{second}{b}yyyy" if b else f"yyyy{a}MM{a}dd"
    if found["time"]:
        clock = {"99:99:99": "HH:mm:ss", "99:99": "HH:mm", "999999": "HHmmss"}[found["time"]]
        fraction = found["fraction"] or ""
        pattern += found["between"].replace("T", "'T'") + clock + fraction[:1] + "S" * len(fraction[1:])
    return pattern + _zone_pattern(found["zone"] or "")


def _zone_pattern(zone: str) -> str:
    if zone in {" UTC", " GMT"}:
        return f"'{zone}'"
    return " XXX" if zone.startswith(" ") else "XXX" if zone else ""


def _quoted(pattern: str) -> str:
    return f'"{pattern}"' if "'" in pattern else f"'{pattern}'"
