"""Golden cases of paths: conversions and attributions of one user, and the paths that they must have."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from spark_jobs.config.durations import EPOCH, microseconds
from tests.support.credit_oracle import Conversion, Shown

DAY_US = 86_400_000_000
START_US = microseconds(datetime(2026, 3, 1, tzinfo=UTC) - EPOCH)


@dataclass(frozen=True)
class CreditCase:
    """``due``: by conversion, ``outcome value touches``; a touch is its click, or the impression that was seen.

    What is left out of it follows, or stands alone: ``reason value``.
    """

    title: str
    conversions: Sequence[Conversion]
    shown: Sequence[Shown]
    due: dict[str, str]


def _bought(
    event_id: str,
    day: float,
    us: int = 0,
    *,
    order: str | None = None,
    revokes: str | None = None,
    user: str = "u",
    value: int = 100,
    currency: str | None = "EUR",
    kind: str = "purchase",
) -> Conversion:
    return Conversion(event_id, user, START_US + int(day * DAY_US) + us, kind, value, currency, order, revokes)


def _seen(impression_id: str, day: float, us: int = 0) -> Shown:
    return Shown("unclicked", impression_id, START_US + int(day * DAY_US) + us, "spring", "ad", "u", None, None)


def _clicked(impression_id: str, click_id: str, day: float, us: int = 0, *, shown: float = 0) -> Shown:
    """A click on an impression, which was seen at ``shown``."""
    clicked, seen = START_US + int(day * DAY_US) + us, START_US + int(shown * DAY_US)
    return Shown("clicked", impression_id, seen, "spring", "ad", "u", click_id, clicked)


CREDIT_CASES = (
    CreditCase("no ad", [_bought("p", 40)], [], {"p": "organic 100"}),
    CreditCase("a click 30 days before", [_bought("p", 30)], [_clicked("i", "k", 0)], {"p": "click_through 100 k"}),
    CreditCase(
        "a click more than 30 days before", [_bought("p", 30, 1)], [_clicked("i", "k", 0)], {"p": "organic 100"}
    ),
    CreditCase("a view a day before", [_bought("p", 41)], [_seen("i", 40)], {"p": "view_through 100 i"}),
    CreditCase("a view more than a day before", [_bought("p", 41, 1)], [_seen("i", 40)], {"p": "organic 100"}),
    CreditCase("a click at the instant", [_bought("p", 5)], [_clicked("i", "k", 5)], {"p": "click_through 100 k"}),
    CreditCase("a click after it", [_bought("p", 5)], [_clicked("i", "k", 5, 1)], {"p": "organic 100"}),
    CreditCase(
        "a click after it, on an impression seen before it",
        [_bought("p", 5)],
        [_clicked("i", "k", 5, 1, shown=4.5)],
        {"p": "view_through 100 i"},
    ),
    CreditCase("a view after it", [_bought("p", 5)], [_seen("i", 5, 1)], {"p": "organic 100"}),
    CreditCase(
        "the last of several clicks of an impression",
        [_bought("p", 5)],
        [_clicked("i", "k9", 1), _clicked("i", "k1", 2), _clicked("i", "k3", 5, 1)],
        {"p": "click_through 100 k1"},
    ),
    CreditCase(
        "of clicks at one instant that with the greatest id",
        [_bought("p", 5)],
        [_clicked("i", "k2", 1), _clicked("i", "k3", 1), _clicked("i", "k10", 1)],
        {"p": "click_through 100 k3"},
    ),
    CreditCase(
        "views beside a click",
        [_bought("p", 5)],
        [_clicked("i", "k", 1), _seen("j", 4.5)],
        {"p": "click_through 100 k"},
    ),
    CreditCase(
        "touches at one instant are ordered by id",
        [_bought("p", 5)],
        [_clicked("i1", "kb", 1), _clicked("i2", "kc", 1), _clicked("i3", "ka", 1), _clicked("i4", "kd", 0.5)],
        {"p": "click_through 100 kd ka kb kc"},
    ),
    CreditCase(
        "an orphan click",
        [_bought("p", 5)],
        [Shown("orphan_click", "i", None, None, None, "u", "k", START_US + 5 * DAY_US)],
        {"p": "organic 100"},
    ),
    CreditCase(
        "a repeat of an order, and of a repeat",
        [
            _bought("p1", 0, order="o"),
            _bought("p2", 2, order="o"),
            _bought("p3", 3, order="o"),
            _bought("p4", 5, 1, order="o"),
            _bought("p5", 1),
        ],
        [_clicked("i", "k", 0)],
        {
            "p1": "click_through 100 k",
            "p2": "repeat 100",
            "p3": "repeat 100",
            "p4": "click_through 100 k",
            "p5": "click_through 100 k",
        },
    ),
    CreditCase(
        "an order is of one type and one currency",
        [
            _bought("p1", 5, order="o", kind="checkout_started", value=0),
            _bought("p2", 5.1, order="o"),
            _bought("p3", 5.2, order="o", currency="CHF"),
            _bought("p4", 5.3, order="o"),
        ],
        [],
        {"p1": "organic 0", "p2": "organic 100", "p3": "organic 100", "p4": "repeat 100"},
    ),
    CreditCase(
        "of an order at one instant the smallest id counts",
        [_bought("p2", 5, order="o"), _bought("p1", 5, order="o")],
        [],
        {"p1": "organic 100", "p2": "repeat 100"},
    ),
    CreditCase(
        "a refund, by another user, and another one",
        [
            _bought("p", 5),
            _bought("r", 35, 1, revokes="p", user="v", value=60),
            _bought("s", 95, revokes="p", order="o", value=40),
        ],
        [_clicked("i", "k", 5), _clicked("j", "l", 6)],
        {"p": "click_through 100 k", "r": "click_through -60 k", "s": "click_through -40 k"},
    ),
    CreditCase(
        "refunds too late, too early, and of nothing",
        [
            _bought("p", 5),
            _bought("r", 95, 1, revokes="p"),
            _bought("s", 5, -1, revokes="p"),
            _bought("t", 6, revokes="r"),
            _bought("v", 6, revokes="never"),
        ],
        [_clicked("i", "k", 5)],
        {
            "p": "click_through 100 k",
            "r": "no_conversion -100",
            "s": "no_conversion -100",
            "t": "no_conversion -100",
            "v": "no_conversion -100",
        },
    ),
    CreditCase(
        "a part, then the whole, then more",
        [
            _bought("p", 5, value=50),
            _bought("r1", 6, revokes="p", value=15),
            _bought("r2", 7, revokes="p", value=50),
            _bought("r3", 8, revokes="p", value=1),
            _bought("r4", 9, revokes="p", value=0, currency=None),
        ],
        [_clicked("i", "k", 5)],
        {
            "p": "click_through 50 k",
            "r1": "click_through -15 k",
            "r2": "click_through -35 k, more_than_left -15",
            "r3": "more_than_left -1",
            "r4": "click_through 0 k",
        },
    ),
    CreditCase(
        "a refund in another currency takes nothing",
        [
            _bought("p", 5, currency="INR"),
            _bought("r1", 6, revokes="p", currency="GBP"),
            _bought("r2", 7, revokes="p", currency=None),
            _bought("r3", 8, revokes="p", currency="INR"),
        ],
        [_clicked("i", "k", 5)],
        {
            "p": "click_through 100 k",
            "r1": "other_currency -100",
            "r2": "other_currency -100",
            "r3": "click_through -100 k",
        },
    ),
    CreditCase(
        "a refund of a repeat takes back the purchase that counts",
        [
            _bought("p", 5, order="o"),
            _bought("q", 5.5, order="o", user="v"),
            _bought("r", 7, revokes="q", order="o"),
            _bought("s", 97, order="o"),
        ],
        [_clicked("i", "k", 5)],
        {"p": "click_through 100 k", "q": "repeat 100", "r": "click_through -100 k", "s": "organic 100"},
    ),
    CreditCase(
        "the orders of docs/credit.md",
        [
            _bought("started", 0.5, order="1009", kind="checkout_started", value=0),
            _bought("bought", 0.5, 300_000_000, order="1009"),
            _bought("again", 0.5, 360_000_000, order="1009"),
            _bought("next day", 1.8334, order="1009"),
            _bought("renewed", 10.375, order="1009", value=70),
        ],
        [],
        {
            "started": "organic 0",
            "bought": "organic 100",
            "again": "repeat 100",
            "next day": "repeat 100",
            "renewed": "organic 70",
        },
    ),
    CreditCase(
        "the refunds of docs/credit.md",
        [
            _bought("p", 5, value=50),
            _bought("r1", 6, revokes="p", value=15),
            _bought("r2", 7, revokes="p", value=50),
            _bought("r3", 8, revokes="p", value=20, currency="GBP"),
            _bought("r4", 8, revokes="q", value=10),
        ],
        [_clicked("i", "k", 5)],
        {
            "p": "click_through 50 k",
            "r1": "click_through -15 k",
            "r2": "click_through -35 k, more_than_left -15",
            "r3": "other_currency -20",
            "r4": "no_conversion -10",
        },
    ),
    CreditCase(
        "a subscription is credited with each renewal",
        [_bought(f"p{month}", month * 30, order="s-7", value=10) for month in range(5)],
        [_clicked("i", "k", 0)],
        {
            "p0": "click_through 10 k",
            "p1": "click_through 10 k",
            "p2": "organic 10",
            "p3": "organic 10",
            "p4": "organic 10",
        },
    ),
)


def apart(row: Conversion | Shown, case: int) -> Any:
    """``row`` with ids of its case, so that cases share a computation."""
    ids = ("event_id", "user_id", "order_id", "revokes", "impression_id", "click_id")
    own: dict[str, Any] = {
        name: f"{case}/{value}" for name, value in row._asdict().items() if name in ids and value is not None
    }
    return row._replace(**own)
