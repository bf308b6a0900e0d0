"""Whatever origins lag behind, no event is late that is not late within its own: against a model of Spark's reading."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.ingest.alignment import STEP_US, Alignment, Taken
from spark_jobs.lake.notes import EVERYTHING, NOTHING

DELAY_US = 3 * STEP_US


@dataclass
class Origin:
    """Times of events in the order in which they were sent; None: a record that is no event."""

    times: list[int | None]
    read: int = 0

    @property
    def unread(self) -> int:
        return len(self.times) - self.read

    def take(self, count: int) -> list[int | None]:
        taken = self.times[self.read : self.read + count]
        self.read += len(taken)
        return taken


@dataclass
class Silver:
    """What silver reads of bronze, and with which watermark."""

    watermark_us: int = NOTHING
    newest_us: int = NOTHING
    frontier_us: int = EVERYTHING
    bronze: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    largest: int = 0

    def read(self, frontier_us: int) -> None:
        """A batch: it is judged by the watermark that the one before has left."""
        ready = [time for time in self.bronze if time <= frontier_us]
        self.bronze = [time for time in self.bronze if time > frontier_us]
        self.late += [time for time in ready if time <= self.watermark_us]
        self.kept += [time for time in ready if time > self.watermark_us]
        self.newest_us = max([self.newest_us, *ready])
        self.watermark_us = max(self.watermark_us, self.newest_us - DELAY_US)
        self.largest = max(self.largest, len(ready))


def shares(origins: dict[str, Origin], limit: int) -> dict[str, int]:
    """How Spark shares a batch among partitions: by what is unread, and at least one record of each."""
    total = sum(one.unread for one in origins.values())
    return {name: max(1, limit * one.unread // total) for name, one in origins.items() if one.unread} if total else {}


def batches(origins: dict[str, Origin], limit: int) -> Iterator[tuple[Taken, list[int]]]:
    while any(one.unread for one in origins.values()):
        times = {name: origins[name].take(count) for name, count in shares(origins, limit).items()}
        events = {name: [time for time in found if time is not None] for name, found in times.items()}
        rows: dict[int, int] = {}
        for time in (time for found in events.values() for time in found):
            rows[time // STEP_US * STEP_US] = rows.get(time // STEP_US * STEP_US, 0) + 1
        yield (
            Taken(
                newest={name: max(found) for name, found in events.items() if found},
                unread=[name for name, one in origins.items() if one.unread],
                rows=rows,
            ),
            [time for found in events.values() for time in found],
        )


def run(origins: dict[str, Origin], *, limit: int, rows_at_once: int = 10**9, silver: Silver | None = None) -> Silver:
    silver, alignment = silver or Silver(), Alignment(rows_at_once)
    for taken, events in batches(origins, limit):
        silver.bronze += events
        for frontier_us in alignment.advance(taken):
            silver.read(frontier_us)
    return silver


@st.composite
def sent(draw: st.DrawFn) -> list[int | None]:
    """Events nearly in order, each less than the delay behind those before it, and records that are none."""
    moments = draw(st.lists(st.integers(10 * STEP_US, 60 * STEP_US), max_size=12))
    behind = st.integers(0, DELAY_US - 1)
    return [None if draw(st.integers(0, 5)) == 0 else moment - draw(behind) for moment in sorted(moments)]


ORIGINS = st.dictionaries(st.sampled_from([f"t{i // 3}/{i % 3}" for i in range(12)]), sent(), max_size=6)


@settings(max_examples=300)
@given(found=ORIGINS, limit=st.integers(1, 50), rows_at_once=st.integers(1, 100))
def test_events_in_the_order_of_their_origin_are_never_late(
    found: dict[str, list[int | None]], limit: int, rows_at_once: int
) -> None:
    silver = run({name: Origin(own) for name, own in found.items()}, limit=limit, rows_at_once=rows_at_once)
    assert silver.late == []
    assert sorted(silver.kept) == sorted(time for own in found.values() for time in own if time is not None)


def test_one_conversion_of_noon_does_not_make_the_morning_late() -> None:
    minutes = [i * 4_320_000 for i in range(10_000)]
    origins = {"imps/0": Origin(list(minutes)), "convs/0": Origin([11 * STEP_US + 59 * 60_000_000])}
    silver = run(origins, limit=1000)
    assert (len(silver.kept), silver.late) == (10_001, [])


def test_what_is_late_within_its_origin_is_late() -> None:
    origins = {"a/0": Origin([20 * STEP_US, 21 * STEP_US, 17 * STEP_US]), "a/1": Origin([20 * STEP_US] * 3)}
    assert run(origins, limit=2).late == [17 * STEP_US]


def test_an_origin_at_its_end_holds_nothing_back() -> None:
    alignment = Alignment(100)
    taken = Taken(newest={"a/0": 5, "b/0": 900}, unread=["b/0"], rows={0: 2})
    assert alignment.advance(taken) == [900]


def test_an_origin_that_has_given_no_event_yet_holds_everything_back() -> None:
    taken = Taken(newest={"b/0": 900}, unread=["a/0", "b/0"], rows={0: 1})
    assert Alignment(100).advance(taken) == [NOTHING]


def test_what_was_held_back_goes_to_silver_in_batches_of_bounded_size() -> None:
    clicks = [i * STEP_US // 100 for i in range(2400, 4800)]
    origins = {"imps/0": Origin([0] * 2000), "clicks/0": Origin(list(clicks))}
    silver = run(origins, limit=1000, rows_at_once=1000)
    assert silver.late == []
    assert silver.largest <= 1100
