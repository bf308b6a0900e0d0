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
    """``due``: by conversion, ``outcome value touches``; a touch is its click, or the impression that was seen."""

    title: str
    conversions: Sequence[Conversion]
    shown: Sequence[Shown]
    due: dict[str, str]


def _bought(
    event_id: str, day: float, us: int = 0, *, order: str | None = None, revokes: str | None = None, user: str = "u"
) -> Conversion:
    return Conversion(event_id, user, START_US + int(day * DAY_US) + us, "purchase", 100, "EUR", order, revokes)


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
            _bought("p2", 60, order="o"),
            _bought("p3", 150, order="o"),
            _bought("p4", 240, 1, order="o"),
            _bought("p5", 60),
        ],
        [],
        {"p1": "organic 100", "p4": "organic 100", "p5": "organic 100"},
    ),
    CreditCase(
        "of an order at one instant the smallest id counts",
        [_bought("p2", 5, order="o"), _bought("p1", 5, order="o")],
        [],
        {"p1": "organic 100"},
    ),
    CreditCase(
        "a refund, by another user, and another one",
        [_bought("p", 5), _bought("r", 35, 1, revokes="p", user="v"), _bought("s", 95, revokes="p", order="o")],
        [_clicked("i", "k", 5), _clicked("j", "l", 6)],
        {"p": "click_through 100 k", "r": "click_through -100 k", "s": "click_through -100 k"},
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
            "r": "organic -100",
            "s": "organic -100",
            "t": "organic -100",
            "v": "organic -100",
        },
    ),
    CreditCase(
        "a refund of a repeat, and one with the order of a purchase",
        [
            _bought("p", 5, order="o"),
            _bought("q", 6, order="o"),
            _bought("r", 7, revokes="q", order="o"),
            _bought("s", 97, order="o"),
        ],
        [_clicked("i", "k", 5)],
        {"p": "click_through 100 k", "r": "organic -100", "s": "organic 100"},
    ),
)


def apart(row: Conversion | Shown, case: int) -> Any:
    """``row`` with ids of its case, so that cases share a computation."""
    ids = ("event_id", "user_id", "order_id", "revokes", "impression_id", "click_id")
    own: dict[str, Any] = {
        name: f"{case}/{value}" for name, value in row._asdict().items() if name in ids and value is not None
    }
    return row._replace(**own)
