"""``gold/user_status``: a late event begins a visit earlier, joins two, or is one of its own.

::

    idle_after 1h   12:00            13:30           14:30    15:30
    live            a online         inactive 13:00  b online inactive 15:30
    late                   k 12:50                            active 12:50, inactive 13:50; nothing else changes

The changes between two absences of a user, before and after, are compared together. Only with ``clock = event``: in
processing time, nothing is late.
"""

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.config.choices import UserStatus
from spark_jobs.config.durations import microseconds
from spark_jobs.contract.tables import USER_STATUS
from spark_jobs.queries.chains import CHAIN_END, CHAIN_START, rows_within, touched_chains
from spark_jobs.queries.correction import DUE, GROUP, AffectedRows, Correction, CorrectionInput
from spark_jobs.queries.open_events import is_of_visit
from spark_jobs.spark.columns import between, interval
from spark_jobs.traffic_rules.kinds.common import EVENT


def recompute(late: DataFrame, scene: CorrectionInput) -> AffectedRows:
    """See :data:`spark_jobs.queries.correction.Recompute`."""
    own = scene.settings.user_status
    idle = interval(own.idle_after)
    chains, _dates = touched_chains(late.where(is_of_visit()), scene, own.idle_after)
    due = F.col(CHAIN_END) + idle
    live = between(scene.live, "since", chains.withColumn(DUE, due), CHAIN_START, DUE)
    return AffectedRows(
        scope=chains.where("is_late").select(*EVENT, GROUP, due.alias(DUE)),
        expected=_changes(chains.where("is_counted"), own.idle_after).withColumn(DUE, F.col("since")),
        actual=rows_within(live, chains, F.col("since"), lambda end: end + idle, scene),
    )


def _changes(events: DataFrame, idle_after: timedelta) -> DataFrame:
    """The changes of status by ``events``: online with the first of a visit, active with the second.

    See :func:`spark_jobs.queries.user_status.rule.settle`. A group may hold several visits, if a copy that does not
    count had joined them.
    """
    in_order = Over.partitionBy(GROUP).orderBy("event_time", "event_id", "event_type")
    us, idle_us = F.unix_micros("event_time"), microseconds(idle_after)
    is_first = F.coalesce(us - F.lag(us).over(in_order) > idle_us, F.lit(True))
    is_last = F.coalesce(F.lead(us).over(in_order) - us > idle_us, F.lit(True))
    of_visit = Over.partitionBy(GROUP, "visit").orderBy("event_time", "event_id", "event_type")
    placed = (
        events.withColumns({"is_last_one": is_last, "visit": is_first.cast("int")})
        .withColumn("visit", F.sum("visit").over(in_order))
        .withColumn("place", F.row_number().over(of_visit))
    )
    ended = F.col("event_time") + interval(idle_after)
    changes = F.array_compact(
        F.array(
            _change(F.col("place") == 1, UserStatus.ONLINE, F.col("event_time")),
            _change(F.col("place") == 2, UserStatus.ACTIVE, F.col("event_time")),  # noqa: PLR2004 the second event
            _change(F.col("is_last_one"), UserStatus.INACTIVE, ended),
        )
    )
    return placed.select(GROUP, "user_id", F.inline(changes)).select(*USER_STATUS.column_names, GROUP)


def _change(is_due: Column, status: UserStatus, since: Column) -> Column:
    return F.when(is_due, F.struct(F.lit(status.value).alias("status"), since.alias("since")))


CORRECTION = Correction(
    recompute=recompute,
    key=lambda _columns: ("user_id", "since"),
    time="since",
    reach=lambda settings: settings.user_status.idle_after,
    counts={},
)
