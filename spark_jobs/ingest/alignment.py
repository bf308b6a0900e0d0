"""How far silver may read bronze while there is a backlog: no event moves time past an origin that lags behind.

::

    origin      read so far    unread
    imps/0      00:00 … 02:24  02:24 … 12:00    the slowest: the frontier is 02:24
    imps/1      00:00 … 02:31  02:31 … 12:00    02:24 … 02:31 is held back in bronze
    convs/0     11:59          none             at its end: it holds nothing back, and 11:59 itself waits

*Origin*: whatever keeps its records in order: a partition of a topic, or a file. *Frontier*: the least, over the
origins that have unread records, of the newest event read from each; of a file that is not read yet, its first. Events
up to it go to silver; later ones wait in bronze, until the frontier has come to them. So silver's watermark lies behind
the slowest origin, and an event is late only if it is late within its own.

Without a backlog every origin is at its end, and nothing is held back.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from spark_jobs.lake.notes import EVERYTHING, NOTHING

STEP_US: Final = 3_600_000_000
"""Events that are held back are counted by this step of event time."""


@dataclass(frozen=True)
class Taken:
    """The records that a batch of ``ingest`` has taken, by origin; times are in microseconds since 1970.

    ``newest``: the newest event; of a file that is not read yet, its first. ``rows``: how many events there are from
    each multiple of ``STEP_US`` on. ``unread``: the origins with more to read.
    """

    newest: Mapping[str, int]
    rows: Mapping[int, int]
    unread: Collection[str] = ()


@dataclass
class Alignment:
    """Where the frontier is. A new one holds nothing back until the first batch."""

    rows_at_once: int
    """The rows that go to silver in one batch, as nearly as whole steps allow, where the frontier moves far."""
    frontier_us: int = EVERYTHING
    _newest: dict[str, int] = field(default_factory=dict)
    _held: dict[int, int] = field(default_factory=dict)

    def advance(self, taken: Taken) -> list[int]:
        """Moves the frontier after a batch.

        Returns:
            The way to the new frontier, which is the last: a batch of silver reads up to one of them after the other.
        """
        for origin, time_us in taken.newest.items():
            self._newest[origin] = max(time_us, self._newest.get(origin, time_us))
        last = self.frontier_us
        self.frontier_us = self._slowest(taken)
        if last != EVERYTHING:
            # What has gone to silver does not come back.
            self.frontier_us = max(self.frontier_us, last)
        for step, rows in taken.rows.items():
            self._held[step] = self._held.get(step, 0) + rows
        steps = self._steps() if last != EVERYTHING else []
        self._held = {step: rows for step, rows in self._held.items() if step + STEP_US > self.frontier_us}
        return [*steps, self.frontier_us]

    def _slowest(self, taken: Taken) -> int:
        # The next event of an origin that has given none may be of any time.
        return min((self._newest.get(one, NOTHING) for one in taken.unread), default=EVERYTHING)

    def _steps(self) -> list[int]:
        """The frontiers in between that spread what was held back over batches."""
        found, rows = [], 0
        for step, count in sorted(self._held.items()):
            if rows and rows + count > self.rows_at_once and step < self.frontier_us:
                found.append(step - 1)
                rows = 0
            rows += count
        return found
