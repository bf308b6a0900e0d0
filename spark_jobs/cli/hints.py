"""Hints from valid records together: ids, times and orders that show a missing setting or a wrong mapping."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from spark_jobs.config.durations import format_duration, milliseconds
from spark_jobs.contract.events import CLICK, CONVERSION, IMPRESSION, MICROS
from spark_jobs.ingest.in_python.event_rules import lowered

_MOMENT = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_MANY_YEARS = timedelta(days=50 * 365)
_ENOUGH = 20
"""Events from which on a share of them, or the time that they span, means something."""
_OFTEN = 0.2
"""The share of the events from which on one user is suspected to be many."""
_SAME_NUMBER = 3
"""From this number of users on, an order id is more likely a number that means nothing than an order."""


@dataclass(frozen=True)
class Hint:
    """Something that many a mapping gets wrong: how many events show it, an example, and what to do."""

    events: int
    example: dict[str, Any]
    sentence: str


@dataclass
class Together:
    """The valid events so far; only what hints need is kept of them."""

    tolerance: timedelta = timedelta()
    """``attribute.tolerance``."""
    memory: timedelta | None = None
    """How far apart copies of an event may lie, ``deduplicate.watermark``; None: any far."""
    _impressions: dict[str, datetime] = field(default_factory=dict)
    _clicks: list[tuple[str, datetime]] = field(default_factory=list)
    _orders: dict[str, Counter[str]] = field(default_factory=dict)
    _first: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    _others: list[tuple[tuple[str, str], list[str]]] = field(default_factory=list)
    _repeated: list[tuple[timedelta, tuple[str, str]]] = field(default_factory=list)
    _users: Counter[str] = field(default_factory=Counter)
    _currencies: Counter[str] = field(default_factory=Counter)
    _amounts: dict[str, list[int]] = field(default_factory=dict)
    _times: list[datetime] = field(default_factory=list)

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes in an event."""
        kind, time = event["event_type"], event["event_time"]
        if kind == IMPRESSION:
            self._impressions[event["event_id"]] = time
        elif kind == CLICK and event["impression_id"] is not None:
            self._clicks.append((event["impression_id"], time))
        elif kind == CONVERSION and event["order_id"] is not None and event["revokes"] is None:
            self._orders.setdefault(event["order_id"], Counter())[str(event["user_id"])] += 1
        self._times.append(time)
        self._users.update(filter(None, [event["user_id"]]))
        self._currencies.update(filter(None, [event["currency"]]))
        for name in MICROS:
            if event[name] is not None:
                self._amounts.setdefault(name, []).append(event[name])
        key = kind, event["event_id"]
        if key in self._first:
            self._repeated.append((abs(time - self._first[key]["event_time"]), key))
        first = self._first.setdefault(key, event)
        if differing := [name for name, value in event.items() if name != "data" and first.get(name) != value]:
            self._others.append((key, differing))

    def hints(self) -> dict[str, Hint | None]:
        """By name, each hint; None: nothing shows it."""
        return {
            "other_case": self._other_case(),
            "early_clicks": self._early_clicks(),
            "other_contents": self._other_contents(),
            "shared_orders": self._shared_orders(),
            "repeated_ids": self._repeated_ids(),
            "unknown_impressions": self._unknown_impressions(),
            "frequent_user": self._frequent_user(),
            "times": self._odd_times(),
            "currencies": self._several_currencies(),
        }

    def amounts(self) -> dict[str, tuple[int, int, int]]:
        """By field that is money, its smallest, median and largest value."""
        found = {name: sorted(values) for name, values in self._amounts.items()}
        return {name: (values[0], values[len(values) // 2], values[-1]) for name, values in found.items()}

    def _repeated_ids(self) -> Hint | None:
        if not self._repeated:
            return None
        far, (kind, event_id) = max(self._repeated)
        number = len(self._repeated)
        means = "copies count once"
        if self.memory is not None and far > self.memory:
            means = f"those further apart than deduplicate.watermark, {format_duration(self.memory)}, count as others"
        return Hint(
            number,
            {"event_type": kind, "event_id": event_id, "apart_s": round(far.total_seconds())},
            f"{_events(number)} the id of an earlier one, by up to {_length(far)} apart ({kind} {event_id}): {means}",
        )

    def _unknown_impressions(self) -> Hint | None:
        unknown = [one for one, _ in self._clicks if one not in self._impressions]
        if not unknown or not self._impressions:
            return None
        return Hint(
            len(unknown),
            {"impression_id": unknown[0]},
            f"{_clicks(len(unknown), 'names', 'name')} an impression that is not among these records, of "
            f"{len(self._clicks):,} clicks, such as {unknown[0]}; if it never comes, the click is an orphan",
        )

    def _frequent_user(self) -> Hint | None:
        total = self._users.total()
        if total < _ENOUGH or len(self._users) == 1:
            return None
        ((user, count),) = self._users.most_common(1)
        if count < _OFTEN * total:
            return None
        return Hint(
            count,
            {"user_id": user},
            f'{count:,} of {total:,} events with a user are of "{user}" ({count / total:.0%}); if that means nobody, '
            "add it to ingest.nobody",
        )

    def _odd_times(self) -> Hint | None:
        if len(self._times) < _ENOUGH:
            return None
        first, last = min(self._times), max(self._times)
        if _SECOND <= last - first <= _MANY_YEARS:
            return None
        what = "all events lie within one second" if last - first < _SECOND else "the events span more than 50 years"
        return Hint(
            len(self._times),
            {"first": first.isoformat(), "last": last.isoformat()},
            f"{what}, from {_shown(first)} to {_shown(last)}; is event_time mapped from the right field, and unit?",
        )

    def _several_currencies(self) -> Hint | None:
        if len(self._currencies) <= 1:
            return None
        shown = ", ".join(f"{code} {count:,}" for code, count in self._currencies.most_common(_SAME_NUMBER))
        return Hint(
            self._currencies.total(),
            {"currencies": dict(self._currencies.most_common())},
            f"amounts are in {len(self._currencies)} currencies ({shown}), and never added across them; if they come "
            "in the smallest unit, use micros_of_minor, since not every currency has hundredths",
        )

    def _other_case(self) -> Hint | None:
        ids = {lowered(one): one for one in self._impressions}
        found = [one for one, _ in self._clicks if one not in self._impressions and lowered(one) in ids]
        if not found:
            return None
        named, own = found[0], ids[lowered(found[0])]
        return Hint(
            len(found),
            {"impression_id": named, "event_id": own},
            f"{_clicks(len(found), 'names', 'name')} an impression of these records in another case, such as {named} "
            f"for {own}, and will not find it; set ingest.lower_ids = true",
        )

    def _early_clicks(self) -> Hint | None:
        early = [(by, impression) for impression, by in self._early()]
        if not early:
            return None
        longest, shown = max(early)
        return Hint(
            len(early),
            {"impression_id": shown, "early_ms": milliseconds(longest)},
            f"{_clicks(len(early), 'comes before its', 'come before their')} impression, by up to "
            f"{milliseconds(longest):,} ms ({shown}), and will not count; if two clocks differ, set "
            f"attribute.tolerance, now {format_duration(self.tolerance)}",
        )

    def _early(self) -> Iterator[tuple[str, timedelta]]:
        for impression, time in self._clicks:
            shown = self._impressions.get(impression)
            if shown is not None and self.tolerance < shown - time <= _MOMENT:
                yield impression, shown - time

    def _other_contents(self) -> Hint | None:
        if not self._others:
            return None
        (kind, event_id), differing = self._others[0]
        number = len(self._others)
        return Hint(
            number,
            {"event_type": kind, "event_id": event_id, "differing": differing},
            f"{number:,} {'event has' if number == 1 else 'events have'} the id of an earlier event, such as {kind} "
            f"{event_id} (with another {', '.join(differing)}); the later one counts as a copy, so map an id that is "
            "unique",
        )

    def _shared_orders(self) -> Hint | None:
        shared = {order: users for order, users in self._orders.items() if len(users) >= _SAME_NUMBER}
        if not shared:
            return None
        order, users = max(shared.items(), key=lambda one: one[1].total())
        number = sum(one.total() for one in shared.values())
        return Hint(
            number,
            {"order_id": order, "conversions": users.total(), "users": len(users)},
            f'{number:,} conversions share an order_id with those of other users, such as "{order}" ({users.total():,} '
            f"conversions of {len(users):,} users), and may count as repeats; map an order number, or none",
        )


def _events(number: int) -> str:
    return "1 event has" if number == 1 else f"{number:,} events have"


def _length(time: timedelta) -> str:
    return format_duration(timedelta(seconds=round(time.total_seconds())))


def _shown(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _clicks(number: int, one: str, several: str) -> str:
    return f"1 click {one}" if number == 1 else f"{number:,} clicks {several}"
