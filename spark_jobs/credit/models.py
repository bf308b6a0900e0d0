"""``gold/credits``: the credit of each touch of a conversion, by each model.

:mod:`tests.support.credit_models` defines the models. This computes the same for whole tables, in integers of up to
38 digits: a value of 63 bits times a weight of 33 has 29.
"""

from collections.abc import Callable
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.choices import CreditModel, TouchKind
from spark_jobs.config.durations import microseconds
from spark_jobs.config.sections import CreditSettings
from spark_jobs.contract.tables import CREDITS
from spark_jobs.credit.plan import DECAY_BITS, DECAY_STEPS, WHOLE_PPM

_FEWEST_WITH_MIDDLE = 3
_OF_TOUCH = ("position", "campaign_id", "ad_id", "click_id", "impression_id")
_UNDIVIDED = (CreditModel.LAST_TOUCH, CreditModel.FIRST_TOUCH, CreditModel.LAST_CLICK)
"""The models that give one touch everything, so that nothing is rounded."""


def credits_of(paths: DataFrame, own: CreditSettings) -> DataFrame:
    """The credits of ``paths`` by each of ``credit.models``.

    Args:
        paths: rows of ``gold/paths``.
        own: the settings.

    Returns:
        The columns of ``gold/credits``: a row for each touch and model, also where its credit is 0; for a conversion
        without touches one for each model.
    """
    touched = paths.withColumn(
        "touches", F.when(F.size("touches") > 0, F.col("touches")).otherwise(F.array(_no_touch()))
    )
    of_models = [
        F.struct(F.lit(model.value).alias("model"), _credited(model, own.half_life).alias("credited"))
        for model in own.models
    ]
    by_model = touched.withColumn("by_model", F.explode(F.array(*of_models)))
    by_touch = by_model.withColumn("credit", F.explode("by_model.credited"))
    return by_touch.select("*", "by_model.model", "credit.*").select(*CREDITS.column_names)


def _no_touch() -> Column:
    """The touch of an organic conversion: all fields are null."""
    names = ("kind", "impression_id", "click_id", "campaign_id", "ad_id")
    return F.struct(
        F.lit(0).alias("position"),
        *(F.lit(None).cast("string").alias(name) for name in names),
        F.lit(None).cast("timestamp").alias("touch_time"),
    )


def _credited(model: CreditModel, half_life: timedelta) -> Column:
    """The touches, each with ``credit_micros`` and ``weight_ppm``."""
    value = F.col("value_micros")
    sign = F.when(value < 0, F.lit(-1)).otherwise(F.lit(1))

    def with_credit(shares: Column) -> Column:
        return F.transform(
            "touches",
            lambda touch, place: F.struct(
                *(touch[name].alias(name) for name in _OF_TOUCH),
                (F.get(shares["micros"], place) * sign).alias("credit_micros"),
                F.get(shares["ppm"], place).alias("weight_ppm"),
            ),
        )

    def shared(weighed: Column) -> Column:
        if model in _UNDIVIDED:
            micros = F.transform(weighed, lambda weight: weight * F.abs(value))
            ppm = F.transform(weighed, lambda weight: weight * WHOLE_PPM)
        else:
            micros = _shares(F.abs(value).cast("decimal(19,0)"), weighed, "decimal(12,0)")
            ppm = _shares(F.lit(WHOLE_PPM).cast("bigint"), weighed, "bigint")
        return _let(F.struct(micros.alias("micros"), ppm.alias("ppm")), with_credit)

    return _let(_weights(model, half_life), shared)


def _weights(model: CreditModel, half_life: timedelta) -> Column:
    """The weights of the touches: see :func:`tests.support.credit_models.weights`."""
    touches, count = F.col("touches"), F.size("touches")
    match model:
        case CreditModel.LAST_TOUCH:
            return _all_for(count - 1)
        case CreditModel.FIRST_TOUCH:
            return _all_for(F.lit(0))
        case CreditModel.LAST_CLICK:
            clicks = F.transform(touches, lambda touch, place: F.when(touch["kind"] == TouchKind.CLICK.value, place))
            return _let(F.coalesce(F.array_max(clicks), count - 1), _all_for)
        case CreditModel.LINEAR:
            return F.transform(touches, lambda _: F.lit(1).cast("bigint"))
        case CreditModel.POSITION_BASED:
            return F.transform(touches, lambda _, place: _by_position(place, count))
        case CreditModel.TIME_DECAY:
            last = F.unix_micros(F.element_at(touches, -1)["touch_time"])
            return F.transform(
                touches, lambda touch: _decayed(last - F.unix_micros(touch["touch_time"]), microseconds(half_life))
            )


def _all_for(chosen: Column) -> Column:
    return F.transform("touches", lambda _, place: (place == chosen).cast("bigint"))


def _by_position(place: Column, count: Column) -> Column:
    is_end = (count >= _FEWEST_WITH_MIDDLE) & ((place == 0) | (place == count - 1))
    return F.when(is_end, 2 * (count - 2)).otherwise(F.lit(1)).cast("bigint")


def _decayed(age_us: Column, half_life_us: int) -> Column:
    # Without a touch, the age is null.
    age = F.coalesce(age_us, F.lit(0).cast("bigint"))
    halvings, rest = _div(age, F.lit(half_life_us)), age % half_life_us
    step = _div(rest * DECAY_STEPS, F.lit(half_life_us))
    # Powers of doubles are exact once rounded: a test compares all of them with exact ones.
    young = F.floor(F.pow(F.lit(2.0), DECAY_BITS - step / DECAY_STEPS) + 0.5)
    return F.when(halvings > DECAY_BITS, F.lit(0).cast("bigint")).otherwise(
        F.call_function("shiftright", young, halvings.cast("int"))
    )


def _shares(amount: Column, weights: Column, exact_type: str) -> Column:
    """The shares of ``amount``, which is not negative: see :func:`tests.support.credit_models.shares`.

    ``exact_type`` is the type that a weight needs, so that its product with the amount is exact.
    """

    def rounded_down(total: Column) -> Column:
        """The parts with the remainders that rounding down took from them, the largest remainders first."""
        return F.sort_array(F.transform(weights, lambda weight, place: part(weight, place, total)))

    def part(weight: Column, place: Column, total: Column) -> Column:
        product = amount * weight.cast(exact_type)
        return F.struct((-(product % total)).alias("lost"), place.alias("place"), _div(product, total).alias("micros"))

    def topped_up(parts: Column) -> Column:
        left = amount - _sum(_micros(parts))
        return _let(left, lambda left: F.transform(parts, lambda one, turn: _with_one_more(one, turn < left)))

    by_loss = _let(_sum(weights), rounded_down)
    in_place = F.sort_array(_let(by_loss, topped_up))
    return _micros(in_place)


def _micros(parts: Column) -> Column:
    return F.transform(parts, lambda part: part["micros"])


def _with_one_more(part: Column, is_due: Column) -> Column:
    micros = part["micros"] + F.when(is_due, F.lit(1)).otherwise(F.lit(0))
    return F.struct(part["place"].alias("place"), micros.alias("micros"))


def _sum(numbers: Column) -> Column:
    return F.aggregate(numbers, F.lit(0).cast("bigint"), lambda total, number: total + number)


def _div(number: Column, by: Column) -> Column:
    return F.call_function("div", number, by)


def _let(value: Column, body: Callable[[Column], Column]) -> Column:
    """``body`` of ``value``, which is computed once; inside a lambda Spark would compute it for each element."""
    return F.element_at(F.transform(F.array(value), body), 1)
