"""Which conversions count, and what refunds take back.

::

    credit.repeat_within 2d

    order o-7    p1 100 EUR 12:00    p2 100 EUR 12:01        a repeat of p1: its 100 EUR are left out
                 r1 revokes p1: 30                           takes back 30
                 r2 revokes p2: 100                          takes back 70 of p1, which is what is left; 30 are left out
                 r3 revokes p1: 20 GBP                       another currency: 20 GBP are left out

Every conversion that is not credited with its whole value is in ``gold/left_out``, with the reason.
"""

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.config.choices import LeftOut
from spark_jobs.config.durations import microseconds
from spark_jobs.config.sections import CreditSettings
from spark_jobs.contract.events import CONVERSION
from spark_jobs.spark.columns import amount

ORDER = "order"
"""Column of :func:`order_of`."""
BASIS_USER, BASIS_TIME = "basis_user", "basis_time"
"""Columns: the user and the time for which touches are looked up; null: no touches."""
_OF_CONVERSION = (
    *("conversion_id", "user_id", "conversion_time", "conversion_type", "currency", "order_id", "revokes"),
    "event_date",
)
JUDGED = (*_OF_CONVERSION, "value_micros", "reason", "left_out_micros", "counted_id", BASIS_USER, BASIS_TIME)
"""Columns of :func:`judged`."""
_VALUE, _COUNTED = "value", "counted"


def order_of(rows: DataFrame, own: CreditSettings) -> Column:
    """``order``, equal for purchases of one order: their ``order_id`` or id, and what ``credit.same_order`` names.

    A column that ``rows`` lack, because it is kept only since later, is null.
    """
    alone = F.when(F.col("order_id").isNull(), F.col("event_id"))
    same = [F.col(name).cast("string") if name in rows.columns else F.lit(None) for name in own.same_order]
    return F.to_json(F.array("order_id", alone, *same)).alias(ORDER)


def judged(conversions: DataFrame, own: CreditSettings) -> DataFrame:
    """Every conversion, with the value that it is credited with and the value that is left out.

    A purchase is a repeat if the one before it in its order is at most ``credit.repeat_within`` earlier. A refund goes
    to the last purchase before it with the id that it revokes or, if that is a repeat, to the one that counts instead;
    in the order of their times, refunds take back what is left of it.

    Args:
        conversions: rows with the columns of silver, each event once. The rows up to ``credit.conversion_lookback`` and
            ``credit.repeat_within`` before the wanted ones must be among them.
        own: the settings.

    Returns:
        The columns :data:`JUDGED`: of ``gold/paths`` those about the conversion, where ``value_micros`` is null if it
        has no path; of ``gold/left_out`` the reason, null if nothing is left out, and what belongs to it; the
        conversion whose touches it has, as ``basis_user`` and ``basis_time``.
    """
    reported = conversions.where(F.col("event_type") == CONVERSION)
    each = reported.select(
        F.col("event_id").alias("conversion_id"),
        F.col("event_time").alias("conversion_time"),
        *(name for name in _OF_CONVERSION if name not in ("conversion_id", "conversion_time", "event_date")),
        F.to_date("event_time").alias("event_date"),
        F.coalesce(amount("value_micros"), F.lit(0)).alias(_VALUE),
        order_of(reported, own),
    )
    is_refund = F.col("revokes").isNotNull()
    bought = _with_counted(each.where(~is_refund), own)
    both = _purchases(bought, own).unionByName(_refunds(each.where(is_refund), bought, own))
    basis = {"counted_id": "conversion_id", BASIS_USER: "user_id", BASIS_TIME: "conversion_time"}
    return both.withColumns({name: F.col(_COUNTED)[field] for name, field in basis.items()}).select(*JUDGED)


def lies_within(time: Column, lookback: timedelta, before: str = "conversion_time") -> Column:
    """Whether ``time`` is not after ``before`` and at most ``lookback`` before it; null if ``time`` is."""
    return (F.unix_micros(before) - F.unix_micros(time)).between(0, microseconds(lookback))


def _with_counted(bought: DataFrame, own: CreditSettings) -> DataFrame:
    """Purchases with ``is_repeat`` and ``counted``: the last one of the order, up to each, that counts."""
    of_order = Over.partitionBy(ORDER).orderBy("conversion_time", "conversion_id")
    since_last = F.unix_micros("conversion_time") - F.lag(F.unix_micros("conversion_time")).over(of_order)
    repeated = bought.withColumn("is_repeat", F.coalesce(since_last <= microseconds(own.repeat_within), F.lit(False)))
    counts = F.when(~F.col("is_repeat"), F.struct("conversion_time", "conversion_id", "user_id", "currency", _VALUE))
    return repeated.withColumn(_COUNTED, F.last(counts, ignorenulls=True).over(of_order))


def _purchases(bought: DataFrame, own: CreditSettings) -> DataFrame:
    is_repeat, is_near = F.col("is_repeat"), lies_within(F.col(_COUNTED)["conversion_time"], own.conversion_lookback)
    return bought.select(
        *_OF_CONVERSION,
        F.when(is_near, F.col(_COUNTED)).alias(_COUNTED),
        F.when(~is_repeat, F.col(_VALUE)).alias("value_micros"),
        F.when(is_repeat, F.lit(LeftOut.REPEAT.value)).alias("reason"),
        F.when(is_repeat, F.col(_VALUE)).alias("left_out_micros"),
    )


def _refunds(refunds: DataFrame, bought: DataFrame, own: CreditSettings) -> DataFrame:
    """The ``refunds``; of ``bought`` purchases, those that they revoke are looked up."""
    revoked = bought.select(
        F.col("conversion_id").alias("revoked_id"), F.col("conversion_time").alias("revoked_time"), _COUNTED
    )
    is_meant = (F.col("revokes") == F.col("revoked_id")) & lies_within(F.col("revoked_time"), own.conversion_lookback)
    found = refunds.join(revoked, on=is_meant, how="left").groupBy(*_OF_CONVERSION, _VALUE)
    last = found.agg(F.max(F.struct("revoked_time", _COUNTED))[_COUNTED].alias(_COUNTED))
    is_near = lies_within(F.col(_COUNTED)["conversion_time"], own.conversion_lookback)
    last = last.withColumn(_COUNTED, F.when(is_near, F.col(_COUNTED)))
    value, counted = F.col(_VALUE), F.col(_COUNTED)
    fits = counted.isNotNull() & ((value == 0) | F.col("currency").eqNullSafe(counted["currency"]))
    # Those that go to nothing are apart, each by itself, so that they do not gather in one task.
    place = (F.coalesce(counted["conversion_id"], F.col("conversion_id")), counted["conversion_time"], F.col("fits"))
    before = Over.partitionBy(*place).orderBy("conversion_time", "conversion_id")
    # More refunds than a number of 64 bits can add up would go to one purchase only by mistake, but can.
    earlier = F.sum(value.cast("decimal(38,0)")).over(before.rowsBetween(Over.unboundedPreceding, -1))
    left = F.greatest(counted[_VALUE] - F.coalesce(earlier, F.lit(0)), F.lit(0)).cast("bigint")
    taken = F.when(F.col("fits"), F.least(value, left)).otherwise(F.lit(0).cast("bigint"))
    reason = (
        F.when(counted.isNull(), F.lit(LeftOut.NO_CONVERSION.value))
        .when(~F.col("fits"), F.lit(LeftOut.OTHER_CURRENCY.value))
        .when(F.col("taken") < value, F.lit(LeftOut.MORE_THAN_LEFT.value))
    )
    has_path = F.col("fits") & ((F.col("taken") > 0) | (value == 0))
    return (
        last.withColumn("fits", fits)
        .withColumn("taken", taken)
        .select(
            *_OF_CONVERSION,
            _COUNTED,
            F.when(has_path, -F.col("taken")).alias("value_micros"),
            reason.alias("reason"),
            F.when(reason.isNotNull(), F.col("taken") - value).alias("left_out_micros"),
        )
    )
