"""The fields of each type of event, chosen together: what fits all types comes before what is best for one."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from spark_jobs.contract.events import ACTIVITY, CLICK, CONVERSION, IMPRESSION
from spark_jobs.mapping.suggest import names
from spark_jobs.mapping.suggest.conversions import conversion_fields
from spark_jobs.mapping.suggest.devices import device_fields
from spark_jobs.mapping.suggest.draft import DraftField
from spark_jobs.mapping.suggest.fields import (
    NEARLY_ALL,
    Scored,
    cost_field,
    data_field,
    described,
    last_field,
    named_field,
    user_field,
)
from spark_jobs.mapping.suggest.ids import derived_id, find_link, id_field, impression_field, own_ids
from spark_jobs.mapping.suggest.names import all_words, time_score
from spark_jobs.mapping.suggest.profile import Profile
from spark_jobs.mapping.suggest.times import TimeReading, is_finer

_COMMON_SLACK = 2.0
_UNNAMED_TIME = 1.0
_NOT_THE_EVENT, _ONLY_A_DAY, _MISSING = 5.0, 4.0, 10.0
_MORE = 0.01
_LINKED_SCORE = 100.0


class Chooser:
    """Chooses the fields of a sample.

    Args:
        whole: all records.
        groups: by type, its records.
        readings: by column, how it is a time.
    """

    def __init__(self, whole: Profile, groups: Mapping[str, Profile], readings: Mapping[str, TimeReading]) -> None:
        self._whole, self._groups, self._readings = whole, groups, readings
        self._link = find_link(groups, readings)
        self.fields: dict[str, dict[str, DraftField]] = {kind: {} for kind in groups}
        """By type, what was found."""
        self.users: dict[str, AbstractSet[int]] = {}
        """By type, the records that have a user."""
        self._add_times()
        self._add_users()
        self._add_ids()
        self._add_devices()
        for kind in groups:
            self._add_own(kind)

    def _taken(self, kind: str) -> set[str]:
        fields = self.fields[kind].items()
        # An id that is made of several columns takes none of them away.
        return {column for name, one in fields if name != "event_id" or len(one.columns) == 1 for column in one.columns}

    def _add_times(self) -> None:
        common = self._time(self._whole)
        for kind, group in self._groups.items():
            covered = self._readings[common].rows if common else frozenset()
            is_common = len(covered & group.records.keys()) >= NEARLY_ALL * group.rows
            if best := common if is_common else self._time(group):
                self.fields[kind]["event_time"] = self._time_field(best)

    def _time_field(self, name: str) -> DraftField:
        reading, column = self._readings[name], self._whole.columns.get(name)
        checks = [reading.check] if reading.check else []
        if reading.is_day:
            checks.append("it says only the day: sessions and attributions need the time of day")
        why = described(column, self._whole) if column else "a day and a time of day"
        return DraftField(reading.expression, why, tuple(checks), (name,) if column else ())

    def _time(self, group: Profile) -> str | None:
        """The column that best says when an event happened."""
        scores: dict[str, float] = {}
        for name, reading in self._readings.items():
            keys = self._whole.columns[name].keys if name in self._whole.columns else ("time",)
            score = time_score(keys) or _UNNAMED_TIME
            score -= _NOT_THE_EVENT * bool(all_words(keys) & names.NOT_THE_EVENT) + _ONLY_A_DAY * reading.is_day
            scores[name] = score - _MISSING * (1 - len(reading.rows & group.records.keys()) / group.rows)
        if not scores:
            return None
        best = max(scores, key=scores.__getitem__)
        finer = (name for name in scores if is_finer(self._readings[name], self._readings[best], self._whole))
        return next(finer, best)

    def _add_users(self) -> None:
        common, covered = user_field(self._whole, self._readings)
        for kind, group in self._groups.items():
            field: DraftField | None = common
            rows: AbstractSet[int] = covered & group.records.keys()
            if len(self._groups) > 1 and len(rows) < NEARLY_ALL * group.rows:
                own, own_rows = user_field(group, self._readings)
                if len(own_rows) > len(rows) + _MORE * group.rows:
                    field, rows = own, own_rows
            if field:
                self.fields[kind]["user_id"] = field
            self.users[kind] = rows

    def _add_ids(self) -> None:
        if CLICK in self._groups:
            user = set(self.fields[CLICK]["user_id"].columns) if "user_id" in self.fields[CLICK] else set()
            if impression := impression_field(self._groups[CLICK], self._link, user):
                self.fields[CLICK]["impression_id"] = impression
        named = {kind: self._own_ids(kind) for kind in self._groups}
        common = _common_id(list(named.values()))
        together = None if any(named.values()) else derived_id(self._whole, self._first(next(iter(named))))
        for kind, group in self._groups.items():
            if common:
                groups = list(self._groups.values())
                self.fields[kind]["event_id"] = id_field(self._whole.columns[common], groups, self._whole)
            elif named[kind]:
                self.fields[kind]["event_id"] = id_field(named[kind][0].column, [group], group)
            else:
                self.fields[kind]["event_id"] = together or derived_id(group, self._first(kind))

    def _own_ids(self, kind: str) -> list[Scored]:
        if kind == IMPRESSION and self._link:
            return [Scored(_LINKED_SCORE, self._link.impression)]  # what clicks name is the id
        return own_ids(kind, self._groups[kind], self._readings, self._taken(kind))

    def _first(self, kind: str) -> list[str]:
        """The first parts of an id: who, what and when."""
        fields = self.fields[kind]
        return [
            column
            for name in ("impression_id", "user_id", "event_time")
            if name in fields
            for column in fields[name].columns
        ]

    def _add_devices(self) -> None:
        """Of all types together: a column that only some have says nothing of the others."""
        found = device_fields(self._whole)
        for fields in self.fields.values():
            fields.update(found)

    def _add_own(self, kind: str) -> None:
        """The fields that only this type has."""
        group, fields, taken = self._groups[kind], self.fields[kind], self._taken(kind)
        found: dict[str, DraftField | None] = {"is_last": last_field(group)}
        if kind == IMPRESSION:
            user = group.columns.get(fields["user_id"].columns[0]) if "user_id" in fields else None
            campaign = named_field(group, names.CAMPAIGN_ID, taken, user)
            ad = named_field(group, names.AD_ID, taken | set(campaign.columns if campaign else ()), user)
            found |= {"campaign_id": campaign, "ad_id": ad, "cost_micros": cost_field(group, taken)}
        elif kind == CONVERSION:
            found |= conversion_fields(group, taken)
        elif kind == ACTIVITY:
            found["data"] = data_field(group, taken)
        fields.update({name: field for name, field in found.items() if field})


def _common_id(named: Sequence[Sequence[Scored]]) -> str | None:
    """The id that is good enough for all types."""
    totals: dict[str, list[float]] = {}
    for found in named:
        for one in found:
            if one.score >= found[0].score - _COMMON_SLACK:
                totals.setdefault(one.column.expression, []).append(one.score)
    shared = {name: sum(scores) for name, scores in totals.items() if len(scores) == len(named)}
    return max(shared, key=shared.__getitem__) if shared else None
