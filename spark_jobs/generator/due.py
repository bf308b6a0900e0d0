"""Events that are planned ahead of the visits: conversions, and what bots do."""

import heapq
from collections.abc import Iterator
from typing import NamedTuple


class Planned(NamedTuple):
    """An event to come.

    Attributes:
        moment: its time, in microseconds since 1970.
        line: the event as a line, line end included.
        event_type: its type.
        kind: what it is among those of its type, for the counters; empty: nothing special.
        label: the line of the labels that says which bot made it; empty: no bot did.
    """

    moment: int
    line: bytes
    event_type: str
    kind: str = ""
    label: bytes = b""


class Due:
    """Planned events, taken in order of time."""

    def __init__(self) -> None:
        self._planned: list[Planned] = []

    def add(self, planned: Planned) -> None:
        """Adds an event that is not earlier than what was taken."""
        heapq.heappush(self._planned, planned)

    def next_before(self, moment: int) -> Iterator[Planned]:
        """The events up to ``moment`` that were not taken yet."""
        while self._planned and self._planned[0].moment <= moment:
            yield heapq.heappop(self._planned)
