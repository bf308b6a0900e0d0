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
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from spark_jobs.queries.correction import Correction
    from spark_jobs.queries.resume_point import ResumePoint

NAME = "moving_average"
_INITIAL = "moving_average.initial_state"


def _rows(settings: Settings, sides: "Sequence[DataFrame]", initial: "DataFrame | None") -> "DataFrame":
    from spark_jobs.queries.moving_average.operator import moving_average

    return moving_average(sides[0], settings.moving_average, initial=initial)


def _write_rebuilt(at: "ResumePoint") -> "Callable[[DataFrame], None] | None":
    return write_rebuilt(at, at.settings.moving_average.clock)


def _known_state(at: "ResumePoint") -> "DataFrame":
    from spark_jobs.queries.state_functions.known_states import last_taken, last_values

    own, initial = at.settings.moving_average, at.read_initial()
    if emitted_everything(at):
        return last_taken(at.read(SILVER_EVENTS), at.read(MOVING_AVERAGES), own, initial)
    return last_values(at.read(SILVER_EVENTS), at.settled_before, own, initial)


def _from_initial(settings: Settings, rows: "DataFrame") -> "DataFrame":
    from spark_jobs.queries.state_functions.known_states import given_values

    return given_values(rows, settings.moving_average)


def _watermark(settings: Settings) -> timedelta | None:
    return settings.moving_average.watermark if settings.moving_average.clock is Clock.EVENT else None


def _closes_after(settings: Settings) -> timedelta:
    return settings.moving_average.watermark + settings.moving_average.timeout


def _correction() -> "Correction":
    from spark_jobs.queries.moving_average.correction import CORRECTION

    return CORRECTION


QUERY = Query(
    name=NAME,
    job=MEASURE_JOB,
    summary="Averages the last values of each key.",
    reads=(SILVER_EVENTS,),
    writes=MOVING_AVERAGES,
    rows=_rows,
    operator="transformWithState, in Python",
    column_sources=lambda settings: {
        "key": (settings.moving_average.key,),
        "value_count": settings.moving_average.values,
        "mean": settings.moving_average.values,
    },
    final="Every row, as soon as it is written.",
    late="A value behind the watermark is dropped, and counted in the query's progress; by processing time none is "
    "late.",
    state=(
        needs_reset("moving_average.key", "the state has other keys"),
        needs_reset("moving_average.values", "the state has other values"),
        may_decrease("moving_average.size", "values that a larger number needs have been discarded"),
        needs_reset("moving_average.clock", "timers are set in the time of the other clock"),
        may_shorten("moving_average.watermark", STATE_DISCARDED),
        PARTITIONS,
        keeps_first_value(_INITIAL, TAKEN_ONCE),
    ),
    spark_conf=KEYED_STATE_CONF,
    open_events=open_events,
    known_state=_known_state,
    write_rebuilt=_write_rebuilt,
    initial_state=InitialState(
        _INITIAL,
        columns="key STRING NOT NULL, measure STRING NOT NULL, event_time TIMESTAMP NOT NULL, value DOUBLE",
        meaning="A row for each of the last values of a key, as many as `moving_average.size`; `measure` is one of "
        "`moving_average.values`. More rows do no harm: the last ones count.",
        choices=lambda settings: {"measure": settings.moving_average.values},
        known=_from_initial,
        depends_on=("moving_average.key",),
    ),
    closes_after=_closes_after,
    watermark=_watermark,
    correction=_correction,
    is_corrected=lambda settings: settings.moving_average.clock is Clock.EVENT,
)
