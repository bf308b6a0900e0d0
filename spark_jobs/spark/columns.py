"""Columns of time, and sides of joins."""

from datetime import date, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import microseconds
from spark_jobs.contract.events import AMOUNT_LIMITS

FEW_ROWS, MOST_ROWS = 20_000, 1_000_000
"""The most rows of a join's side that are sent to every task, through the driver's memory: of any columns, and of a few
narrow ones."""
_TIMES = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def interval(length: timedelta) -> Column:
    """``length`` as a literal: from it Spark derives how long a join keeps each side, before it folds expressions."""
    return F.expr(f"INTERVAL {microseconds(length)} MICROSECOND")


def batch_time() -> Column:
    """The time at which the batch was planned (timestamp), without code generation. A retried batch keeps its time.

    In generated code it would be a constant: new code to compile for every batch. Spark generates no code for
    higher-order functions or their arguments. This one folds an empty array, and so returns its initial value.
    """
    return uncompiled(F.current_timestamp())


def uncompiled(value: Column) -> Column:
    """``value``, a constant that is another one each time, without code generation: see :func:`batch_time`."""
    return F.aggregate(F.array().cast("array<int>"), value, lambda initial, _: initial)


def after_watermark(time: str, condition: Column) -> Column:
    """``condition`` as a filter that Spark leaves above the watermark on the column ``time``.

    Spark pushes a filter below the watermark unless it refers to the event-time column. There, rows that are filtered
    out would no longer advance the watermark: the common clock of all events, heartbeats included, would be lost.
    """
    return F.when(F.col(time).isNull(), F.lit(False)).otherwise(condition)


def few(rows: DataFrame, most: int = FEW_ROWS) -> DataFrame:
    """``rows``, which are cheap to count, as a side of a join: sent to every task if they are at most ``most``."""
    return F.broadcast(rows) if rows.limit(most + 1).count() <= most else rows


def dates_of(rows: DataFrame, column: str = "event_date") -> list[date]:
    """The dates in ``column``, each once, ascending."""
    return sorted(row[0] for row in rows.select(column).distinct().collect())


def dates_within(rows: DataFrame, reach: timedelta, time: str = "event_time") -> list[date]:
    """The dates within ``reach`` of a ``time`` of ``rows``, ascending."""
    first, last = (F.to_date(F.col(time) + interval(sign * reach)) for sign in (-1, 1))
    return dates_of(rows.select(F.explode(F.sequence(first, last)).alias("event_date")))


def between(rows: DataFrame, time: str, bounds: DataFrame, first: str, last: str) -> DataFrame:
    """Those of ``rows`` whose ``time`` lies from the least ``first`` to the largest ``last`` of ``bounds``.

    The times are numbers that are known, so that Delta skips the files outside.
    """
    ((first_us, last_us),) = bounds.agg(F.unix_micros(F.min(first)), F.unix_micros(F.max(last))).collect()
    if first_us is None:
        return rows.where(F.lit(False))
    return rows.where(F.col(time).between(F.timestamp_micros(F.lit(first_us)), F.timestamp_micros(F.lit(last_us))))


def in_order(*columns: str) -> Column:
    """``columns`` as one text that no other values give."""
    return F.to_json(F.array(*[F.col(name).cast("string") for name in columns]))


def json_row(*columns: str) -> Column:
    """A JSON object of ``columns``, nulls included; times in the session's zone, UTC, to the microsecond with ``Z``.

    Collected by themselves, times would be turned to the zone of the machine and lose their own.
    """
    return F.to_json(F.struct(*columns), {**_TIMES, "ignoreNullFields": "false"})


def from_json_row(text: str, ddl: str) -> Column:
    """A struct of the columns ``ddl`` of a row in the column ``text``, as :func:`json_row` has written it."""
    return F.from_json(text, ddl, _TIMES)


def amount(name: str) -> Column:
    """The column ``name`` of events (one of ``MICROS``); null where it is above its limit, as for what has no price.

    Silver holds larger ones only if they were accepted before there was a limit. All that adds up money reads it by
    this function, so that live rows, corrections and credit agree.
    """
    return F.when(F.col(name) <= AMOUNT_LIMITS[name], F.col(name))


def exact_sum(name: str) -> Column:
    """The sum of the column ``name`` (bigint) as a decimal of 38 digits, which no number of rows exceeds."""
    return F.sum(F.col(name).cast("decimal(38,0)"))
