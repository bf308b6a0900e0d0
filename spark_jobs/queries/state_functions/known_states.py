"""The state of each key of a state function, computed from tables: a reset rebuilds the state from it.

``settled_before`` is the watermark of the query's last batch: events behind it are decided. Which events were late for
the query is not recorded; here they count as if they had been on time.
"""

from collections.abc import Iterable
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.config.choices import Clock, UserStatus
from spark_jobs.config.durations import microseconds
from spark_jobs.config.sections import MovingAverageSettings
from spark_jobs.queries.open_events import is_of_visit, is_settled, settled_us
from spark_jobs.queries.user_status.operator import in_order


def given_values(initial: DataFrame, settings: MovingAverageSettings) -> DataFrame:
    """The last values of each key of an initial state.

    Args:
        initial: ``key``, ``measure``, ``event_time`` and ``value``, a row for each value.
        settings: those of the query.

    Returns:
        ``key``, ``measure``, ``times``, ``values``: see
        :func:`spark_jobs.queries.moving_average.operator.moving_average`.
    """
    by_events = settings.clock is Clock.EVENT
    return _last(_given(initial, settings), settings, F.lit(False), is_cut_by_silence=by_events)


def last_values(
    silver: DataFrame, settled_before: datetime, settings: MovingAverageSettings, initial: DataFrame | None = None
) -> DataFrame:
    """The last values of each key, from which ``moving_average`` continues.

    Args:
        silver: all rows of silver.
        settled_before: see above.
        settings: those of the query.
        initial: the initial state that the query started with, see :func:`given_values`.

    Returns:
        ``key``, ``measure``, ``times``, ``values``: see
        :func:`spark_jobs.queries.moving_average.operator.moving_average`.
    """
    # As in the rule: a value exactly at the timeout still follows; after that, none can.
    until_now_us = settled_us(settled_before) - F.col("us")
    is_over = until_now_us >= microseconds(settings.timeout)
    values = _with_given(_values(silver.where(is_settled(settled_before)), settings), initial, settings)
    return _last(values, settings, is_over, is_cut_by_silence=True)


def last_taken(
    silver: DataFrame, emitted: DataFrame, settings: MovingAverageSettings, initial: DataFrame | None = None
) -> DataFrame:
    """The same for a query that ran in processing time, and so has emitted a mean for every value it has read.

    Args:
        silver: the rows of silver that the query has read.
        emitted: the rows of ``gold/moving_averages``.
        settings: those of the query.
        initial: the initial state that the query started with, see :func:`given_values`.
    """
    series = ("key", "measure")
    closed = emitted.where("is_last").groupBy(*series).agg(F.unix_micros(F.max("window_end")).alias("closed_us"))
    known = _with_given(_values(silver, settings), initial, settings)
    values = known.join(closed, on=list(series), how="left")
    is_kept = F.col("closed_us").isNull() | (F.col("us") > F.col("closed_us"))
    by_events = settings.clock is Clock.EVENT
    return _last(values.where(is_kept).drop("closed_us"), settings, F.lit(False), is_cut_by_silence=by_events)


def _values(silver: DataFrame, settings: MovingAverageSettings) -> DataFrame:
    """``key``, ``measure``, ``us`` (microseconds since 1970) and ``value`` of each value in ``silver``."""
    return (
        silver.where(F.col(settings.key).isNotNull())
        .select(
            F.unix_micros("event_time").alias("us"),
            F.col(settings.key).alias("key"),
            each_measure(settings.values).alias("each"),
        )
        .where(F.col("each.value").isNotNull())
        .select("key", "each.measure", "us", "each.value")
    )


def _given(initial: DataFrame, settings: MovingAverageSettings) -> DataFrame:
    """The same as :func:`_values`, of an initial state."""
    is_wanted = F.col("value").isNotNull() & F.col("measure").isin(*settings.values)
    return initial.where(is_wanted).select("key", "measure", F.unix_micros("event_time").alias("us"), "value")


def _with_given(values: DataFrame, initial: DataFrame | None, settings: MovingAverageSettings) -> DataFrame:
    return values if initial is None else values.unionByName(_given(initial, settings))


def _last(values: DataFrame, settings: MovingAverageSettings, is_over: Column, *, is_cut_by_silence: bool) -> DataFrame:
    """The last of ``values``, if wanted since the last silence; none if ``is_over`` is true for the newest of a key."""
    newest_first = Window.partitionBy("key", "measure").orderBy(F.desc("us"), F.desc("value"))
    silence_us = F.lag("us").over(newest_first) - F.col("us")
    is_apart = silence_us > microseconds(settings.timeout) if is_cut_by_silence else silence_us < 0
    is_over = F.coalesce(is_apart, is_over).cast("int")
    recent = (
        values.withColumn("place", F.row_number().over(newest_first))
        .withColumn("is_over", is_over)
        .withColumn("silences", F.sum("is_over").over(newest_first))
        .where((F.col("silences") == 0) & (F.col("place") <= settings.size))
    )
    in_order = F.sort_array(F.collect_list(F.struct("us", "value")))
    return (
        recent.groupBy("key", "measure")
        .agg(in_order.alias("found"))
        .select("key", "measure", F.col("found.us").alias("times"), F.col("found.value").alias("values"))
    )


def given_users(initial: DataFrame) -> DataFrame:
    """The users of an initial state.

    Args:
        initial: ``user_id``, ``status``, ``last_event_time``; of several rows of a user the newest counts.

    Returns:
        ``user_id``, ``status``, ``last_us``: see :func:`spark_jobs.queries.user_status.operator.user_status`.
    """
    last_us = F.unix_micros(F.max("last_event_time")).alias("last_us")
    return initial.groupBy("user_id").agg(F.max_by("status", "last_event_time").alias("status"), last_us)


def users_there(
    silver: DataFrame, emitted: DataFrame, settled_before: datetime, initial: DataFrame | None = None
) -> DataFrame:
    """The users whose last emitted status is online or active.

    Args:
        silver: all rows of silver.
        emitted: the rows of ``gold/user_status``.
        settled_before: see above.
        initial: the initial state that the query started with, see :func:`given_users`.

    Returns:
        ``user_id``, ``status``, ``last_us``: see :func:`spark_jobs.queries.user_status.operator.user_status`.
    """
    seen = silver.where(is_settled(settled_before) & is_of_visit()).select("user_id", "event_time")
    if initial is not None:
        since = F.col("last_event_time").alias("since")
        emitted = emitted.select("user_id", "status", "since").unionByName(initial.select("user_id", "status", since))
        seen = seen.unionByName(initial.select("user_id", F.col("last_event_time").alias("event_time")))
    last_one = F.max_by(F.struct("status", "since"), in_order()).alias("last")
    there = (
        emitted.groupBy("user_id")
        .agg(last_one)
        .where(F.col("last.status") != UserStatus.INACTIVE.value)
        .select("user_id", "last.status", "last.since")
    )
    last_us = seen.groupBy("user_id").agg(F.unix_micros(F.max("event_time")).alias("last_us"))
    return there.join(last_us, on="user_id", how="inner").select("user_id", "status", "last_us")


def each_measure(names: Iterable[str]) -> Column:
    """Explodes into a row per column of ``names`` (numbers): a struct of ``measure`` (name) and ``value`` (double)."""
    pairs = [F.struct(F.lit(name).alias("measure"), F.col(name).cast("double").alias("value")) for name in names]
    return F.explode(F.array(*pairs))
