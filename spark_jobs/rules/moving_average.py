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

from spark_jobs.contracts.choices import AverageOutput


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
        timeout_us: the longest silence between two readings of one mean; None: any.
    """

    size: int
    output: AverageOutput
    timeout_us: int | None


@dataclass(frozen=True)
class Series:
    """The state of a key: its last readings, and readings that earlier ones may still precede; in order of time."""

    window: tuple[Reading, ...] = ()
    waiting: tuple[Reading, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to keep."""
        return not (self.window or self.waiting)


def settle(
    series: Series, readings: Iterable[Reading], until_us: int, rule: AverageRule
) -> tuple[Series, list[Average]]:
    """Adds ``readings``, and decides everything that later ones cannot change.

    Args:
        series: the state before.
        readings: new ones, in any order.
        until_us: no reading of this time or an earlier one can arrive any more.
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
