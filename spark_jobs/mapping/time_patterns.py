"""Patterns of times, as ``to_timestamp`` takes them: in SQL and in Python.

Both make ISO 8601 of a text that matches, which :mod:`spark_jobs.mapping.times` reads.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from string import ascii_lowercase, ascii_uppercase

from spark_jobs.mapping import times
from spark_jobs.mapping.errors import RefusalError
from spark_jobs.mapping.sqltext import quoted

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT = 3
"""Letters of a short name."""
_SHORT_MONTHS = "".join(name[:_SHORT] for name in _MONTHS)
_LETTER = re.compile(r"y+|M+|d+|H+|h+|m+|s+|S+|a+|E+|X+|Z+|z+|'((?:[^']|'')*)'|([A-Za-z'])|(.)", re.DOTALL)
_USE = (
    "use yyyy, yy, MM, M, MMM, MMMM, dd, d, HH, H, hh or h with a, mm, m, ss, s, S to SSSSSSSSS, EEE, EEEE, XXX, XX, "
    "X, Z, z, and letters in ''"
)


@dataclass(frozen=True)
class _Letters:
    """The meaning of letters in a pattern.

    Attributes:
        part: of a time.
        regex: what they match.
        sql: SQL of the part as ISO 8601 has it, from the SQL of the text that is there; None: it is that text.
        python: the same in Python.
    """

    part: str
    regex: str
    sql: Callable[[str], str] | None = None
    python: Callable[[str], str] = str


def _any_of(names: tuple[str, ...], letters: int | None = None) -> str:
    return f"(?i:{'|'.join(name[:letters] for name in names)})"


def _two_digits_sql(text: str) -> str:
    return f"lpad({text}, 2, '0')"


def _two_digits(text: str) -> str:
    return text.zfill(2)


def _year_sql(text: str) -> str:
    return f"concat('20', {text})"


def _month_sql(text: str) -> str:
    lower = f"translate(left({text}, {_SHORT}), '{ascii_uppercase}', '{ascii_lowercase}')"
    return _two_digits_sql(f"cast((instr('{_SHORT_MONTHS}', {lower}) + 2) div {_SHORT} as string)")


def _month(text: str) -> str:
    return _two_digits(str(_SHORT_MONTHS.index(text[:_SHORT].lower()) // _SHORT + 1))


_ONE_OR_TWO = "[0-9]{1,2}"
_LETTERS = {
    "yyyy": _Letters("year", "[0-9]{4}"),
    "yy": _Letters("year", "[0-9]{2}", _year_sql, "20{}".format),
    "MM": _Letters("month", "[0-9]{2}"),
    "M": _Letters("month", _ONE_OR_TWO, _two_digits_sql, _two_digits),
    "MMM": _Letters("month", _any_of(_MONTHS, _SHORT), _month_sql, _month),
    "MMMM": _Letters("month", _any_of(_MONTHS), _month_sql, _month),
    "dd": _Letters("day", "[0-9]{2}"),
    "d": _Letters("day", _ONE_OR_TWO, _two_digits_sql, _two_digits),
    "HH": _Letters("hour", "[0-9]{2}"),
    "H": _Letters("hour", _ONE_OR_TWO, _two_digits_sql, _two_digits),
    "hh": _Letters("hour of twelve", "0[1-9]|1[0-2]"),
    "h": _Letters("hour of twelve", "0?[1-9]|1[0-2]"),
    "mm": _Letters("minute", "[0-9]{2}"),
    "m": _Letters("minute", _ONE_OR_TWO, _two_digits_sql, _two_digits),
    "ss": _Letters("second", "[0-9]{2}"),
    "s": _Letters("second", _ONE_OR_TWO, _two_digits_sql, _two_digits),
    "a": _Letters("half of the day", r"[AaPp](?:[Mm]|\.[Mm]\.)"),
    "EEE": _Letters("day of the week", _any_of(_DAYS, _SHORT)),
    "EEEE": _Letters("day of the week", _any_of(_DAYS)),
    "XXX": _Letters("zone", "Z|[+-][0-9]{2}:[0-9]{2}"),
    "XX": _Letters("zone", "Z|[+-][0-9]{4}"),
    "Z": _Letters("zone", "[+-][0-9]{4}"),
    "X": _Letters("zone", "Z|[+-][0-9]{2}"),
    "z": _Letters("zone", "UTC|GMT"),
} | {"S" * digits: _Letters("fraction", f"[0-9]{{{digits}}}") for digits in range(1, 10)}


@dataclass(frozen=True)
class TimePattern:
    """A pattern of times.

    Attributes:
        regex: of the texts that match, in Java and Python alike, with a group for each part.
        parts: by part of a time, the number of its group, and its letters.
    """

    regex: str
    parts: Mapping[str, tuple[int, _Letters]]

    def sql(self, text: str) -> str:
        """SQL of ISO 8601 for a ``text``; of none that is a time for one that does not match."""
        whole = quoted(rf"\A(?:{self.regex})\z")
        if all(letters.sql is None for _, letters in self.parts.values()) and not self._is_of_twelve:
            iso = self._iso({part: f"${group}" for part, (group, _) in self.parts.items()})
            return f"regexp_replace(regexp_extract({text}, {whole}, 0), {whole}, {quoted(''.join(iso))})"
        found = {
            part: (letters.sql or str)(f"regexp_extract({text}, {whole}, {group})")
            for part, (group, letters) in self.parts.items()
        }
        if self._is_of_twelve:
            hour, half = found.pop("hour of twelve"), found.pop("half of the day")
            of_day = f"try_cast({hour} as int) % 12 + if(left({half}, 1) in ('p', 'P'), 12, 0)"
            found["hour"] = _two_digits_sql(f"cast({of_day} as string)")
        return f"concat({', '.join(self._iso(found, quoted))})"

    def time(self, text: str) -> datetime | None:
        """The time that ``text`` says."""
        match = re.compile(self.regex, re.ASCII).fullmatch(text)
        if not match:
            return None
        found = {part: letters.python(match[group]) for part, (group, letters) in self.parts.items()}
        if self._is_of_twelve:
            hour, half = found.pop("hour of twelve"), found.pop("half of the day")
            found["hour"] = _two_digits(str(int(hour) % 12 + (12 if half[0] in "pP" else 0)))
        return times.time_of_text("".join(self._iso(found)))

    @property
    def _is_of_twelve(self) -> bool:
        return "hour of twelve" in self.parts

    @staticmethod
    def _iso(found: Mapping[str, str], fixed: Callable[[str], str] = str) -> list[str]:
        """The pieces of ISO 8601: what was ``found``, and what is ``fixed``."""
        date = [found["year"], fixed("-"), found["month"], fixed("-"), found["day"], fixed("T")]
        zero, colon = fixed("00"), fixed(":")
        clock = [found.get("hour", zero), colon, found.get("minute", zero), colon, found.get("second", zero)]
        fraction = [fixed("."), found["fraction"]] if "fraction" in found else []
        return [*date, *clock, *fraction, found.get("zone", fixed("Z"))]


def time_pattern(pattern: str) -> TimePattern:
    """The pattern that ``pattern`` is.

    Raises:
        RefusalError: it has letters that mean nothing, a part twice, or lacks one.
    """
    regex: list[str] = []
    parts: dict[str, tuple[int, _Letters]] = {}
    for found in _LETTER.finditer(pattern):
        if found[3] or found[1] is not None:
            regex.append(re.escape(found[3] or found[1].replace("''", "'") or "'"))
            continue
        letters = _LETTERS.get(found[0])
        if letters is None:
            raise RefusalError(f"the pattern {pattern!r} has {found[0]!r} at character {found.start() + 1}", _USE)
        if letters.part in parts:
            raise RefusalError(f"the pattern {pattern!r} has the {letters.part} twice")
        parts[letters.part] = len(parts) + 1, letters
        regex.append(f"({letters.regex})")
    _check(pattern, set(parts))
    return TimePattern("".join(regex), parts)


def _check(pattern: str, parts: set[str]) -> None:
    if {"hour", "hour of twelve"} <= parts:
        raise RefusalError(f"the pattern {pattern!r} has the hour twice")
    needed = ["year", "month", "day"]
    needed += ["half of the day"] if "hour of twelve" in parts else []
    needed += ["hour of twelve"] if "half of the day" in parts else []
    clock = parts | ({"hour"} if "hour of twelve" in parts else set())
    needed += [before for part, before in (("second", "minute"), ("fraction", "second")) if part in parts]
    if missing := [part for part in needed if part not in parts]:
        raise RefusalError(f"the pattern {pattern!r} lacks the {missing[0]}")
    if "minute" in parts and "hour" not in clock:
        raise RefusalError(f"the pattern {pattern!r} lacks the hour")
