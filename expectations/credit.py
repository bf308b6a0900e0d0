"""Whether credits add up to the values of their conversions."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.tables import GROSS_CREDIT_TABLES, NET_CREDIT_TABLES
from spark_jobs.credit.plan import CREDIT_PLANS
from spark_jobs.spark.open_lake import OpenLake


def count_unbalanced(lake: OpenLake) -> int | None:
    """How often the credits of ``lake`` do not add up: see :func:`unbalanced`; None if no credit was computed yet.

    Gross and net credits are both counted, where they exist. A run writes one table after the other, and a late refund
    changes the values of later ones: what differs while a run writes says nothing, so the answer is None then, too.
    """
    there = [pair for pair in (GROSS_CREDIT_TABLES, NET_CREDIT_TABLES) if all(lake.has(table) for table in pair)]
    if not there:
        return None
    # Asked first: a run that ends while rows are counted was writing when they were read.
    is_writing = CREDIT_PLANS.unfinished(lake) is not None
    found = sum(unbalanced(*(lake.read(table) for table in pair)).count() for pair in there)
    return None if found and is_writing else found


def unbalanced(paths: DataFrame, credits_: DataFrame) -> DataFrame:
    """Each conversion and model whose credits do not add up to the value of the conversion.

    A conversion that one table lacks does not count: while credit is being computed, one of them is ahead.
    """
    # Credits that are wrong may add up to more than 64 bits.
    credited = F.sum(F.col("credit_micros").cast("decimal(38,0)"))
    # An id may be that of two conversions.
    conversion = ["conversion_id", "conversion_time"]
    totals = credits_.groupBy(*conversion, "model").agg(credited.alias("credited"))
    joined = totals.join(paths.select(*conversion, "value_micros"), on=conversion, how="inner")
    return joined.where(~F.col("credited").eqNullSafe(F.col("value_micros").cast("decimal(38,0)")))
