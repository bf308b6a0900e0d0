"""Amounts of money in events."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.contract.events import AMOUNT_LIMITS


def amount(name: str) -> Column:
    """The column ``name`` of events (one of ``MICROS``); 0 where it is above its limit, as for what has no price.

    Silver holds larger ones only if they were accepted before there was a limit. All that adds up money reads it by
    this function, so that live rows, corrections and credit agree.
    """
    return F.when(F.col(name) > AMOUNT_LIMITS[name], F.lit(0).cast("bigint")).otherwise(F.col(name))


def exact_sum(name: str) -> Column:
    """The sum of the column ``name`` (bigint) as a decimal of 38 digits, which no number of rows exceeds."""
    return F.sum(F.col(name).cast("decimal(38,0)"))
