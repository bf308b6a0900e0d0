"""Which columns identify events, and which one of a click names its impression."""

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from spark_jobs.contract.events import CLICK, CONVERSION, IMPRESSION
from spark_jobs.mapping.suggest import names
from spark_jobs.mapping.suggest.draft import DraftField
from spark_jobs.mapping.suggest.fields import NEARLY_ALL, Scored, described, field_of, is_id_like
from spark_jobs.mapping.suggest.names import name_score
from spark_jobs.mapping.suggest.profile import Column, Profile
from spark_jobs.mapping.suggest.times import TimeReading

_NEARLY_UNIQUE = 0.9
_UNIQUE = 0.999
_SURE_NAME = 7.0
_LINKED = 0.5
_SHORT = 6
_MAX_PARTS = 6
_MAX_TRIED = 60
_MIN_GAIN = 0.001
_LOOKS_LIKE_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-fA-F]{16,64}|[0-9A-HJKMNP-TV-Z]{26}")


@dataclass(frozen=True)
class Link:
    """A column of clicks whose values are ids of impressions.

    Attributes:
        score: how well it fits.
        click: the column of the clicks.
        impression: the column of the impressions, which identifies them.
        share: of the values of the clicks, those that are ids of impressions in the sample.
    """

    score: float
    click: Column
    impression: Column
    share: float


def find_link(groups: Mapping[str, Profile], readings: Mapping[str, TimeReading]) -> Link | None:
    """The best link between clicks and impressions; None: there are not both, or no values are the same."""
    if CLICK not in groups or IMPRESSION not in groups:
        return None
    shown = [
        one for one in _identifying(groups[IMPRESSION], readings) if one.share(groups[IMPRESSION].rows) >= NEARLY_ALL
    ]
    best: Link | None = None
    for click in groups[CLICK].scalars:
        if not is_id_like(click) or click.expression in readings or not click.distinct:
            continue
        for impression in shown:
            link = _link(click, impression)
            if link and (best is None or link.score > best.score):
                best = link
    return best


def _link(click: Column, impression: Column) -> Link | None:
    share = len(click.distinct & impression.distinct) / len(click.distinct)
    named = name_score(click.keys, names.IMPRESSION_ID)
    is_trivial = all(len(value) < _SHORT and value.isdigit() for value in click.distinct)
    if share < _LINKED or (is_trivial and not named):
        return None
    own = max(name_score(impression.keys, names.EVENT_ID), name_score(impression.keys, names.IMPRESSION_ID))
    return Link(10 * share + named + own, click, impression, share)


def _identifying(group: Profile, readings: Mapping[str, TimeReading]) -> list[Column]:
    """Columns that nearly all records have, and that hardly ever repeat a value."""
    return [
        column
        for column in group.scalars
        if column.share(group.rows) >= NEARLY_ALL
        and column.uniqueness >= _NEARLY_UNIQUE
        and column.expression not in readings
        and is_id_like(column)
    ]


def own_ids(kind: str, group: Profile, readings: Mapping[str, TimeReading], taken: AbstractSet[str]) -> list[Scored]:
    """The columns that may identify the events of a type, the best one first."""
    of_type = {IMPRESSION: names.IMPRESSION_ID, CLICK: names.CLICK_ID, CONVERSION: names.CONVERSION_ID}
    typed = of_type.get(kind, names.EVENT_ID)
    found = []
    for column in _identifying(group, readings):
        score = max(name_score(column.keys, names.EVENT_ID), name_score(column.keys, typed))
        if name_score(column.keys, names.USER_ID) > score or column.expression in taken:
            continue
        looks = sum(bool(_LOOKS_LIKE_ID.fullmatch(value)) for value in column.examples(100))
        if not score and column.uniqueness >= _UNIQUE and looks >= _NEARLY_UNIQUE * len(column.examples(100)):
            score = 2.0
        if score:
            found.append(Scored(score - 5 * (1 - column.uniqueness), column))
    return sorted(found, key=lambda one: -one.score)


def id_field(column: Column, groups: Sequence[Profile], of: Profile) -> DraftField:
    """The id that a column is, for each of ``groups``, which ``of`` has together."""
    each = [column.within(group.records.keys()) for group in groups]
    checks = []
    if repeated := sum(len(one.given) - len(one.distinct) for one in each):
        checks.append(f"{repeated:,} records repeat the id of an earlier one, and will count as duplicates")
    return field_of([column], of, checks)


def derived_id(group: Profile, first: Iterable[str]) -> DraftField:
    """A hash over what makes records distinct: the columns ``first``, and those that add most to them."""
    parts = [group.columns[name] for name in dict.fromkeys(first) if name in group.columns]
    rows = list(group.records)
    keys: list[tuple[str, ...]] = [tuple(one.values.get(row, "") for one in parts) for row in rows]
    count = len(set(keys))
    # The fewest columns that are enough; what adds most comes first.
    others = [one for one in group.scalars if not one.is_derived and one not in parts and len(one.distinct) > 1]
    others = sorted(others, key=lambda one: -len(one.distinct))[:_MAX_TRIED]
    while count < _UNIQUE * len(rows) and others and len(parts) < _MAX_PARTS:
        counts = [len({(*key, one.values.get(row, "")) for key, row in zip(keys, rows, strict=True)}) for one in others]
        most = max(range(len(others)), key=counts.__getitem__)
        if counts[most] - count < max(1, _MIN_GAIN * len(rows)):
            break
        added = others.pop(most)
        parts, count = [*parts, added], counts[most]
        keys = [(*key, added.values.get(row, "")) for key, row in zip(keys, rows, strict=True)]
    if not parts or count < NEARLY_ALL * len(rows):
        check = "nothing in the records identifies them: records count as duplicates if they are the same throughout"
        return DraftField("sha2($, 256)", "no column and no few of them differ from record to record", (check,))
    return _hash(parts, count, group)


def _hash(parts: Sequence[Column], count: int, group: Profile) -> DraftField:
    texts = [one.expression if len(one.values) == group.rows else f"coalesce({one.expression}, '')" for one in parts]
    joined = ", '|', ".join(texts)
    whole = f"concat({joined})" if len(texts) > 1 else texts[0]
    names_of_parts = ", ".join(one.expression for one in parts)
    checks = [f"no record has an id of its own: those with the same {names_of_parts} are duplicates"]
    if repeated := group.rows - count:
        checks.append(f"{repeated:,} records repeat an earlier one in these, and will count as duplicates")
    why = f"{count:,} different in {group.rows:,} {group.of}"
    return DraftField(f"sha2({whole}, 256)", why, tuple(checks), tuple(one.expression for one in parts))


def impression_field(group: Profile, link: Link | None, taken: AbstractSet[str]) -> DraftField | None:
    """The impression that a click names."""
    if link:
        linked = f"{link.share:.1%} of its values are {link.impression.expression} of an impression in the sample"
        why = f"{described(link.click, group)}; {linked}"
        return DraftField(link.click.or_null, why, (), (link.click.expression,))
    found = [
        Scored(score, column)
        for column in group.scalars
        if (score := name_score(column.keys, names.IMPRESSION_ID)) >= _SURE_NAME
        and is_id_like(column)
        and column.expression not in taken
    ]
    if not found:
        return None
    best = max(found, key=lambda one: one.score * one.column.share(group.rows)).column
    check = "chosen by its name: no value is the id of an impression in this sample"
    return field_of([best], group, [check])
