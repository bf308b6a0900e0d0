"""Simulates the network: delays, duplicates, events hours late, broken records in between."""

import heapq
from random import Random

from spark_jobs.generator.broken import BrokenRecords, Surroundings
from spark_jobs.generator.chance import TABLE_SIZE, Ids, Quota, log_uniform, lognormal_table
from spark_jobs.generator.daycurve import DayCurve
from spark_jobs.generator.reorder import ReorderBuffer
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.timetext import write_time
from spark_jobs.generator.visits import MAX_VISIT_EVENTS, Event

_SECOND = 1_000_000
_HOUR = 3600 * _SECOND
LEAST_LATENESS, MOST_LATENESS = 7 * _HOUR // 2, 6 * _HOUR
"""How far behind the stream a late event arrives: more than the longest watermark, 3 h."""
MOST_DELAY = 240 * _SECOND
"""The longest network delay of an event that is not late: less than the shortest watermark, 10 min."""

_REPEAT = (2 * _SECOND, 1800 * _SECOND)
_SLOW = 20  # of TABLE_SIZE deliveries: a tail of delays of minutes


def _delays() -> list[int]:
    usual = lognormal_table(0.35 * _SECOND, 1.1)[: TABLE_SIZE - _SLOW]
    first = usual[-1]
    slow = [int(first * (MOST_DELAY / first) ** (step / _SLOW)) for step in range(1, _SLOW + 1)]
    return usual + slow


class Delivery:
    """Gives every event its time of arrival and passes the records to ``buffer``.

    Lateness is measured in event time, not by the wall clock: a late event is held back until the stream has delivered
    one that is at least ``LEAST_LATENESS`` newer. So it is late however thin the traffic is. Only events that are
    certain to be followed by such a newer one are eligible. ``duplicates`` and ``late`` are counters; a late event is
    never sent twice. Broken records use a random generator of their own, so they do not affect the good ones.
    """

    def __init__(self, spec: GeneratorSpec, curve: DayCurve, buffer: ReorderBuffer) -> None:
        self.duplicates = self.late = 0
        rng, broken_rng = Random(f"{spec.seed}/delivery"), Random(f"{spec.seed}/broken")
        self.broken = BrokenRecords(broken_rng)
        self._buffer = buffer
        self._random = rng.random
        self._broken_random = broken_rng.random
        self._broken_ids = Ids(broken_rng)
        self._is_repeated = Quota(spec.duplicate_count, spec.events, rng)
        self._is_followed_by_broken = Quota(spec.malformed_count, spec.events, broken_rng)
        # The last visit starts no earlier than this, and is never late itself.
        self._reached = curve.moment(max(0, spec.events - MAX_VISIT_EVENTS) / spec.events)
        self._late_before = self._reached - LEAST_LATENESS
        eligible = curve.share_before(self._late_before) * (1 - spec.duplicates)
        self._late_rate = min(1.0, spec.late / eligible) if eligible else 0.0
        self._held: list[Event] = []

    @property
    def held(self) -> int:
        """How many late events are being held back."""
        return len(self._held)

    def send(self, visit: list[Event]) -> None:
        """Sends the events of ``visit``; visits must come in order of their start."""
        records: list[Event] = []
        delays, random = DELAYS, self._random
        released = self._held and self._held[0][0] <= visit[0][0]
        for position, (moment, line) in enumerate(visit):
            arrival = moment + delays[int(random() * TABLE_SIZE)]
            if self._is_followed_by_broken.take():
                records.append(self._broken(moment, arrival))
            if self._is_repeated.take():
                self.duplicates += 1
                records.append((arrival + int(log_uniform(random, *_REPEAT)), line))
            elif moment < self._late_before and random() < self._late_rate:
                self._hold(moment, line)
                continue
            records.append((arrival, line))
            if released and not position:
                self._release(moment, arrival, records)
        self._buffer.push(records)

    def _hold(self, moment: int, line: bytes) -> None:
        self.late += 1
        most = min(MOST_LATENESS, self._reached - moment)
        lateness = LEAST_LATENESS + int(self._random() * (most - LEAST_LATENESS))
        heapq.heappush(self._held, (moment + lateness, line))

    def _release(self, moment: int, arrival: int, records: list[Event]) -> None:
        """Releases the held events that are due after an event at ``moment`` that arrives at ``arrival``."""
        while self._held and self._held[0][0] <= moment:
            records.append((arrival + 1, heapq.heappop(self._held)[1]))

    def _broken(self, moment: int, arrival: int) -> Event:
        _, text = write_time(moment, self._broken_random)
        around = Surroundings(f"bad-{self._broken_ids.next()}", text, f"u-{int(self._broken_random() * 1000) + 1:06d}")
        return arrival + int(self._broken_random() * _SECOND), self.broken.next(around) + b"\n"


DELAYS = _delays()
"""Network delays in microseconds, ascending, all equally likely."""
