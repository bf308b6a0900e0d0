"""How the touches of a conversion share its value: in whole numbers that add up.

A model gives each touch a weight. Each touch gets its part of the value, rounded down; what is left goes, one each, to
the parts that lost most by rounding, and of equal ones to the first.

::

    half-life 7d     day 1    day 8    day 15
    touches            a        b        c
    time_decay         1   :    2   :    4
    exact, of 100    14 2/7   28 4/7   57 1/7
    shares             14       29       57
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from spark_jobs.config.choices import CreditModel, TouchKind
from spark_jobs.config.durations import microseconds
from spark_jobs.credit.plan import DECAY_BITS, DECAY_STEPS

_FEWEST_WITH_MIDDLE = 3
DECAY: tuple[int, ...] = tuple(round(2.0 ** (DECAY_BITS - step / DECAY_STEPS)) for step in range(DECAY_STEPS))
"""By step, the weight in ``time_decay`` of a touch that is younger than a half-life."""


class Touch(NamedTuple):
    """What a model looks at: what the touch was, and when, in microseconds since 1970."""

    kind: TouchKind
    time_us: int


def weights(model: CreditModel, touches: Sequence[Touch], half_life: timedelta) -> list[int]:
    """The weight of each of ``touches``, which are in the order of their positions; not all of them are 0.

    Args:
        model: how they are weighed.
        touches: of one conversion.
        half_life: ``credit.half_life``, for ``time_decay``.
    """
    count = len(touches)
    match model:
        case CreditModel.LAST_TOUCH:
            return _all_for(count - 1, count)
        case CreditModel.FIRST_TOUCH:
            return _all_for(0, count)
        case CreditModel.LAST_CLICK:
            clicks = [at for at, touch in enumerate(touches) if touch.kind is TouchKind.CLICK]
            return _all_for(clicks[-1] if clicks else count - 1, count)
        case CreditModel.LINEAR:
            return [1] * count
        case CreditModel.POSITION_BASED:
            return _by_position(count)
        case CreditModel.TIME_DECAY:
            return [_decayed(touches[-1].time_us - touch.time_us, microseconds(half_life)) for touch in touches]


def shares(value: int, weights: Sequence[int]) -> list[int]:
    """``value``, shared by ``weights``: see above. A negative value is shared as the positive one, with other signs."""
    if value < 0:
        return [-share for share in shares(-value, weights)]
    total = sum(weights)
    parts = [value * weight // total for weight in weights]
    by_loss = sorted(range(len(weights)), key=lambda at: (-(value * weights[at] % total), at))
    for at in by_loss[: value - sum(parts)]:
        parts[at] += 1
    return parts


def _all_for(place: int, count: int) -> list[int]:
    return [int(at == place) for at in range(count)]


def _by_position(count: int) -> list[int]:
    """40 % for each end and 20 % for all between; with nothing between, half for each end."""
    if count < _FEWEST_WITH_MIDDLE:
        return [1] * count
    between = count - 2
    return [2 * between, *[1] * between, 2 * between]


def _decayed(age_us: int, half_life_us: int) -> int:
    halvings, rest = divmod(age_us, half_life_us)
    return DECAY[rest * DECAY_STEPS // half_life_us] >> halvings
