"""The batches of a table, and which of them can have moved the watermark before which."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate

REQUEUED = "requeued"
"""The label of rows that a requeue added to bronze. It is no verdict."""


@dataclass(frozen=True)
class Group:
    """The rows of a table that share a label and, in bronze and silver, a batch.

    ``table`` is ``bronze``, ``silver``, ``attributions`` or ``sessions``; ``label`` is the verdict (or
    :data:`REQUEUED`), status or ending, empty in silver; ``ingest_us`` and ``newest_us`` are the batch and its largest
    event time in microseconds since 1970, or 0 if there is none.
    """

    table: str
    label: str
    ingest_us: int
    newest_us: int
    rows: int


def newest_before(
    batches: Iterable[Group], requeues: Collection[int] = (), planned: Collection[int] = ()
) -> list[tuple[int, int | None]]:
    """For each batch (``ingest_us``) the largest event time (microseconds) of all batches that can lie before it.

    A batch lies after those of an earlier time. But a requeue takes its time before it commits, and meanwhile batches
    of ``ingest`` come and go:

    - It can lie before a batch of an earlier time, if that was at work still. It was not any more once the next batch
      of ``ingest`` was planned.
    - Every other batch can lie before a requeue.

    Args:
        batches: of one table; several may share a time.
        requeues: the times of the batches that are requeues.
        planned: the times of the batches of ``ingest``.

    Returns:
        The times, each once, and for each the largest event time before; None: there is nothing.
    """
    newest: dict[int, int] = {}
    for group in batches:
        newest[group.ingest_us] = max(group.newest_us, newest.get(group.ingest_us, group.newest_us))
    requeued, plan = sorted(newest.keys() & set(requeues)), sorted(planned)
    newest_requeued = list(accumulate((newest[time] for time in requeued), max))
    bounds: list[tuple[int, int | None]] = []
    before: int | None = None
    for time in sorted(newest.keys() - set(requeues)):
        following = bisect_right(plan, time)
        count = bisect_left(requeued, plan[following]) if following < len(plan) else len(requeued)
        bounds.append((time, _larger(before, newest_requeued[count - 1] if count else None)))
        before = _larger(before, newest[time])
    largest = nlargest(2, newest, key=lambda time: newest[time])
    bounds += [(time, max((newest[one] for one in largest if one != time), default=None)) for time in requeued]
    return bounds


def _larger(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)
