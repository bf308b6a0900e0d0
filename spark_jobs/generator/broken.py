"""Records that each break one rule, and the verdict each must get."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from spark_jobs.contract import events

OVERLONG = 200
"""Length of an overlong id, in characters."""


@dataclass(frozen=True)
class Surroundings:
    """The values that a broken record shares with the traffic around it, plus its own id."""

    event_id: str
    event_time: str
    user_id: str


Maker = Callable[[Random, Surroundings], bytes]
"""Returns the record, without a line end."""


@dataclass(frozen=True)
class Broken:
    """A way to break a record: the function that makes it, and the verdict it must get."""

    verdict: str
    make: Maker


def _impression(around: Surroundings) -> dict[str, object]:
    return {
        "event_type": events.IMPRESSION,
        "event_id": around.event_id,
        "event_time": around.event_time,
        "user_id": around.user_id,
        "campaign_id": "c-01",
        "ad_id": "c-01-a1",
        "cost_micros": 1200,
    }


def _text(record: object) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def _whole(around: Surroundings) -> bytes:
    return _text(_impression(around))


def _without(field: str) -> Maker:
    def make(_: Random, around: Surroundings) -> bytes:
        record = _impression(around)
        del record[field]
        return _text(record)

    return make


def _with(field: str, *values: object) -> Maker:
    """``field`` gets one of ``values``."""

    def make(rng: Random, around: Surroundings) -> bytes:
        return _text(_impression(around) | {field: rng.choice(values)})

    return make


def _truncated(rng: Random, around: Surroundings) -> bytes:
    whole = _whole(around)
    return whole[: rng.randrange(1, len(whole))]


def _array(_: Random, around: Surroundings) -> bytes:
    return b"[" + _whole(around) + b"]"


def _scalar(rng: Random, around: Surroundings) -> bytes:
    return rng.choice((_text(around.event_id), b"42", b"true", b"null", b"-1.5e3"))


def _overlong_id(_: Random, around: Surroundings) -> bytes:
    return _text(_impression(around) | {"event_id": around.event_id.ljust(OVERLONG, "x")})


def _in_user_id(*fragments: bytes) -> Maker:
    """Puts one of ``fragments``, unescaped, into the middle of the user id."""

    def make(rng: Random, around: Surroundings) -> bytes:
        user = around.user_id.encode()
        return _whole(around).replace(user, user[:3] + rng.choice(fragments) + user[3:])

    return make


def _duplicate_key(rng: Random, around: Surroundings) -> bytes:
    again = rng.choice((b'"user_id":"u-999999"', b'"cost_micros":0', _text({"event_id": around.event_id})[1:-1]))
    return _whole(around)[:-1] + b"," + again + b"}"


BROKEN: dict[str, Broken] = {
    "truncated": Broken(events.MALFORMED_JSON, _truncated),
    "array_root": Broken(events.NOT_AN_OBJECT, _array),
    "scalar_root": Broken(events.NOT_AN_OBJECT, _scalar),
    "missing_event_id": Broken(events.missing("event_id"), _without("event_id")),
    "null_user_id": Broken(events.missing("user_id"), _with("user_id", None)),
    "empty_campaign_id": Broken(events.invalid("campaign_id"), _with("campaign_id", "")),
    "object_event_id": Broken(events.invalid("event_id"), _with("event_id", {"id": 1}, {})),
    "unparsable_event_time": Broken(
        events.invalid("event_time"),
        _with("event_time", "yesterday", "06/01/2025 12:00", "2025-01-06T12:00:00", "2025-02-30T12:00:00Z"),
    ),
    "epoch_event_time": Broken(events.invalid("event_time"), _with("event_time", 1736164800000, 1736164800)),
    "event_time_in_2099": Broken(events.EVENT_TIME_IN_FUTURE, _with("event_time", "2099-01-01T00:00:00Z")),
    "event_time_in_9999": Broken(events.EVENT_TIME_IN_FUTURE, _with("event_time", "9999-12-31T23:59:59.999999Z")),
    "negative_cost": Broken(events.invalid("cost_micros"), _with("cost_micros", -1, -250_000)),
    "fractional_cost": Broken(events.invalid("cost_micros"), _with("cost_micros", 0.5, 1200.25)),
    "twenty_digit_cost": Broken(events.invalid("cost_micros"), _with("cost_micros", 12345678901234567890)),
    "unknown_event_type": Broken(
        events.invalid("event_type"), _with("event_type", "view", "Impression", events.HEARTBEAT)
    ),
    "is_last_as_text": Broken(events.invalid("is_last"), _with("is_last", "true", "yes")),
    "overlong_event_id": Broken(events.invalid("event_id"), _overlong_id),
    "nan_cost": Broken(events.MALFORMED_JSON, _with("cost_micros", float("nan"))),
    "nul_byte": Broken(events.MALFORMED_JSON, _in_user_id(b"\x00")),
    "invalid_utf8": Broken(events.INVALID_UTF8, _in_user_id(b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80")),
    "duplicate_key": Broken(events.DUPLICATE_KEY, _duplicate_key),
}
"""Every way to break a record, by the name used in the summary."""


class BrokenRecords:
    """Makes broken records, using every way equally often; ``made`` counts them by name."""

    def __init__(self, rng: Random) -> None:
        self.made = dict.fromkeys(BROKEN, 0)
        self._rng = rng
        self._deck: list[str] = []

    def next(self, around: Surroundings) -> bytes:
        """The next broken record, without a line end."""
        if not self._deck:
            self._deck = list(BROKEN)
            self._rng.shuffle(self._deck)
        name = self._deck.pop()
        self.made[name] += 1
        return BROKEN[name].make(self._rng, around)
