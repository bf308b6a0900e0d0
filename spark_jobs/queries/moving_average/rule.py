"""The mean of the last readings of a key.

::

    size 3, timeout 1h     12:00  12:10  12:20  12:30            14:00
    readings                 4      6      8      1                5
    full                     .      .     6.0    5.0   5.0 last    .
    every                    0      0     6.0    5.0   5.0 last    0
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import fsum
from typing import NamedTuple

from spark_jobs.config.choices import AverageOutput

_FOR_EVER_US = 2**63 - 1


class Reading(NamedTuple):
    """A value and when it was read, in microseconds since 1970."""

    time_us: int
    value: float


class Average(NamedTuple):
    """An output: the mean, the first and the last of its readings, and whether they are forgotten afterwards."""

    window_start_us: int
    window_end_us: int
    value_count: int
    mean: float
    is_last: bool


@dataclass(frozen=True)
class AverageRule:
    """How readings become averages.

    Attributes:
        size: number of readings in a mean.
        output: when one is emitted.
        timeout_us: the longest silence between two readings of one mean; None: no limit.
    """

    size: int
    output: AverageOutput
    timeout_us: int | None


@dataclass(frozen=True)
class Series:
    """The state of a key: its last readings, and readings before which others may still come; in order of time."""

    window: tuple[Reading, ...] = ()
    waiting: tuple[Reading, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not (self.window or self.waiting)


def settle(
    series: Series, readings: Iterable[Reading], until_us: int, rule: AverageRule
) -> tuple[Series, list[Average]]:
    """Adds ``readings``, and decides everything that later ones cannot change.

    Args:
        series: the state before.
        readings: new ones, in any order.
        until_us: all readings up to this time have arrived.
        rule: how readings become averages.

    Returns:
        The state after, and the output in order of time.
    """
    waiting = sorted((*series.waiting, *readings))
    split = next((at for at, reading in enumerate(waiting) if reading.time_us > until_us), len(waiting))
    window, averages = series.window, list[Average]()
    for reading in waiting[:split]:
        if _is_silent(window, reading.time_us, rule):
            averages.append(_average(window, is_last=True))
            window = ()
        window = (*window, reading)[-rule.size :]
        averages += _of_update(window, rule)
    known = Series(window, tuple(waiting[split:]))
    # A reading that ended the silence would have arrived by now.
    if rule.timeout_us is not None and window and until_us >= window[-1].time_us + rule.timeout_us:
        return replace(known, window=()), [*averages, *close(known)]
    return known, averages


def close(series: Series) -> list[Average]:
    """The output when the key is forgotten."""
    return [_average(series.window, is_last=True)] if series.window else []


def due_us(series: Series, rule: AverageRule) -> int | None:
    """The earliest time at which more can be decided; None: nothing is open."""
    times = [series.waiting[0].time_us] if series.waiting else []
    if series.window and rule.timeout_us is not None:
        times.append(series.window[-1].time_us + rule.timeout_us)
    return min(times, default=None)


def _is_silent(window: tuple[Reading, ...], time_us: int, rule: AverageRule) -> bool:
    return bool(window) and rule.timeout_us is not None and time_us > window[-1].time_us + rule.timeout_us


def _of_update(window: tuple[Reading, ...], rule: AverageRule) -> Iterator[Average]:
    if len(window) == rule.size:
        yield _average(window, is_last=False)
    elif rule.output is AverageOutput.EVERY:
        yield _average(window, is_last=False)._replace(mean=0.0)


def _average(window: tuple[Reading, ...], *, is_last: bool) -> Average:
    mean = fsum(reading.value for reading in window) / len(window)
    return Average(window[0].time_us, window[-1].time_us, len(window), mean, is_last)


@dataclass(frozen=True)
class Stretch:
    """A part of a series: the means that values at certain times touch.

    Attributes:
        since_us: its first time. Of the means up to then only the last one before a silence belongs to it.
        until_us: its last time.
        ends_silent: whether the series is silent afterwards; otherwise the mean before a silence there does not belong
            to it.
        averages: the means in it, in order of time.
    """

    since_us: int
    until_us: int
    ends_silent: bool
    averages: list[Average]

    def due_us(self, rule: AverageRule) -> int:
        """The time from which no later value can change it."""
        return self.until_us + (rule.timeout_us or 0 if self.ends_silent else 0)

    def has(self, window_end_us: int, *, is_last: bool) -> bool:
        """Whether a mean that ends at ``window_end_us`` belongs to it."""
        if window_end_us == self.since_us and not is_last:
            return False
        if window_end_us == self.until_us and is_last:
            return self.ends_silent
        return self.since_us <= window_end_us <= self.until_us


def stretch(readings: Iterable[Reading], first_us: int, last_us: int, rule: AverageRule) -> Stretch:
    """The part of a series that values from ``first_us`` to ``last_us`` touch.

    Args:
        readings: of the series, at least those within ``reach_us`` of the two times.
        first_us: of the first such value, whether it is among ``readings`` or not.
        last_us: of the last such value.
        rule: how readings become averages; with a timeout.
    """
    known, silence = sorted(readings), rule.timeout_us or 0
    earlier = [reading.time_us for reading in known if reading.time_us < first_us]
    # The value before may have been the last before a silence, and no longer be.
    since = earlier[-1] if earlier and first_us - earlier[-1] <= silence else first_us - 1
    until, ends_silent = _end(known, last_us, rule.size, silence)
    _, averages = settle(Series(), known, _FOR_EVER_US, rule)
    found = Stretch(since, until, ends_silent, [])
    return replace(found, averages=[one for one in averages if found.has(one.window_end_us, is_last=one.is_last)])


def _end(known: list[Reading], last_us: int, size: int, silence_us: int) -> tuple[int, bool]:
    """Where means agree again, whatever the values up to ``last_us``; and whether because of a silence."""
    before, count = last_us, 0
    for reading in known:
        if reading.time_us <= last_us:
            continue
        if reading.time_us - before > silence_us:
            break
        before, count = reading.time_us, count + 1
        if count == size:
            return before, False
    return before, True


def reach_us(rule: AverageRule) -> int:
    """How far around values :func:`stretch` needs the series: one of that many silences exceeds the timeout."""
    return (rule.timeout_us or 0) * (rule.size + 2)
