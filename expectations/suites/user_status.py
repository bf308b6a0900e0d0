"""gold/user_status: changes of user status."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from expectations.rules import Rule, in_set, length, not_null, zero
from expectations.suites.base import Suite
from spark_jobs.config.choices import Clock, UserStatus
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import MAX_ID_CHARACTERS
from spark_jobs.contract.tables import USER_STATUS
from spark_jobs.queries.initial_state import has_taken, read_taken
from spark_jobs.queries.user_status.operator import in_order
from spark_jobs.queries.user_status.query import QUERY
from spark_jobs.spark.open_lake import OpenLake

_FOLLOWS = {
    UserStatus.ONLINE: (None, UserStatus.INACTIVE),
    UserStatus.ACTIVE: (UserStatus.ONLINE,),
    UserStatus.INACTIVE: (UserStatus.ONLINE, UserStatus.ACTIVE),
}
"""By status, the ones it may follow; None means it may be a user's first."""


def suite(settings: Settings) -> Suite:
    """The rules for user status."""
    in_turn = zero(
        "follows_the_one_before",
        "out_of_turn",
        "online comes first or after inactive, active after online, inactive after either; none repeats.",
    )
    rules: tuple[Rule, ...] = (
        not_null("user_id", "Every change has a user id."),
        length("user_id", 1, MAX_ID_CHARACTERS, f"user_id has 1 to {MAX_ID_CHARACTERS} characters."),
        not_null("status", "Every change has a status."),
        in_set("status", UserStatus, "status is online, active or inactive."),
        not_null("since", "Every change has its time."),
        # With clock = processing, events count in order of arrival, whatever their event times.
        *((in_turn,) if settings.user_status.clock is Clock.EVENT else ()),
    )
    return Suite(USER_STATUS, rules, _prepare, _earlier)


def _earlier(lake: OpenLake) -> DataFrame | None:
    """The status that users had before the first row: that of the initial state."""
    if not has_taken(lake, QUERY):
        return None
    return read_taken(lake, QUERY).select("user_id", "status", F.col("last_event_time").alias("since"))


def _prepare(rows: DataFrame, whole: DataFrame | None) -> DataFrame:
    before = F.lag("status").over(Window.partitionBy("user_id").orderBy(in_order()))
    table = rows if whole is None else whole.join(rows.select("user_id").distinct(), "user_id", how="left_semi")
    judged = table.withColumn("out_of_turn", _out_of_turn(before))
    if whole is None:
        return judged
    keys = ["user_id", "status", "since"]
    of_keys = judged.groupBy(*[F.col(key).alias(f"_{key}") for key in keys]).agg(
        F.max("out_of_turn").alias("out_of_turn")
    )
    same = [F.col(key).eqNullSafe(F.col(f"_{key}")) for key in keys]
    return rows.join(of_keys, same, how="left").drop(*[f"_{key}" for key in keys])


def _out_of_turn(before: Column) -> Column:
    """1 where ``status`` must not follow ``before``, 0 where it may, null for an unknown status."""
    judged = F.lit(None).cast("int")
    for status, allowed in _FOLLOWS.items():
        may = F.lit(False)
        for one in allowed:
            may = may | (before.isNull() if one is None else before.eqNullSafe(one.value))
        judged = F.when(F.col("status") == status.value, (~may).cast("int")).otherwise(judged)
    return judged
