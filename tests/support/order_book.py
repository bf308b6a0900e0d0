"""What each purchase and each refund counts for: the rule of orders and refunds, written from its words alone.

An oracle to be read against the rule: it walks plain lists, and knows nothing of the code under test.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

Key = tuple[str, int]
"""The event id and time (microseconds) of a conversion: no two conversions have both in common."""


class Bought(Protocol):
    """A conversion: a refund if it has ``revokes``, else a purchase."""

    @property
    def event_id(self) -> str: ...
    @property
    def user_id(self) -> str | None: ...
    @property
    def time_us(self) -> int: ...
    @property
    def conversion_type(self) -> str: ...
    @property
    def value_micros(self) -> int: ...
    @property
    def currency(self) -> str | None: ...
    @property
    def order_id(self) -> str | None: ...
    @property
    def revokes(self) -> str | None: ...


class Judged(NamedTuple):
    """What the rule says of one conversion."""

    credited_micros: int | None
    """What it is credited with: negative or 0 of a refund, None without a path."""
    counts_as: Key | None
    """The purchase that counts: itself, the one that a repeat stands for, or the one that a refund goes to."""
    reason: str | None
    """Why it, or a part of it, is left out; None if nothing is."""
    left_out_micros: int
    """How much is left out: negative or 0 of a refund. It may be 0 with a reason, if the value is 0."""


def judge_orders(
    conversions: Iterable[Bought], *, same_order: Sequence[str], repeat_within_us: int, lookback_us: int
) -> dict[Key, Judged]:
    """What the rule says of each of ``conversions``, by event id and time."""
    in_time = sorted(conversions, key=lambda conversion: (conversion.time_us, conversion.event_id))
    if len({_key(conversion) for conversion in in_time}) != len(in_time):
        raise ValueError("two conversions have the same event id and time")
    purchases = [conversion for conversion in in_time if conversion.revokes is None]
    refunds = [conversion for conversion in in_time if conversion.revokes is not None]

    counting = _counting(purchases, same_order, repeat_within_us)
    judged: dict[Key, Judged] = {}
    for purchase in purchases:
        judged[_key(purchase)] = _judge_purchase(purchase, counting[_key(purchase)], lookback_us)

    left = {_key(purchase): purchase.value_micros for purchase in purchases}
    for refund in refunds:
        goes_to = _goes_to(refund, purchases, counting, lookback_us)
        if goes_to is None:
            judged[_key(refund)] = Judged(None, None, "no_conversion", -refund.value_micros)
            continue
        if refund.value_micros == 0:
            judged[_key(refund)] = Judged(0, _key(goes_to), None, 0)
            continue
        if refund.currency != goes_to.currency:
            judged[_key(refund)] = Judged(None, _key(goes_to), "other_currency", -refund.value_micros)
            continue
        taken = min(refund.value_micros, left[_key(goes_to)])
        left[_key(goes_to)] -= taken
        missing = refund.value_micros - taken
        judged[_key(refund)] = Judged(
            credited_micros=-taken if taken > 0 else None,
            counts_as=_key(goes_to),
            reason="more_than_left" if missing > 0 else None,
            left_out_micros=-missing,
        )
    return judged


def _key(conversion: Bought) -> Key:
    return conversion.event_id, conversion.time_us


def _order(purchase: Bought, same_order: Sequence[str]) -> tuple[object, ...]:
    """What the purchases of one order, and they alone, have in common."""
    columns = tuple(getattr(purchase, column) for column in same_order)
    if purchase.order_id is None:
        return ("without order id", purchase.event_id, columns)
    return ("with order id", purchase.order_id, columns)


def _counting(purchases: Iterable[Bought], same_order: Sequence[str], repeat_within_us: int) -> dict[Key, Bought]:
    """For each of ``purchases``, in order of time: itself if it counts, else the last before it in its order that does.

    It may be older than the lookback allows: whoever asks has to look.
    """
    last: dict[tuple[object, ...], Bought] = {}
    last_that_counts: dict[tuple[object, ...], Bought] = {}
    counting: dict[Key, Bought] = {}
    for purchase in purchases:
        order = _order(purchase, same_order)
        is_repeat = order in last and purchase.time_us - last[order].time_us <= repeat_within_us
        if not is_repeat:
            last_that_counts[order] = purchase
        counting[_key(purchase)] = last_that_counts[order]
        last[order] = purchase
    return counting


def _judge_purchase(purchase: Bought, counting: Bought, lookback_us: int) -> Judged:
    if _key(counting) == _key(purchase):
        return Judged(purchase.value_micros, _key(purchase), None, 0)
    near_enough = purchase.time_us - counting.time_us <= lookback_us
    return Judged(None, _key(counting) if near_enough else None, "repeat", purchase.value_micros)


def _goes_to(
    refund: Bought, purchases: Iterable[Bought], counting: Mapping[Key, Bought], lookback_us: int
) -> Bought | None:
    """The purchase that counts and that ``refund`` goes to, whatever its currency; ``purchases`` in order of time."""
    meant: Bought | None = None
    for purchase in purchases:
        if purchase.event_id == refund.revokes and 0 <= refund.time_us - purchase.time_us <= lookback_us:
            meant = purchase
    if meant is None:
        return None
    goes_to = counting[_key(meant)]
    return goes_to if refund.time_us - goes_to.time_us <= lookback_us else None
