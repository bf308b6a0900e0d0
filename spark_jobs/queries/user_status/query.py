"""The query ``user_status``: whether each user is there, every change once, into gold/user_status."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from spark_jobs.config.choices import Clock, UserStatus
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import SILVER_EVENTS, USER_STATUS
from spark_jobs.queries.jobs import MEASURE_JOB
from spark_jobs.queries.query import InitialState, Query
from spark_jobs.queries.state_functions.rebuild import emitted_everything, open_events, write_rebuilt
from spark_jobs.queries.state_settings import (
    PARTITIONS,
    STATE_DISCARDED,
    TAKEN_ONCE,
    keeps_first_value,
    may_shorten,
    needs_reset,
)
from spark_jobs.spark.names import KEYED_STATE_CONF

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from spark_jobs.queries.correction import Correction
    from spark_jobs.queries.resume_point import ResumePoint

NAME = "user_status"
_INITIAL = "user_status.initial_state"
_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)


def _from_initial(_settings: Settings, rows: "DataFrame") -> "DataFrame":
    from spark_jobs.queries.state_functions.known_states import given_users

    return given_users(rows)


class UserStatusQuery(Query):
    """Reports when each user comes online, is active, and becomes inactive."""

    name = NAME
    job = MEASURE_JOB
    reads = (SILVER_EVENTS,)
    writes = USER_STATUS
    operator = "transformWithState, in Python"
    final = "Every row, as soon as it is written."
    late = (
        "An event behind the watermark is dropped, and counted in the query's progress; by processing time none is "
        "late."
    )
    state = (
        needs_reset("user_status.clock", "timers are set in the time of the other clock"),
        may_shorten("user_status.watermark", STATE_DISCARDED),
        PARTITIONS,
        keeps_first_value(_INITIAL, TAKEN_ONCE),
    )
    spark_conf = KEYED_STATE_CONF
    initial_state = InitialState(
        _INITIAL,
        columns="user_id STRING NOT NULL, status STRING NOT NULL, last_event_time TIMESTAMP NOT NULL",
        meaning="A row for each user who is online or active, with the time of the user's last event.",
        choices=lambda _: {"status": (UserStatus.ONLINE.value, UserStatus.ACTIVE.value)},
        known=_from_initial,
    )
    is_correctable = True

    def rows(self, settings: Settings, sides: "Sequence[DataFrame]", initial: "DataFrame | None") -> "DataFrame":
        from spark_jobs.queries.user_status.operator import user_status

        return user_status(sides[0], settings.user_status, initial=initial)

    def watermark(self, settings: Settings) -> timedelta | None:
        return settings.user_status.watermark if settings.user_status.clock is Clock.EVENT else None

    def closes_after(self, settings: Settings) -> timedelta:
        return settings.user_status.watermark + settings.user_status.idle_after

    def open_events(self, at: "ResumePoint") -> "DataFrame":
        return open_events(at)

    def known_state(self, at: "ResumePoint") -> "DataFrame":
        from spark_jobs.queries.state_functions.known_states import users_there

        emitted, initial = at.read(USER_STATUS), at.read_initial()
        if emitted_everything(at):
            return users_there(at.read(SILVER_EVENTS), emitted, _END_OF_TIME, initial)
        return users_there(at.read(SILVER_EVENTS), emitted, at.settled_before, initial)

    def write_rebuilt(self, at: "ResumePoint") -> "Callable[[DataFrame], None] | None":
        return write_rebuilt(at, at.lake.settings.user_status.clock)

    def correction(self) -> "Correction":
        from spark_jobs.queries.user_status.correction import CORRECTION

        return CORRECTION

    def is_corrected(self, settings: Settings) -> bool:
        return settings.user_status.clock is Clock.EVENT


QUERY = UserStatusQuery()
