"""Hints from valid records together: ids, times and orders that show a missing setting or a wrong mapping."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from spark_jobs.config.durations import format_duration, milliseconds
from spark_jobs.contract.events import CLICK, CONVERSION, IMPRESSION
from spark_jobs.ingest.in_python.event_rules import lowered

_MOMENT = timedelta(minutes=1)
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
    _impressions: dict[str, datetime] = field(default_factory=dict)
    _clicks: list[tuple[str, datetime]] = field(default_factory=list)
    _orders: dict[str, Counter[str]] = field(default_factory=dict)
    _first: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    _others: list[tuple[tuple[str, str], list[str]]] = field(default_factory=list)

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes in an event."""
        kind, time = event["event_type"], event["event_time"]
        if kind == IMPRESSION:
            self._impressions[event["event_id"]] = time
        elif kind == CLICK and event["impression_id"] is not None:
            self._clicks.append((event["impression_id"], time))
        elif kind == CONVERSION and event["order_id"] is not None and event["revokes"] is None:
            self._orders.setdefault(event["order_id"], Counter())[str(event["user_id"])] += 1
        key = kind, event["event_id"]
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
        }

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


def _clicks(number: int, one: str, several: str) -> str:
    return f"1 click {one}" if number == 1 else f"{number:,} clicks {several}"
