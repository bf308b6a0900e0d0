"""The query ``moving_average``: the mean of the last values of each key, into gold/moving_averages."""

from datetime import timedelta
from typing import TYPE_CHECKING

from spark_jobs.config.choices import Clock
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import MOVING_AVERAGES, SILVER_EVENTS
from spark_jobs.queries.jobs import MEASURE_JOB
from spark_jobs.queries.query import InitialState, Query
from spark_jobs.queries.state_functions.rebuild import emitted_everything, open_events, write_rebuilt
from spark_jobs.queries.state_settings import (
    PARTITIONS,
    STATE_DISCARDED,
    TAKEN_ONCE,
    keeps_first_value,
    may_decrease,
    may_shorten,
    needs_reset,
)
from spark_jobs.spark.names import KEYED_STATE_CONF

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from spark_jobs.queries.correction import Correction
    from spark_jobs.queries.resume_point import ResumePoint

NAME = "moving_average"
_INITIAL = "moving_average.initial_state"


def _from_initial(settings: Settings, rows: "DataFrame") -> "DataFrame":
    from spark_jobs.queries.state_functions.known_states import given_values

    return given_values(rows, settings.moving_average)


class MovingAverageQuery(Query):
    """Averages the last values of each key."""

    name = NAME
    job = MEASURE_JOB
    reads = (SILVER_EVENTS,)
    writes = MOVING_AVERAGES
    operator = "transformWithState, in Python"
    final = "Every row, as soon as it is written."
    late = (
        "A value behind the watermark is dropped, and counted in the query's progress; by processing time none is late."
    )
    state = (
        needs_reset("moving_average.key", "the state has other keys"),
        needs_reset("moving_average.values", "the state has other values"),
        may_decrease("moving_average.size", "values that a larger number needs have been discarded"),
        needs_reset("moving_average.clock", "timers are set in the time of the other clock"),
        may_shorten("moving_average.watermark", STATE_DISCARDED),
        PARTITIONS,
        keeps_first_value(_INITIAL, TAKEN_ONCE),
    )
    spark_conf = KEYED_STATE_CONF
    initial_state = InitialState(
        _INITIAL,
        columns="key STRING NOT NULL, measure STRING NOT NULL, event_time TIMESTAMP NOT NULL, value DOUBLE",
        meaning="A row for each of the last values of a key, as many as `moving_average.size`; `measure` is one of "
        "`moving_average.values`. More rows do no harm: the last ones count.",
        choices=lambda settings: {"measure": settings.moving_average.values},
        known=_from_initial,
        depends_on=("moving_average.key",),
    )
    is_correctable = True

    def rows(self, settings: Settings, sides: "Sequence[DataFrame]", initial: "DataFrame | None") -> "DataFrame":
        from spark_jobs.queries.moving_average.operator import moving_average

        return moving_average(sides[0], settings.moving_average, initial=initial)

    def column_sources(self, settings: Settings) -> "Mapping[str, Sequence[str]]":
        own = settings.moving_average
        return {"key": (own.key,), "value_count": own.values, "mean": own.values}

    def watermark(self, settings: Settings) -> timedelta | None:
        return settings.moving_average.watermark if settings.moving_average.clock is Clock.EVENT else None

    def closes_after(self, settings: Settings) -> timedelta:
        return settings.moving_average.watermark + settings.moving_average.timeout

    def open_events(self, at: "ResumePoint") -> "DataFrame":
        return open_events(at)

    def known_state(self, at: "ResumePoint") -> "DataFrame":
        from spark_jobs.queries.state_functions.known_states import last_taken, last_values

        own, initial = at.lake.settings.moving_average, at.read_initial()
        if emitted_everything(at):
            return last_taken(at.read(SILVER_EVENTS), at.read(MOVING_AVERAGES), own, initial)
        # The last of the values that count is no older than the timeout, nor is each from the one after it.
        silver = at.read_within(SILVER_EVENTS, own.size * own.timeout)
        return last_values(silver, at.settled_before, own, initial)

    def write_rebuilt(self, at: "ResumePoint") -> "Callable[[DataFrame], None] | None":
        return write_rebuilt(at, at.lake.settings.moving_average.clock)

    def correction(self) -> "Correction":
        from spark_jobs.queries.moving_average.correction import CORRECTION

        return CORRECTION

    def is_corrected(self, settings: Settings) -> bool:
        return settings.moving_average.clock is Clock.EVENT


QUERY = MovingAverageQuery()
