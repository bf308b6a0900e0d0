"""Whether each user is online; a row per change.

::

    idle_after 1h   12:00    12:20   12:50            13:50      15:00
    user u1           a        b       c                |          d
    status         online   active     .            inactive    online

A user is *online* from the first event, *active* from the next event within ``idle_after``, *inactive* when
``idle_after`` has passed since the last event, and *online* again with the next event. An event exactly ``idle_after``
after another is still within it.

*Watermark*: the largest event time of all events minus ``user_status.watermark``. A change is emitted when the
watermark passes it, so the order of arrival does not matter. With ``clock = processing`` there is no watermark: events
are processed as they arrive, and a user becomes inactive when none has arrived for ``idle_after`` of wall-clock time.
*State*: for each user who is online or active the time of the last event, and event times that the watermark has not
passed; for others nothing.
*Late rows*: dropped by Spark, and counted in the query's progress.
*Cost*: a state function in Python, because no built-in operator emits rows both on events and on silence.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.choices import Clock, UserStatus
from spark_jobs.config.durations import microseconds, milliseconds
from spark_jobs.config.sections import UserStatusSettings
from spark_jobs.contract.tables import USER_STATUS
from spark_jobs.queries.open_events import is_of_visit
from spark_jobs.queries.state_functions.processors import StatusProcessor
from spark_jobs.spark.columns import after_watermark


def user_status(events: DataFrame, settings: UserStatusSettings, *, initial: DataFrame | None = None) -> DataFrame:
    """The changes of status of the users of ``events``.

    Args:
        events: streaming; the columns of ``silver/events``, heartbeats included. Those without a user, and conversions,
            count for none.
        settings: after how long a silence a user is inactive, and the clock.
        initial: not streaming: ``user_id``, ``status`` (online or active) and ``last_us`` (bigint, the time of the last
            event in microseconds since 1970) of users who are not inactive. Only the first batch uses it.

    Returns:
        The columns of ``gold/user_status``.

    Source: Spark's `transformWithState
    <https://spark.apache.org/docs/latest/streaming/structured-streaming-transform-with-state.html>`_.
    """
    is_event_time = settings.clock is Clock.EVENT
    timed = events.select("event_type", "event_time", "user_id")
    if is_event_time:
        timed = timed.withWatermark("event_time", f"{milliseconds(settings.watermark)} milliseconds")
    own = timed.where(after_watermark("event_time", is_of_visit())).select(
        "user_id", F.unix_micros("event_time").alias("event_us"), "event_time"
    )
    changes = own.groupBy("user_id").transformWithState(
        StatusProcessor(
            microseconds(settings.idle_after) if is_event_time else None,
            None if is_event_time else milliseconds(settings.idle_after),
        ),
        StatusProcessor.output,
        outputMode="Append",
        timeMode="EventTime" if is_event_time else "ProcessingTime",
        initialState=None if initial is None else initial.groupBy("user_id"),
    )
    return changes.select("user_id", "status", F.timestamp_micros("since_us").alias("since")).select(
        *USER_STATUS.column_names
    )


def in_order() -> Column:
    """The sort key of ``gold/user_status`` rows: a user can become online and active at the same instant."""
    turn = F.array_position(F.array(*[F.lit(status.value) for status in UserStatus]), F.col("status"))
    return F.struct("since", turn)
