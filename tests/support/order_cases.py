"""Orders and refunds as documents of the trade describe them, each with what is due under the defaults.

The defaults: an order is one order id, conversion type and currency; repeats within two days; a lookback of 90 days.
Where the trade does otherwise than the rule, the case follows the rule, and a comment that begins "The trade" says how.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

START_US: Final = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000
"""The first instant of the cases."""
DAY_US: Final = 86_400_000_000
MINUTE: Final = 1 / 1440
"""In days."""
UNIT: Final = 1_000_000
"""One euro, dollar or rupee in micros."""

SAME_ORDER: Final = ("conversion_type", "currency")
REPEAT_WITHIN_US: Final = 2 * DAY_US
LOOKBACK_US: Final = 90 * DAY_US


def at(days: float) -> int:
    """The time so many days after the start, in microseconds."""
    return START_US + round(days * DAY_US)


class BoughtRow(NamedTuple):
    """A conversion."""

    event_id: str
    user_id: str | None = "u"
    time_us: int = START_US
    conversion_type: str = "purchase"
    value_micros: int = 100 * UNIT
    currency: str | None = "EUR"
    order_id: str | None = None
    revokes: str | None = None


@dataclass(frozen=True)
class OrderCase:
    """Conversions, no two with one event id, and what is due on each by its event id."""

    title: str
    source: str
    """The address of the document; of two, with a space between them."""
    bought: Sequence[BoughtRow]
    due: dict[str, int | None]
    """What each is credited with; None without a path."""
    left_out: dict[str, str]
    """The reason of each that is left out, wholly or in part."""


ORDER_CASES: Final[Sequence[OrderCase]] = (
    OrderCase(
        title="a reloaded confirmation page counts once for each conversion action",
        source="https://support.google.com/google-ads/answer/6386790?hl=en",
        bought=(
            BoughtRow("bought", time_us=at(0), order_id="A-1"),
            BoughtRow("reloaded", time_us=at(5 * MINUTE), order_id="A-1"),
            BoughtRow("other action", time_us=at(5 * MINUTE), conversion_type="sign_up", order_id="A-1"),
            BoughtRow("next order", time_us=at(10 * MINUTE), order_id="A-2"),
        ),
        due={"bought": 100 * UNIT, "reloaded": None, "other action": 100 * UNIT, "next order": 100 * UNIT},
        left_out={"reloaded": "repeat"},
    ),
    OrderCase(
        title="an adjustment finds the conversion that was counted, once, not before it and not too late",
        source=(
            "https://developers.google.com/google-ads/api/reference/rpc/v25/"
            "ConversionAdjustmentUploadErrorEnum.ConversionAdjustmentUploadError.md.txt "
            "https://developers.google.com/google-ads/api/reference/rpc/v21/ConversionAdjustment"
        ),
        bought=(
            BoughtRow("tag", time_us=at(10), order_id="A-1"),
            BoughtRow("upload", time_us=at(10.25), order_id="A-1"),
            BoughtRow("precedes", time_us=at(9), revokes="tag"),
            BoughtRow("not found", time_us=at(11), revokes="never bought"),
            BoughtRow("retracted", time_us=at(15), revokes="upload"),
            BoughtRow("already retracted", time_us=at(16), revokes="tag"),
            BoughtRow("other order", time_us=at(10), order_id="A-2"),
            # The trade: nothing can be adjusted after 54 days.
            BoughtRow("after 60 days", time_us=at(70), value_micros=40 * UNIT, revokes="other order"),
            BoughtRow("expired", time_us=at(101), value_micros=40 * UNIT, revokes="other order"),
        ),
        due={
            "tag": 100 * UNIT,
            "upload": None,
            "precedes": None,
            "not found": None,
            "retracted": -100 * UNIT,
            "already retracted": None,
            "other order": 100 * UNIT,
            "after 60 days": -40 * UNIT,
            "expired": None,
        },
        left_out={
            "upload": "repeat",
            "precedes": "no_conversion",
            "not found": "no_conversion",
            "already retracted": "more_than_left",
            "expired": "no_conversion",
        },
    ),
    OrderCase(
        title="one event from browser and server counts once by its name and id",
        source="https://developers.facebook.com/docs/marketing-api/conversions-api/parameters/server-event/",
        bought=(
            BoughtRow("browser", time_us=at(0), order_id="123"),
            BoughtRow("server", time_us=at(3 * MINUTE), order_id="123"),
            BoughtRow("other name", time_us=at(3 * MINUTE), conversion_type="lead", order_id="123"),
            BoughtRow("other id", time_us=at(3 * MINUTE), order_id="456"),
            BoughtRow("sent again after 36 hours", time_us=at(1.5), order_id="123"),
            BoughtRow("after five days", time_us=at(5), order_id="123"),
        ),
        due={
            "browser": 100 * UNIT,
            "server": None,
            "other name": 100 * UNIT,
            "other id": 100 * UNIT,
            "sent again after 36 hours": None,
            "after five days": 100 * UNIT,
        },
        left_out={"server": "repeat", "sent again after 36 hours": "repeat"},
    ),
    OrderCase(
        title="an event sent every 18 hours stays a repeat",
        source="https://ads.tiktok.com/help/article/event-deduplication",
        bought=(
            BoughtRow("first", time_us=at(0), order_id="A-1"),
            BoughtRow("after 18 hours", time_us=at(0.75), order_id="A-1"),
            BoughtRow("after 36 hours", time_us=at(1.5), order_id="A-1"),
            # The trade: its 48 hours run from the first event, so this one counts anew.
            BoughtRow("after 54 hours", time_us=at(2.25), order_id="A-1"),
        ),
        due={"first": 100 * UNIT, "after 18 hours": None, "after 36 hours": None, "after 54 hours": None},
        left_out={"after 18 hours": "repeat", "after 36 hours": "repeat", "after 54 hours": "repeat"},
    ),
    OrderCase(
        title="the report of one payment comes again days later",
        # The trade: the transaction id is counted once however late it comes again, so 100 in all.
        source=(
            "https://support.google.com/analytics/answer/12313109?hl=en "
            "https://github.com/woocommerce/woocommerce-paypal-payments/issues/1906"
        ),
        bought=(
            BoughtRow("paid", time_us=at(0), order_id="T-1"),
            BoughtRow("page opened again", time_us=at(0.5), order_id="T-1"),
            BoughtRow("told again after two days", time_us=at(2), order_id="T-1"),
            BoughtRow("told again after five days", time_us=at(5), order_id="T-1"),
        ),
        due={
            "paid": 100 * UNIT,
            "page opened again": None,
            "told again after two days": None,
            "told again after five days": 100 * UNIT,
        },
        left_out={"page opened again": "repeat", "told again after two days": "repeat"},
    ),
    OrderCase(
        title="renewals share the original transaction id, and each counts and is refunded by itself",
        source=(
            "https://developer.apple.com/documentation/storekit/transaction/originalid.md "
            "https://developer.apple.com/documentation/appstoreservernotifications/transactionid.md"
        ),
        bought=(
            BoughtRow("1001", time_us=at(0), value_micros=10 * UNIT, order_id="1001"),
            BoughtRow("1002", time_us=at(30), value_micros=10 * UNIT, order_id="1001"),
            BoughtRow("1003", time_us=at(60), value_micros=10 * UNIT, order_id="1001"),
            BoughtRow("refund of 1002", time_us=at(65), value_micros=10 * UNIT, revokes="1002"),
            BoughtRow("refund of 1002 again", time_us=at(66), value_micros=10 * UNIT, revokes="1002"),
        ),
        due={
            "1001": 10 * UNIT,
            "1002": 10 * UNIT,
            "1003": 10 * UNIT,
            "refund of 1002": -10 * UNIT,
            "refund of 1002 again": None,
        },
        left_out={"refund of 1002 again": "more_than_left"},
    ),
    OrderCase(
        title="two shops give two orders one number",
        source="https://github.com/magento/magento2/issues/33457",
        bought=(
            BoughtRow("shop 1", user_id="u1", time_us=at(0), value_micros=80 * UNIT, order_id="2000000000"),
            # The trade: an order of its own, worth 50 of another buyer.
            BoughtRow("shop 2", user_id="u2", time_us=at(0.25), value_micros=50 * UNIT, order_id="2000000000"),
            BoughtRow(
                "shop 3", user_id="u3", time_us=at(0.5), value_micros=70 * UNIT, currency="USD", order_id="2000000000"
            ),
            # The trade: it takes from shop 2, never from shop 1.
            BoughtRow("return to shop 2", user_id="u2", time_us=at(9), value_micros=50 * UNIT, revokes="shop 2"),
            BoughtRow("return to shop 1", user_id="u1", time_us=at(10), value_micros=80 * UNIT, revokes="shop 1"),
        ),
        due={
            "shop 1": 80 * UNIT,
            "shop 2": None,
            "shop 3": 70 * UNIT,
            "return to shop 2": -50 * UNIT,
            "return to shop 1": -30 * UNIT,
        },
        left_out={"shop 2": "repeat", "return to shop 1": "more_than_left"},
    ),
    OrderCase(
        title="the events of one order share its id: the whole, and one for each item",
        source="https://github.com/snowplow/snowplow-python-tracker/issues/89",
        bought=(
            BoughtRow("whole", time_us=at(0), conversion_type="transaction", order_id="A-1"),
            BoughtRow("item 1", time_us=at(0), conversion_type="item", value_micros=60 * UNIT, order_id="A-1"),
            # The trade: another item of the order, not the first one again.
            BoughtRow("item 2", time_us=at(0), conversion_type="item", value_micros=40 * UNIT, order_id="A-1"),
        ),
        due={"whole": 100 * UNIT, "item 1": 60 * UNIT, "item 2": None},
        left_out={"item 2": "repeat"},
    ),
    OrderCase(
        title="a charge is refunded in parts until all of it is refunded",
        source="https://docs.rs/async-stripe-core/latest/stripe_core/refund/struct.CreateRefund.html",
        bought=(
            BoughtRow("charge", time_us=at(0)),
            BoughtRow("part 1", time_us=at(1), value_micros=30 * UNIT, revokes="charge"),
            BoughtRow("part 2", time_us=at(2), value_micros=50 * UNIT, revokes="charge"),
            # The trade: more than is left is an error, and takes nothing; the one after it would then take its 5.
            BoughtRow("part 3", time_us=at(3), value_micros=30 * UNIT, revokes="charge"),
            BoughtRow("part 4", time_us=at(4), value_micros=5 * UNIT, revokes="charge"),
        ),
        due={
            "charge": 100 * UNIT,
            "part 1": -30 * UNIT,
            "part 2": -50 * UNIT,
            "part 3": -20 * UNIT,
            "part 4": None,
        },
        left_out={"part 3": "more_than_left", "part 4": "more_than_left"},
    ),
    OrderCase(
        title="two refunds at one time do not exceed the payment",
        source="https://github.com/juspay/hyperswitch/issues/13182",
        bought=(
            BoughtRow("payment", time_us=at(0), currency="USD"),
            BoughtRow("refund a", time_us=at(1), value_micros=60 * UNIT, currency="USD", revokes="payment"),
            # The trade: one of the two is refused, so 60 in all.
            BoughtRow("refund b", time_us=at(1), value_micros=60 * UNIT, currency="USD", revokes="payment"),
        ),
        due={"payment": 100 * UNIT, "refund a": -60 * UNIT, "refund b": -40 * UNIT},
        left_out={"refund b": "more_than_left"},
    ),
    OrderCase(
        title="a refund a penny above the order, from rounding, is held to the order",
        source="https://github.com/woocommerce/woocommerce/issues/64668",
        bought=(
            BoughtRow("order", time_us=at(0), value_micros=179_250_000, currency="GBP", order_id="A-1"),
            BoughtRow("refund", time_us=at(1), value_micros=179_260_000, currency="GBP", revokes="order"),
        ),
        due={"order": 179_250_000, "refund": -179_250_000},
        left_out={"refund": "more_than_left"},
    ),
    OrderCase(
        title="one refund told twice, by the shop and by the payment service",
        source="https://github.com/woocommerce/woocommerce-gateway-stripe/issues/838",
        bought=(
            BoughtRow("order", time_us=at(0)),
            BoughtRow("shop", time_us=at(1), value_micros=30 * UNIT, revokes="order"),
            # The trade: the same refund again, which takes nothing more.
            BoughtRow("service", time_us=at(1) + UNIT, value_micros=30 * UNIT, revokes="order"),
            BoughtRow("whole order", time_us=at(0)),
            BoughtRow("shop, whole", time_us=at(1), revokes="whole order"),
            BoughtRow("service, whole", time_us=at(1) + UNIT, revokes="whole order"),
        ),
        due={
            "order": 100 * UNIT,
            "shop": -30 * UNIT,
            "service": -30 * UNIT,
            "whole order": 100 * UNIT,
            "shop, whole": -100 * UNIT,
            "service, whole": None,
        },
        left_out={"service, whole": "more_than_left"},
    ),
    OrderCase(
        title="rupees are not refunded in pounds",
        source="https://github.com/Automattic/woocommerce-payments/issues/5215",
        bought=(
            BoughtRow("order", time_us=at(0), value_micros=98_633 * UNIT, currency="INR", order_id="A-1"),
            BoughtRow("in pounds", time_us=at(1), value_micros=1_000 * UNIT, currency="GBP", revokes="order"),
            BoughtRow("in rupees", time_us=at(2), value_micros=98_633 * UNIT, currency="INR", revokes="order"),
        ),
        due={"order": 98_633 * UNIT, "in pounds": None, "in rupees": -98_633 * UNIT},
        left_out={"in pounds": "other_currency"},
    ),
    OrderCase(
        title="a refund of nothing is allowed, even if all is refunded",
        source=(
            "https://github.com/Automattic/woocommerce-payments/issues/7984 "
            "https://github.com/Automattic/woocommerce-payments/pull/8013"
        ),
        bought=(
            BoughtRow("order", time_us=at(0), currency="USD", order_id="A-1"),
            BoughtRow("in full", time_us=at(1), currency="USD", revokes="order"),
            BoughtRow("restocked", time_us=at(2), value_micros=0, currency="USD", revokes="order"),
        ),
        due={"order": 100 * UNIT, "in full": -100 * UNIT, "restocked": 0},
        left_out={},
    ),
)
"""Each with event ids of its own: between cases they are used again."""
