"""Small worlds of adversarial events for property tests, drawn by hypothesis.

Times lie on, just before and just after the bounds of the gap (5 min) and the window (1 h) and tie often; ids tie
across types; events repeat and arrive in any order. A day ends in the middle. Many scenarios share one run, each under
a prefix.
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from spark_jobs.contract.events import CLICK, CONVERSION, EVENT_TYPES, IMPRESSION

Scenario = list[list[dict[str, Any]]]
"""The events of each file, in order of arrival, as they are written to JSON."""

FILES = 3
_BEGIN = datetime(2024, 5, 1, 23, 30)  # noqa: DTZ001 written out with a Z
_GAP, _WINDOW, _TICK = timedelta(minutes=5), timedelta(hours=1), timedelta(microseconds=1)
_OFFSETS = (
    timedelta(),
    _TICK,
    timedelta(milliseconds=1) - _TICK,
    _GAP - _TICK,
    _GAP,
    _GAP + _TICK,
    2 * _GAP,
    2 * _GAP + _TICK,
    _WINDOW / 2,
    _WINDOW - _TICK,
    _WINDOW,
    _WINDOW + _TICK,
    _WINDOW + _GAP,
)

_CONVERTED = st.sampled_from(
    (
        {"conversion_type": "signup", "value_micros": 0},
        {"conversion_type": "purchase", "value_micros": 7, "currency": "EUR", "order_id": "o1"},
        {"conversion_type": "purchase", "value_micros": 7, "currency": "EUR", "order_id": "o1", "revokes": "nobody"},
    )
)


@st.composite
def scenarios(draw: st.DrawFn, *, max_events: int = 8) -> Scenario:
    """One scenario of up to ``max_events`` events of two users, without a prefix."""
    files: Scenario = [[] for _ in range(FILES)]
    for _ in range(draw(st.integers(2, max_events))):
        kind = draw(st.sampled_from(EVENT_TYPES))
        same_kind = {event["event_id"] for file in files for event in file if event["event_type"] == kind}
        event: dict[str, Any] = {
            "event_type": kind,
            "event_id": f"e{len(same_kind)}",
            "event_time": (_BEGIN + draw(st.sampled_from(_OFFSETS))).isoformat() + "Z",
            "user_id": draw(st.sampled_from(("u0", "u0", "u1"))),
            "is_last": draw(st.sampled_from((False, False, True))),
        }
        if kind == IMPRESSION:
            event |= {"campaign_id": "c1", "ad_id": "ad1", "cost_micros": 7}
        elif kind == CLICK:
            event["impression_id"] = draw(st.sampled_from(("e0", "e0", "e1", "nobody")))
        elif kind == CONVERSION:
            event |= draw(_CONVERTED)
        elif draw(st.booleans()):
            event["data"] = ""
        for copy in draw(st.sampled_from(((0,), (1,), (2,), (0, 0), (2, 1), (0, 1, 2)))):
            files[copy].append(event)
    return files


class World:
    """Scenarios that share a run. Not a dataclass, since hypothesis would print a hundred kilobytes of it."""

    def __init__(self, scenarios: list[Scenario]) -> None:
        self.scenarios = scenarios

    def __repr__(self) -> str:
        return f"<{len(self.scenarios)} scenarios; ids beginning with s007/ in a difference belong to scenarios[7]>"


@st.composite
def worlds(draw: st.DrawFn, size: int) -> World:
    """A world of ``size`` scenarios that are not mostly alike, as the first that hypothesis draws always are."""
    drawn = [draw(scenarios()) for _ in range(size)]
    assume(len({repr(scenario) for scenario in drawn}) > size // 2)
    return World(drawn)


def records_of(world: Sequence[Scenario]) -> list[list[bytes]]:
    """The records of each file when all scenarios of ``world`` run together, each under a prefix of its own."""
    merged = [
        [_prefixed(event, f"s{number:03}/") for number, file in parts for event in file]
        for parts in zip_longest(*([(number, file) for file in scenario] for number, scenario in enumerate(world)))
    ]
    return [[json.dumps(event).encode() for event in file] for file in merged]


def _prefixed(event: dict[str, Any], prefix: str) -> dict[str, Any]:
    ids = ("event_id", "user_id", "impression_id")
    return {name: prefix + value if name in ids else value for name, value in event.items()}
