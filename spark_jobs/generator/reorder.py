"""Sorts records by arrival as they are generated."""

from collections import defaultdict
from collections.abc import Iterable

_SLOT = 10_000_000


class ReorderBuffer:
    """Holds records until nothing can arrive before them any more.

    Records are kept in ten-second slots, and a slot is sorted when it is popped. That is cheaper than a heap, which
    compares tuples all over memory at every step. Memory: only the records between the oldest held and the newest.
    """

    def __init__(self, begin: int) -> None:
        self._slots: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        self._next = begin // _SLOT
        self._held = 0

    def __len__(self) -> int:
        """How many records are held."""
        return self._held

    def push(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Adds ``records``, as (arrival in microseconds since 1970, line)."""
        slots, taken = self._slots, 0
        for record in records:
            slots[record[0] // _SLOT].append(record)
            taken += 1
        self._held += taken

    def pop_before(self, moment: int) -> list[bytes]:
        """Removes and returns, in order of arrival, the lines of all complete slots that end before ``moment``."""
        lines: list[bytes] = []
        for slot in range(self._next, moment // _SLOT):
            self._pop_slot(slot, lines)
        self._next = max(self._next, moment // _SLOT)
        return lines

    def pop_all(self) -> list[bytes]:
        """Removes and returns the remaining lines, in order of arrival."""
        lines: list[bytes] = []
        for slot in sorted(self._slots):
            self._pop_slot(slot, lines)
        return lines

    def _pop_slot(self, slot: int, lines: list[bytes]) -> None:
        records = self._slots.pop(slot, None)
        if records:
            records.sort()
            self._held -= len(records)
            lines.extend([line for _, line in records])
