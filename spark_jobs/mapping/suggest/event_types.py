"""Which column says whether a record is an impression, a click, a conversion or something else."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from spark_jobs.contract.events import ACTIVITY, CLICK, CONVERSION, EVENT_TYPES, IMPRESSION
from spark_jobs.mapping.suggest import names
from spark_jobs.mapping.suggest.names import name_score, words
from spark_jobs.mapping.suggest.profile import Column, Profile

_IMPRESSION = {
    "impression",
    "impressions",
    "imp",
    "imps",
    "impr",
    "imprs",
    "shown",
    "show",
    "served",
    "serve",
    "render",
}
_IMPRESSION |= {"rendered", "adview", "adimpression", "exposure", "viewed", "view"}
_CLICK = {"click", "clicks", "clicked", "clk", "clck", "clicking", "tap", "tapped", "adclick", "clickthrough"}
_CONVERSION = {"conversion", "conversions", "converted", "conv"}
"""No word for what was done, such as purchase: it may be an event of the shop without any value."""
_OF_ADS = {"ad", "ads", "advert", "banner", "creative"}
_HARMLESS = _OF_ADS | {
    "event",
    "type",
    "native",
    "video",
    "display",
    "log",
    "track",
    "tracking",
    "tracker",
    "pixel",
    "px",
}
_HARMLESS |= {"campaign", "gif", "png", "v", "api", "user", "on", "new", "record"} | {str(digit) for digit in range(10)}
_LETTERS = {IMPRESSION: "i", CLICK: "c"}
_AMBIGUOUS = {"view", "viewed", "show", "served", "serve", "render", "rendered", "exposure", "tap", "tapped", "shown"}
"""Words that mean an ad only next to a word for it, or if the other type is there too."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.:/@+-]{0,79}")
_MAX_VALUES = 60
_LISTED = 8
_MOSTLY = 0.5


@dataclass(frozen=True)
class EventTypes:
    """How the types of events are distinguished.

    Attributes:
        column: the one that distinguishes them; None: all records are of one type.
        by_value: the type that a value of the column means. Other values, and none, mean activity.
        rows: by type, its records; only types that occur.
        why: how it was chosen.
        checks: what a person should decide.
    """

    rows: Mapping[str, AbstractSet[int]]
    column: Column | None = None
    by_value: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    checks: tuple[str, ...] = ()

    @property
    def expression(self) -> str:
        """Gives the type."""
        if self.column is None:
            return f"'{next(iter(self.rows))}'"
        if self.is_own:
            return self.column.expression
        branches = (f"when {_condition(self.column, values)} then '{kind}'" for kind, values in self._values())
        other = f" else '{ACTIVITY}'" if ACTIVITY in self.rows else ""
        return f"case {' '.join(branches)}{other} end"

    @property
    def is_own(self) -> bool:
        """Whether the values are those of adloom."""
        return self.column is not None and self.column.distinct <= set(EVENT_TYPES)

    def when(self, kind: str) -> str:
        """The condition for the records of a type; empty for those that no other condition fits."""
        if self.column is None:
            return ""
        by_kind = dict(self._values())
        return _condition(self.column, by_kind[kind]) if kind in by_kind else ""

    def _values(self) -> list[tuple[str, list[str]]]:
        found = defaultdict(list)
        for value, kind in self.by_value.items():
            found[kind].append(value)
        return [(kind, found[kind]) for kind in EVENT_TYPES if kind in found]


def _condition(column: Column, values: list[str]) -> str:
    quoted = [f"'{value}'" for value in values]
    return f"{column.expression} = {quoted[0]}" if len(quoted) == 1 else f"{column.expression} in ({', '.join(quoted)})"


def find_event_types(profile: Profile) -> EventTypes | None:
    """How a column distinguishes the types; None: no column does."""
    best: tuple[float, Column, dict[str, str]] | None = None
    for column in profile.scalars:
        if column.share(profile.rows) < _MOSTLY or len(column.distinct) > _MAX_VALUES:
            continue
        by_value = _types_of(column)
        score = _score(column, set(by_value.values()))
        if score and (best is None or score > best[0]):
            best = score, column, by_value
    return _told_by(best[1], best[2], profile) if best else None


def _score(column: Column, kinds: set[str]) -> float:
    named = name_score(column.keys, names.TYPE)
    is_own = bool(column.distinct) and column.distinct <= set(EVENT_TYPES)
    if not kinds and not (is_own and named):
        return 0.0
    both = len(kinds) > 1
    return 10.0 * both + named + 5.0 * is_own if named or both else 0.0


def _types_of(column: Column) -> dict[str, str]:
    """The values that surely are impressions, clicks or conversions."""
    values = [value for value in column.counts if _PLAIN.fullmatch(value)]
    found = {value: kind for value in values if (kind := _type_of(set(words(value))))}
    letters = {value: kind for kind, letter in _LETTERS.items() for value in values if value.lower() == letter}
    if not found and len(set(letters.values())) > 1:
        found = letters
    for kind in (IMPRESSION, CLICK):
        # Next to ad_click, a click is one on something else.
        of_ads = [value for value, its in found.items() if its == kind and _OF_ADS & set(words(value))]
        found = {v: k for v, k in found.items() if k != kind or not of_ads or v in of_ads}
    both = len(set(found.values())) > 1
    return {v: k for v, k in found.items() if both or not set(words(v)) <= _AMBIGUOUS}


def _type_of(found: set[str]) -> str | None:
    for kind, means in ((IMPRESSION, _IMPRESSION), (CLICK, _CLICK), (CONVERSION, _CONVERSION)):
        if found & means and not found - means - _HARMLESS:
            return kind
    return None


def _told_by(column: Column, by_value: dict[str, str], profile: Profile) -> EventTypes:
    rows: dict[str, set[int]] = {kind: set() for kind in EVENT_TYPES}
    for row in profile.records:
        rows[by_value.get(column.values.get(row, ""), ACTIVITY)].add(row)
    shown = ", ".join(f'"{value}" {count:,}' for value, count in column.counts.most_common(_LISTED))
    more = len(column.counts) - _LISTED
    checks = []
    if rows[ACTIVITY] and not column.distinct <= set(EVENT_TYPES):
        checks.append(f"these count as activity: {_listed(column.distinct - by_value.keys(), column, profile)}")
    why = f"{column.expression} has {shown}{f' and {more} more values' if more > 0 else ''}"
    return EventTypes({k: found for k, found in rows.items() if found}, column, by_value, why, tuple(checks))


def _listed(values: Iterable[str], column: Column, profile: Profile) -> str:
    others = sorted(values, key=lambda value: (-column.counts[value], value))
    shown = [f'"{value}"' for value in others[:_LISTED]]
    if len(others) > _LISTED:
        shown.append(f"{len(others) - _LISTED} more values")
    if missing := profile.rows - len(column.given):
        shown.append(f"{missing:,} records without a value")
    return ", ".join(shown)
