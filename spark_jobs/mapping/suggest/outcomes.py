"""Columns that say whether an impression was clicked, or led to a conversion: rows that are several events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from spark_jobs.contract.events import CLICK, CONVERSION
from spark_jobs.mapping.suggest import names
from spark_jobs.mapping.suggest.conversions import conversion_fields
from spark_jobs.mapping.suggest.draft import DraftField
from spark_jobs.mapping.suggest.fields import GOOD_NAME, NEARLY_ALL, described
from spark_jobs.mapping.suggest.ids import id_field, own_ids
from spark_jobs.mapping.suggest.names import Names, all_words, name_score
from spark_jobs.mapping.suggest.profile import Column, Profile
from spark_jobs.mapping.suggest.times import TimeReading

_NAMES: Mapping[str, Names] = {CLICK: names.CLICKED, CONVERSION: names.CONVERTED}
_YES, _NO = ("1", "true", "yes", "y", "t"), {"0", "false", "no", "n", "f"}
_SHARED = ("event_id", "event_time", "user_id", "ip", "user_agent")
"""The fields that an outcome has of its row."""
_OF_ROW = "that of the row: it has no other"


@dataclass(frozen=True)
class Outcome:
    """A column that is yes in rows that are also another event.

    Attributes:
        kind: a click or a conversion.
        column: which.
        yes: its value that means so.
    """

    kind: str
    column: Column
    yes: str

    @property
    def when(self) -> str:
        """The condition of the rows that are so."""
        return f"{self.column.expression} = '{self.yes}'"

    @property
    def rows(self) -> set[int]:
        """The records that are so."""
        return {row for row, value in self.column.values.items() if value == self.yes}

    def is_named_by(self, column: Column) -> bool:
        """Whether ``column`` is about it by its name, as ``click_time``."""
        return bool(all_words(column.keys) & _NAMES[self.kind].keys())


def find_outcomes(profile: Profile) -> list[Outcome]:
    """For a click and for a conversion, the column that says whether a record also was one, if one does."""
    found = []
    for kind, known in _NAMES.items():
        flags = [Outcome(kind, one, yes) for one in profile.scalars if (yes := _yes_of(one, profile.rows))]
        best = max(flags, key=lambda one: name_score(one.column.keys, known), default=None)
        if best and name_score(best.column.keys, known) >= GOOD_NAME:
            found.append(best)
    return found


def _yes_of(column: Column, rows: int) -> str:
    """The value of a column that means yes, where other values, or none, mean no; else the empty text."""
    yes = [value for value in column.distinct if value.lower() in _YES]
    is_flag = len(yes) == 1 and all(value.lower() in _NO for value in column.distinct - set(yes))
    return yes[0] if is_flag and column.counts[yes[0]] < rows else ""


def outcome_fields(
    outcome: Outcome, group: Profile, row: Mapping[str, DraftField], readings: Mapping[str, TimeReading]
) -> dict[str, DraftField]:
    """The fields of a click or conversion that is in a row of another event.

    Args:
        outcome: which.
        group: its records.
        row: the fields of the other event.
        readings: by column, how it is a time.
    """
    taken = {column for one in row.values() for column in one.columns} | {outcome.column.expression}
    fields = {name: replace(row[name], why=_OF_ROW, checks=()) for name in _SHARED if name in row}
    if outcome.kind == CLICK and "event_id" in fields:
        fields["impression_id"] = fields["event_id"]
    if named := [one for one in own_ids(outcome.kind, group, readings, taken) if one.score >= GOOD_NAME]:
        fields["event_id"] = id_field(named[0].column, [group], group)
        taken.add(named[0].column.expression)
    if own := next(_own_times(outcome, group, readings), None):
        fields["event_time"] = own
    elif "event_time" in fields:
        checks = (f"the {outcome.kind} has no time of its own, so it counts as of the time of its row",)
        fields["event_time"] = replace(fields["event_time"], checks=checks)
    if outcome.kind == CONVERSION:
        fields |= _of_conversion(group, taken)
    return fields


def _own_times(outcome: Outcome, group: Profile, readings: Mapping[str, TimeReading]) -> Iterator[DraftField]:
    for name, reading in readings.items():
        column = group.columns.get(name)
        if (
            column
            and outcome.is_named_by(column)
            and len(reading.rows & group.records.keys()) >= NEARLY_ALL * group.rows
        ):
            yield DraftField(
                reading.expression, described(column, group), tuple(filter(None, [reading.check])), (name,)
            )


def _of_conversion(group: Profile, taken: set[str]) -> dict[str, DraftField]:
    found = {name: one for name, one in conversion_fields(group, taken).items() if one}
    found.setdefault("conversion_type", DraftField("'conversion'", "no column names what was done"))
    if "value_micros" not in found:
        check = ("what is a conversion worth? It counts with a value of 0",)
        found["value_micros"] = DraftField("0", "no column reads like a value", check)
    return found
