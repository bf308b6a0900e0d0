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
    """What is put out: the bounds of the readings it is the mean of, and whether they are then forgotten."""

    window_start_us: int
    window_end_us: int
    value_count: int
    mean: float
    is_last: bool


@dataclass(frozen=True)
class AverageRule:
    """How readings become averages.

    Attributes:
        size: how many readings make a mean.
        output: when one is put out.
        timeout_us: the longest silence between two readings of one mean; None: of any length.
    """

    size: int
    output: AverageOutput
    timeout_us: int | None


@dataclass(frozen=True)
class Series:
    """What is known of a key: its last readings, and those that others may yet come before; both in order of time."""

    window: tuple[Reading, ...] = ()
    waiting: tuple[Reading, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remember."""
        return not (self.window or self.waiting)


def settle(
    series: Series, readings: Iterable[Reading], until_us: int, rule: AverageRule
) -> tuple[Series, list[Average]]:
    """Takes ``readings`` in, and decides all that nothing can change that comes later.

    Args:
        series: what was known.
        readings: new ones, in any order.
        until_us: no reading of this time or an earlier one will come any more.
        rule: see there.

    Returns:
        What is known then, and what is put out, in order of time.
    """
    waiting = sorted((*series.waiting, *readings))
    split = next((at for at, reading in enumerate(waiting) if reading.time_us > until_us), len(waiting))
    window, put_out = series.window, list[Average]()
    for reading in waiting[:split]:
        if _is_silent(window, reading.time_us, rule):
            put_out.append(_average(window, is_last=True))
            window = ()
        window = (*window, reading)[-rule.size :]
        put_out += _of_update(window, rule)
    known = Series(window, tuple(waiting[split:]))
    # The reading that the silence could still have ended would have had to come by now.
    if rule.timeout_us is not None and window and until_us >= window[-1].time_us + rule.timeout_us:
        return replace(known, window=()), [*put_out, *close(known)]
    return known, put_out


def close(series: Series) -> list[Average]:
    """What is put out when all that is known is forgotten."""
    return [_average(series.window, is_last=True)] if series.window else []


def due_us(series: Series, rule: AverageRule) -> int | None:
    """When, at the earliest, something more can be decided; None: nothing is open."""
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
