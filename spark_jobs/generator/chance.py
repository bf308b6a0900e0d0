"""Random draws cheap enough to make several times per event."""

import math
from collections.abc import Callable
from random import Random
from statistics import NormalDist

TABLE_SIZE = 4096
"""The size of a quantile table; a uniform draw times this is an index."""


def lognormal_table(median: float, sigma: float) -> list[int]:
    """``TABLE_SIZE`` evenly spaced quantiles of the log-normal distribution with ``median``, rounded down.

    ``sigma`` is the standard deviation of the logarithm. Picking a random entry costs a tenth of a real draw.
    """
    normal = NormalDist(0.0, sigma)
    return [int(median * math.exp(normal.inv_cdf((index + 0.5) / TABLE_SIZE))) for index in range(TABLE_SIZE)]


def log_uniform(random: Callable[[], float], low: float, high: float) -> float:
    """A log-uniform draw between ``low`` and ``high``."""
    return low * math.exp(math.log(high / low) * random())


class Quota:
    """Picks exactly ``picks`` out of ``total``, all equally likely (Knuth, TAOCP 2, 3.4.2, algorithm S)."""

    def __init__(self, picks: int, total: int, rng: Random) -> None:
        self._left = total
        self._picks = picks
        self._random = rng.random

    def take(self) -> bool:
        """Whether the next of the ``total`` is picked; call it ``total`` times."""
        picked = self._random() * self._left < self._picks
        self._left -= 1
        self._picks -= picked
        return picked


class Ids:
    """Unique ids that look random: a counter times an odd number modulo 2^48, which never repeats."""

    _MULTIPLIER = 0x5DEECE66D1B3
    _MASK = 0xFFFFFFFFFFFF

    def __init__(self, rng: Random) -> None:
        self._state = rng.getrandbits(48)

    def next(self) -> str:
        """Twelve hexadecimal digits, different on every call."""
        self._state = (self._state + self._MULTIPLIER) & self._MASK
        return f"{self._state:012x}"
