"""The draft of a profile: which types of events there are, which column is which field, how many sources it takes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from spark_jobs.config.sources import FIELDS
from spark_jobs.contract.events import ACTIVITY, CLICK, CONVERSION, EVENT_TYPES, IMPRESSION, TYPE_FIELDS
from spark_jobs.mapping.paths import ListPath, parse_path
from spark_jobs.mapping.suggest import names
from spark_jobs.mapping.suggest.chooser import Chooser
from spark_jobs.mapping.suggest.derived import is_table, with_derived
from spark_jobs.mapping.suggest.draft import Draft, DraftField, SourceDraft
from spark_jobs.mapping.suggest.event_types import EventTypes, find_event_types
from spark_jobs.mapping.suggest.fields import NEARLY_ALL, described
from spark_jobs.mapping.suggest.names import name_score, time_score
from spark_jobs.mapping.suggest.outcomes import Outcome, find_outcomes, outcome_fields
from spark_jobs.mapping.suggest.profile import Column, Profile, profile_of_elements
from spark_jobs.mapping.suggest.times import TimeReading, read_pair, read_time

_LONG_EPOCH = 13
"""Digits of a time in milliseconds: a number that has fewer must be named like a time."""
_SURE_NAME, _GOOD_NAME = 8.0, 6.0
_SUFFIXES = {IMPRESSION: "shown", CLICK: "clicked", ACTIVITY: "other", CONVERSION: "converted"}
_CALLED = {IMPRESSION: "impressions", CLICK: "clicks", ACTIVITY: "other records", CONVERSION: "conversions"}
_NEEDED = {
    IMPRESSION: ("campaign_id", "ad_id"),
    CLICK: ("impression_id",),
    ACTIVITY: (),
    CONVERSION: ("conversion_type", "value_micros", "currency"),
}
"""Without a currency only conversions of no value are good."""
_NO_TIME = DraftField("$.event_time", "nothing in the records reads like a time", ("name the path of the time",))


def suggest(profile: Profile, name: str, now: datetime) -> Draft:
    """The draft for the records of ``profile``.

    Args:
        profile: of the sample.
        name: of the source; several sources get it as the beginning of theirs.
        now: events do not lie much later.
    """
    whole = with_derived(profile)
    types = find_event_types(whole)
    if not types and (outcomes := find_outcomes(whole)):
        return _draft(_joined(source_name(name), whole, outcomes, _readings(whole, now)), whole)
    types = types or _by_fields(whole)
    groups = {kind: whole.within(types.rows[kind], _CALLED[kind]) for kind in EVENT_TYPES if kind in types.rows}
    chosen = Chooser(whole, groups, _readings(whole, now))
    common = [
        {field: one.expression for field, one in fields.items() if field not in _OF_ONE_TYPE}
        for fields in chosen.fields.values()
    ]
    drafted = _one_source if all(one == common[0] for one in common) else _several_sources
    return _draft(drafted(source_name(name), types, chosen, groups), whole)


def _draft(sources: tuple[SourceDraft, ...], whole: Profile) -> Draft:
    """The draft; where it lacks a time, with what is to be done about a number that counts from another start."""
    counters = [one for one in whole.scalars if time_score(one.keys) and all(map(_is_whole, one.distinct))]
    if not counters:
        return Draft(sources)
    path = max(counters, key=lambda one: time_score(one.keys)).expression
    hint = f"if {path} counts seconds from a start of its own: timestamp_seconds({path} + START)"
    no_time = replace(_NO_TIME, checks=(*_NO_TIME.checks, hint))
    return Draft(
        tuple(
            replace(one, fields={**one.fields, "event_time": no_time}) if one.fields["event_time"] == _NO_TIME else one
            for one in sources
        )
    )


def _is_whole(value: str) -> bool:
    return value.isascii() and value.isdigit()


def suggest_for_elements(whole: Draft, profile: Profile, name: str, now: datetime) -> list[tuple[Draft, Profile]]:
    """For each list in records that may be one of events, the draft for its elements, and their profile.

    The draft ``whole`` for the records says which may be: it takes from there what happened, when, or which event it
    is.
    """
    found = []
    for column in lists_of_objects(profile):
        if not any(f"{column.expression}[0]" in text for one in whole.sources for text in _identity(one)):
            continue
        path = list_of(column)
        elements = profile_of_elements(profile, path)
        draft = suggest(elements, name, now)
        found.append((Draft(tuple(replace(one, each=str(path)) for one in draft.sources)), elements))
    return found


def lists_of_objects(profile: Profile) -> list[Column]:
    """The lists of several objects in records, without those that hold parameters by their names."""
    return [column for column in profile.lists if not is_table(column, profile)]


def list_of(column: Column) -> ListPath:
    """Where the elements of a list of objects lie; in a list within a list, those of all lists there."""
    return ListPath.over(parse_path(column.expression))


def _identity(source: SourceDraft) -> list[str]:
    """The expressions that say what happened, when, and which event it is."""
    named = [source.fields[name].expression for name in ("event_time", "event_id") if name in source.fields]
    return [source.event_type.expression, source.when, *named]


_OF_ONE_TYPE = {field for fields in TYPE_FIELDS.values() for field in fields}


def source_name(text: str) -> str:
    """``text`` as the name of a source: small letters, digits and ``_``."""
    name = re.sub("[^a-z0-9]+", "_", text.lower()).strip("_")
    return name if name[:1].isalpha() else f"events_{name}".rstrip("_")


def _readings(profile: Profile, now: datetime) -> dict[str, TimeReading]:
    """By column, how it is a time."""
    found: dict[str, TimeReading] = {}
    for column in profile.scalars:
        if _may_be_time(column) and (reading := read_time(column, profile, now)):
            found[column.expression] = reading
    if all(one.is_day for one in found.values()) and (pair := read_pair(profile.scalars, profile, now)):
        found[pair.expression] = pair
    return found


def _may_be_time(column: Column) -> bool:
    if time_score(column.keys):
        return True
    numbers = [value for value in column.examples(10) if value.replace(".", "", 1).isdigit()]
    return not column.is_derived and all(len(value) >= _LONG_EPOCH for value in numbers)


def _by_fields(profile: Profile) -> EventTypes:
    """The one type of all records, by the fields that they have."""
    is_click = _has(profile, names.CLICK_ID, _SURE_NAME) and _has(profile, names.IMPRESSION_ID, _SURE_NAME)
    is_impression = _has(profile, names.CAMPAIGN_ID, _GOOD_NAME) and _has(profile, names.AD_ID, _GOOD_NAME)
    kind, why = ACTIVITY, "no column has values that mean impression or click"
    if is_click:
        kind, why = CLICK, "no column has values that mean impression or click, but each record names both"
    elif is_impression:
        kind, why = (
            IMPRESSION,
            "no column has values that mean impression or click, but each record has campaign and ad",
        )
    return EventTypes({kind: set(profile.records)}, why=why, checks=(f"are all records of the type {kind}?",))


def _has(profile: Profile, known: names.Names, score: float) -> bool:
    return any(
        name_score(column.keys, known) >= score and column.share(profile.rows) >= NEARLY_ALL
        for column in profile.scalars
    )


def _one_source(
    name: str, types: EventTypes, chosen: Chooser, groups: Mapping[str, Profile]
) -> tuple[SourceDraft, ...]:
    fields = {field: one for found in chosen.fields.values() for field, one in found.items()}
    checks = [check for kind in groups for check in _missing(kind, chosen.fields[kind])]
    users = {row for rows in chosen.users.values() for row in rows}
    kind = DraftField(types.expression, types.why, types.checks)
    if all(one.expression == f"$.{field}" for field, one in fields.items()) and types.is_own:
        checks.append('these look like events in adloom\'s own format: format = "adloom" does the same without a map')
    rows = sum(group.rows for group in groups.values())
    return (_source(name, kind, fields, len(users), rows, tuple(checks)),)


def _several_sources(
    name: str, types: EventTypes, chosen: Chooser, groups: Mapping[str, Profile]
) -> tuple[SourceDraft, ...]:
    found = []
    # The rest has no condition, so it comes last.
    for kind, group in sorted(groups.items(), key=lambda item: item[0] == ACTIVITY):
        is_rest = kind == ACTIVITY
        event_type = DraftField(f"'{kind}'", types.why, types.checks if is_rest else ())
        fields, users = chosen.fields[kind], len(chosen.users[kind])
        one = _source_of(kind, name, event_type, fields, users, group.rows)
        found.append(one if is_rest else replace(one, when=types.when(kind)))
    return tuple(found)


def _joined(
    name: str, whole: Profile, outcomes: Sequence[Outcome], readings: Mapping[str, TimeReading]
) -> tuple[SourceDraft, ...]:
    """A source of rows that also say what became of what they are, and one for each outcome."""
    its_own = {
        column: one
        for column, one in readings.items()
        if column not in whole.columns or not any(it.is_named_by(whole.columns[column]) for it in outcomes)
    }
    (kind,) = [IMPRESSION] if any(one.kind == CLICK for one in outcomes) else _by_fields(whole).rows
    chosen = Chooser(whole, {kind: whole}, its_own)
    fields, users = chosen.fields[kind], chosen.users[kind]
    said = "; ".join(f"{one.column.expression} {described(one.column, whole)}" for one in outcomes)
    event_type = DraftField(f"'{kind}'", said, (f"is each row of the type {kind}?",))
    first = _source_of(kind, name, event_type, fields, len(users), whole.rows)
    found = []
    for one in outcomes:
        group = whole.within(one.rows, _CALLED[one.kind])
        own = outcome_fields(one, group, fields, readings)
        event_type = DraftField(f"'{one.kind}'", f"{group.rows:,} of {whole.rows:,} records")
        source = _source_of(one.kind, name, event_type, own, len(users & group.records.keys()), group.rows)
        found.append(replace(source, when=one.when))
    return (replace(first, also=tuple(one.name for one in found)), *found)


def _source_of(
    kind: str, name: str, event_type: DraftField, fields: Mapping[str, DraftField], users: int, rows: int
) -> SourceDraft:
    """The source of the events of one type."""
    return _source(f"{name}_{_SUFFIXES[kind]}", event_type, fields, users, rows, tuple(_missing(kind, fields)))


def _source(
    name: str, kind: DraftField, fields: Mapping[str, DraftField], users: int, rows: int, checks: tuple[str, ...]
) -> SourceDraft:
    given = {"event_time": _NO_TIME, **fields}
    in_order = {field: given[field] for field in FIELDS if field in given}
    if may_lack := users < NEARLY_ALL * rows or "user_id" not in fields:
        lacking = (
            f"{1 - users / rows:.1%} of the records have no user: may_lack accepts them, and they are in no session"
        )
        checks = (*checks, lacking if "user_id" in fields else "nothing in the records reads like a user")
    return SourceDraft(name, kind, in_order, may_lack_user=may_lack, checks=checks)


def _missing(kind: str, fields: Mapping[str, DraftField]) -> list[str]:
    return [
        f"nothing reads like the {field}, which every {kind} needs: name its path"
        for field in _NEEDED[kind]
        if field not in fields and not (field == "currency" and _is_worthless(fields))
    ]


def _is_worthless(fields: Mapping[str, DraftField]) -> bool:
    return "value_micros" in fields and fields["value_micros"].expression == "0"
