"""Records in the order of their arrival, made in another order."""

from collections import defaultdict
from collections.abc import Iterable

_SLOT = 10_000_000


class ReorderBuffer:
    """Holds records until nothing can arrive before them any more.

    Records lie in slots of ten seconds and a slot is sorted when it is given out: cheaper than a heap, whose every
    step compares tuples all over memory. Memory: the records between the oldest held and the newest, nothing else.
    """

    def __init__(self, begin: int) -> None:
        self._slots: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        self._next = begin // _SLOT
        self._held = 0

    def __len__(self) -> int:
        """How many records are held."""
        return self._held

    def push(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Take in ``records``, as (arrival in microseconds since 1970, line)."""
        slots, taken = self._slots, 0
        for record in records:
            slots[record[0] // _SLOT].append(record)
            taken += 1
        self._held += taken

    def pop_before(self, moment: int) -> list[bytes]:
        """Give out, in order of arrival, the lines of all whole slots that end before ``moment``."""
        lines: list[bytes] = []
        for slot in range(self._next, moment // _SLOT):
            self._give_out(slot, lines)
        self._next = max(self._next, moment // _SLOT)
        return lines

    def pop_all(self) -> list[bytes]:
        """Give out what is left, in order of arrival."""
        lines: list[bytes] = []
        for slot in sorted(self._slots):
            self._give_out(slot, lines)
        return lines

    def _give_out(self, slot: int, lines: list[bytes]) -> None:
        records = self._slots.pop(slot, None)
        if records:
            records.sort()
            self._held -= len(records)
            lines.extend([line for _, line in records])
