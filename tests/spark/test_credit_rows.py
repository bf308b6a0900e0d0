"""Paths and credits by Spark: golden cases, and hundreds of conversions against the oracle."""

import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.choices import CreditModel, CreditViews, LeftOut, TouchKind
from spark_jobs.config.durations import EPOCH, microseconds, time_of_us
from spark_jobs.config.sections import CreditSettings
from spark_jobs.contract.tables import ATTRIBUTIONS, CREDITS, LEFT_OUT, PATHS, SILVER_EVENTS, Table
from spark_jobs.credit.last_touches import crowded_users, with_last
from spark_jobs.credit.models import _decayed, credits_of
from spark_jobs.credit.orders import judged
from spark_jobs.credit.paths import left_out_of, paths_of, shown_of, with_touches
from tests.support.credit_cases import CREDIT_CASES, START_US, CreditCase, apart
from tests.support.credit_models import DECAY, Touch, shares, weights
from tests.support.credit_oracle import Conversion, Expected, Row, Shown, expected_credit, in_order
from tests.support.order_cases import ORDER_CASES, OrderCase

pytestmark = pytest.mark.derived

_HIGHEST = 10**15


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return microseconds(value - EPOCH)
        case dict():
            return tuple(map(_plain, value.values()))
        case list():
            return tuple(map(_plain, value))
    return value


def _rows(frame: DataFrame, table: Table) -> list[Row]:
    assert tuple(frame.columns) == table.column_names
    types = {column.name: column.sql_type.lower().replace(": ", ":").replace(", ", ",") for column in table.columns}
    assert dict(frame.dtypes) == types
    return in_order(list(map(_plain, row.values())) for row in frame.toArrow().to_pylist())


def _silver(spark: SparkSession, conversions: Sequence[Conversion]) -> DataFrame:
    rows = []
    for one in conversions:
        time = time_of_us(one.time_us)
        values = one._asdict() | {"event_type": "conversion", "event_time": time, "event_date": time.date()}
        rows.append(tuple(values.get(name) for name in SILVER_EVENTS.column_names))
    return spark.createDataFrame(rows, SILVER_EVENTS.ddl).repartition(2)


def _attributions(spark: SparkSession, shown: Sequence[Shown]) -> DataFrame:
    rows = []
    for one in shown:
        values: dict[str, Any] = one._asdict()
        for name in ("impression", "click"):
            us = values[f"{name}_us"]
            values[f"{name}_time"] = None if us is None else time_of_us(us)
        rows.append(tuple(values.get(name) for name in ATTRIBUTIONS.column_names))
    return spark.createDataFrame(rows, ATTRIBUTIONS.ddl).repartition(2)


def _touched(
    spark: SparkSession, conversions: Sequence[Conversion], shown: Sequence[Shown], own: CreditSettings
) -> DataFrame:
    due, rows = judged(_silver(spark, conversions), own), shown_of(_attributions(spark, shown))
    crowded = crowded_users(due, rows, own.most_touches).localCheckpoint()
    return with_touches(due, rows, own, crowded if crowded.count() else None)


def _computed(
    spark: SparkSession, conversions: Sequence[Conversion], shown: Sequence[Shown], own: CreditSettings
) -> Expected:
    touched = _touched(spark, conversions, shown, own).persist()
    found = paths_of(touched)
    try:
        return Expected(
            _rows(found, PATHS), _rows(credits_of(found, own), CREDITS), _rows(left_out_of(touched), LEFT_OUT)
        )
    finally:
        touched.unpersist()


@pytest.fixture(scope="module")
def golden(spark: SparkSession) -> dict[str, str]:
    """By conversion, ``outcome value touches``: a touch is its click, or the impression that was seen."""
    conversions = [apart(row, number) for number, case in enumerate(CREDIT_CASES) for row in case.conversions]
    shown = [apart(row, number) for number, case in enumerate(CREDIT_CASES) for row in case.shown]
    own = CreditSettings()
    touched = _touched(spark, conversions, shown, own).persist()
    told = {}
    for row in (dict(zip(LEFT_OUT.column_names, row, strict=True)) for row in _rows(left_out_of(touched), LEFT_OUT)):
        told[row["conversion_id"]] = f"{row['reason']} {row['left_out_micros']}"
    found = paths_of(touched)
    for row in (dict(zip(PATHS.column_names, row, strict=True)) for row in _rows(found, PATHS)):
        touches = [
            (click_id or impression_id).partition("/")[2] for _, _, impression_id, click_id, *_ in row["touches"]
        ]
        path = " ".join([row["outcome"], str(row["value_micros"]), *touches])
        told[row["conversion_id"]] = ", ".join([path, *filter(None, [told.get(row["conversion_id"])])])
    touched.unpersist()
    return told


@pytest.mark.parametrize(
    ("number", "case"), [pytest.param(number, case, id=case.title) for number, case in enumerate(CREDIT_CASES)]
)
def test_a_golden_case_has_the_paths_as_written(golden: dict[str, str], number: int, case: CreditCase) -> None:
    own = {key.partition("/")[2]: text for key, text in golden.items() if key.startswith(f"{number}/")}
    assert own == case.due


@pytest.fixture(scope="module")
def of_trade(spark: SparkSession) -> dict[str, tuple[int | None, str | None]]:
    """By conversion of :data:`ORDER_CASES`, what it is credited with, and why value is left out."""
    rows = [apart(Conversion(*row), number) for number, case in enumerate(ORDER_CASES) for row in case.bought]
    found = judged(_silver(spark, rows), CreditSettings()).select("conversion_id", "value_micros", "reason").collect()
    return {row["conversion_id"]: (row["value_micros"], row["reason"]) for row in found}


@pytest.mark.parametrize(
    ("number", "case"), [pytest.param(number, case, id=case.title) for number, case in enumerate(ORDER_CASES)]
)
def test_orders_and_refunds_are_those_of_the_trade(
    of_trade: dict[str, tuple[int | None, str | None]], number: int, case: OrderCase
) -> None:
    own = {key.partition("/")[2]: found for key, found in of_trade.items() if key.startswith(f"{number}/")}
    assert {key: value for key, (value, _) in own.items()} == case.due
    assert {key: reason for key, (_, reason) in own.items() if reason} == case.left_out


def test_orders_of_two_shops_with_one_number_are_two(spark: SparkSession) -> None:
    minute = 60_000_000
    bought = [
        Conversion(f"p{n}", f"u{n}", START_US + n * minute, "purchase", 100, "EUR", "1009", None) for n in range(5)
    ]
    shop = F.when(F.col("event_id").isin("p0", "p2"), "de").when(F.col("event_id").isin("p1", "p3"), "fr")
    silver = _silver(spark, bought).withColumn("shop", shop)
    own = CreditSettings(same_order=("conversion_type", "currency", "shop"))
    for rows, expected in ((silver, {"p0", "p1", "p4"}), (silver.drop("shop"), {"p0"})):
        found = judged(rows, own).where("value_micros IS NOT NULL").select("conversion_id").collect()
        assert {row["conversion_id"] for row in found} == expected, "rows of before a column is kept have none"


_HALF_HOUR = 1_800_000_000
_OWN: dict[str, Any] = {
    "click_lookback": "6h",
    "view_lookback": "2h",
    "half_life": "37min",
    "conversion_lookback": "16h",
    "repeat_within": "4h",
}
_VALUES = (0, 1, 2, 7, 99, 100, 1_999_999, 123_456_789_012_345, _HIGHEST)


def _world(seed: int) -> tuple[list[Conversion], list[Shown]]:
    """A day of twelve users. All times are half-hours or a microsecond beside them: so bounds and ties are common."""
    chance = random.Random(seed)

    def at(slot: int) -> int:
        return START_US + slot * _HALF_HOUR + chance.choice((0, 0, 0, 0, 0, 0, -1, 1))

    users = [*(f"u{number}" for number in range(12)), None]
    shown = [Shown("orphan_click", f"x{n}", None, None, None, users[n], f"y{n}", at(20)) for n in range(12)]
    for number in range(300):
        # Some users see more ads than others, and every other one never clicks.
        slot, user = chance.randrange(48), chance.choice(users[: chance.randint(1, len(users))])
        ad = (f"i{number}", at(slot), f"c{chance.randrange(4)}", f"ad{chance.randrange(3)}", user)
        clicks = chance.choice((0, 0, 1, 1, 2, 3)) if user in users[::2] else 0
        shown += [
            Shown("clicked", *ad, f"k{chance.randrange(10**6)}-{number}", ad[1] + chance.randrange(3) * _HALF_HOUR)
            for _ in range(clicks)
        ] or [Shown("unclicked", *ad, None, None)]
    conversions = []
    for number in range(360):
        order = f"o{chance.randrange(60)}" if chance.random() < 0.6 else None
        # Some are revoked again and again, some refunds revoke nothing.
        revokes = f"p{chance.choice((chance.randrange(380), chance.randrange(20)))}" if chance.random() < 0.4 else None
        value, user = chance.choice(_VALUES), chance.choice(users)
        kind, currency = chance.choice(
            (("purchase", "EUR"), ("purchase", "EUR"), ("purchase", "GBP"), ("signup", None))
        )
        conversions.append(
            Conversion(f"p{number}", user, at(chance.randrange(60)), kind, value, currency, order, revokes)
        )
    chance.shuffle(shown)
    return conversions, shown


@pytest.fixture(scope="module", params=[views.value for views in CreditViews])
def compared(request: pytest.FixtureRequest, spark: SparkSession) -> tuple[CreditSettings, Expected, Expected]:
    """The settings, what Spark finds and what the oracle does."""
    own = CreditSettings.model_validate({**_OWN, "views": request.param})
    conversions, shown = _world(28)
    return own, _computed(spark, conversions, shown, own), expected_credit(conversions, shown, own)


def test_paths_are_those_of_the_oracle(compared: tuple[CreditSettings, Expected, Expected]) -> None:
    own, found, expected = compared
    assert found.paths == expected.paths
    rows = [dict(zip(PATHS.column_names, row, strict=True)) for row in found.paths]
    outcomes = Counter(row["outcome"] for row in rows)
    assert len(outcomes) == (2 if own.views is CreditViews.NEVER else 3), "there are too few cases"
    assert min(outcomes.values()) > 10
    assert max(row["path_length"] for row in rows) > 5
    assert any(row["revokes"] and row["touches"] for row in rows)
    assert {abs(row["value_micros"]) for row in rows if row["touches"]} == set(_VALUES)


def test_what_is_left_out_is_that_of_the_oracle(compared: tuple[CreditSettings, Expected, Expected]) -> None:
    _, found, expected = compared
    assert found.left_out == expected.left_out
    rows = [dict(zip(LEFT_OUT.column_names, row, strict=True)) for row in found.left_out]
    reasons = Counter(row["reason"] for row in rows)
    assert {*reasons} == {*LeftOut}, "there are too few cases"
    assert min(reasons.values()) >= 5
    assert {row["campaign_id"] for row in rows} > {None, "c1"}


@pytest.mark.parametrize(("views", "most"), list(zip(CreditViews, (1, 2, 7), strict=True)))
def test_only_the_last_clicks_and_views_of_a_crowded_user_are_touches(
    spark: SparkSession, views: CreditViews, most: int
) -> None:
    conversions, shown = _world(29 + most)
    own = CreditSettings.model_validate({**_OWN, "views": views.value, "most_touches": most})
    found, expected = _computed(spark, conversions, shown, own), expected_credit(conversions, shown, own)
    assert found == expected
    unbounded = expected_credit(conversions, shown, own.model_copy(update={"most_touches": 10**6}))
    shorter = sum(row not in expected.paths for row in unbounded.paths)
    assert 10 < shorter < len(expected.paths), "there are too few cases"


def test_a_conversion_of_a_crowded_user_is_compared_with_the_last_touches_only(spark: SparkSession) -> None:
    minute, count, most = 60_000_000, 1000, 10
    bought = [Conversion(f"p{n}", "u", START_US + n * minute, "purchase", 100, "EUR", None, None) for n in range(count)]
    shown = [
        Shown("clicked", f"i{n}", START_US, "c", "a", "u", f"k{n:04}", START_US + n * minute) for n in range(count)
    ]
    due, rows = judged(_silver(spark, bought), CreditSettings()), shown_of(_attributions(spark, shown))
    found = with_last(due, rows, F.col("click_time"), F.col("click_id"), most)
    by_conversion = found.groupBy("conversion_id").agg(F.count("*"), F.min("click_id"), F.max("click_id")).collect()
    assert {tuple(row) for row in by_conversion} == {
        (f"p{n}", min(n + 1, most), f"k{max(n - most + 1, 0):04}", f"k{n:04}") for n in range(count)
    }


def test_no_value_is_lost_and_no_refund_takes_more_than_was_bought(
    compared: tuple[CreditSettings, Expected, Expected],
) -> None:
    _, found, _ = compared
    paths = [dict(zip(PATHS.column_names, row, strict=True)) for row in found.paths]
    left_out = [dict(zip(LEFT_OUT.column_names, row, strict=True)) for row in found.left_out]
    value = sum(row["value_micros"] for row in paths) + sum(row["left_out_micros"] for row in left_out)
    conversions, _ = _world(28)
    assert value == sum(-one.value_micros if one.revokes else one.value_micros for one in conversions)
    for currency in ("EUR", "GBP", None):
        of_currency = [row["value_micros"] for row in paths if row["currency"] == currency]
        assert sum(of_currency) >= 0
        assert any(value < 0 for value in of_currency) or currency is None


def test_credits_are_those_of_the_oracle(compared: tuple[CreditSettings, Expected, Expected]) -> None:
    own, found, expected = compared
    assert found.credits == expected.credits
    assert {row[1] for row in found.credits} == {model.value for model in own.models} == set(CreditModel)


def test_credits_are_those_of_the_rule(compared: tuple[CreditSettings, Expected, Expected]) -> None:
    own, found, _ = compared
    credited = {
        (row["conversion_id"], row["model"], row["position"]): (row["credit_micros"], row["weight_ppm"])
        for row in (dict(zip(CREDITS.column_names, row, strict=True)) for row in found.credits)
    }
    due: dict[tuple[str, str, int], tuple[int, int]] = {}
    for path in (dict(zip(PATHS.column_names, row, strict=True)) for row in found.paths):
        touches = [Touch(TouchKind(touch[1]), touch[-1]) for touch in path["touches"]]
        for model in own.models:
            weighed = weights(model, touches, own.half_life) or [1]
            positions = [touch[0] for touch in path["touches"]] or [0]
            parts = zip(positions, shares(path["value_micros"], weighed), shares(1_000_000, weighed), strict=True)
            due |= {(path["conversion_id"], model.value, position): (micros, ppm) for position, micros, ppm in parts}
    assert credited == due


def test_the_order_of_arrival_changes_nothing(spark: SparkSession) -> None:
    own = CreditSettings.model_validate({**_OWN, "views": "always", "models": "time_decay,position_based"})
    conversions, shown = _world(25)
    assert _computed(spark, conversions[::-1], shown[::-1], own) == expected_credit(conversions, shown, own)


def test_a_refund_of_an_id_that_was_used_again_takes_back_the_last_of_its_conversions(spark: SparkSession) -> None:
    hour = 2 * _HALF_HOUR
    bought = Conversion("p", "u", START_US, "purchase", 100, "EUR", "o1", None)
    again = bought._replace(user_id="v", time_us=START_US + hour, order_id="o2")
    later = again._replace(user_id="w", time_us=START_US + 3 * hour, order_id="o3")
    refund = again._replace(event_id="r", user_id="x", time_us=START_US + 2 * hour, order_id=None, revokes="p")
    seen = [Shown("unclicked", f"i-{user}", START_US - hour, "spring", "ad", user, None, None) for user in "uvwx"]
    conversions = _silver(spark, [bought, again, later, refund])
    own = CreditSettings()
    paths = paths_of(with_touches(judged(conversions, own), shown_of(_attributions(spark, seen)), own))
    rows = [dict(zip(PATHS.column_names, row, strict=True)) for row in _rows(paths, PATHS)]
    found = [(row["conversion_id"], row["value_micros"], [touch[2] for touch in row["touches"]]) for row in rows]
    assert sorted(found) == [("p", 100, ["i-u"]), ("p", 100, ["i-v"]), ("p", 100, ["i-w"]), ("r", -100, ["i-v"])]


def test_the_weights_of_time_decay_are_the_exact_powers_for_every_step(spark: SparkSession) -> None:
    step_us = 1_000_003
    half_life = timedelta(microseconds=4096 * step_us)
    ages = spark.range(0, 3 * 4096).select((F.col("id") * step_us).alias("age"))
    found = ages.select(_decayed(F.col("age"), microseconds(half_life)).alias("weight")).toArrow()["weight"].to_pylist()
    assert found == [DECAY[at % 4096] >> (at // 4096) for at in range(3 * 4096)]
