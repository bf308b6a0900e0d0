"""The query ``sessionize``: each user's events grouped into sessions, into gold/sessions."""

from datetime import timedelta
from typing import TYPE_CHECKING

from spark_jobs.contracts.jobs import ATTRIBUTE_JOB
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import SESSIONS, SILVER_EVENTS
from spark_jobs.queries.description import Position, Query
from spark_jobs.queries.state_settings import ENGINE, STATE_DISCARDED, may_shorten, needs_reset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

NAME = "sessionize"


def _rows(settings: Settings, sides: "Sequence[DataFrame]", _initial: "DataFrame | None") -> "DataFrame":
    from spark_jobs.operators.sessionize import sessionize

    return sessionize(sides[0], settings.sessionize)


def _open_events(at: Position) -> "DataFrame":
    from spark_jobs.transforms.open_rows import open_sessions

    gap = at.longest("sessionize.gap")
    return open_sessions(at.read(SILVER_EVENTS), at.read(SESSIONS), at.settled_before, gap)


def _closes_after(settings: Settings) -> timedelta:
    return settings.sessionize.watermark + settings.sessionize.gap


QUERY = Query(
    name=NAME,
    job=ATTRIBUTE_JOB,
    summary="Groups each user's events into sessions, which end with `is_last` or after a silence.",
    reads=(SILVER_EVENTS,),
    writes=SESSIONS,
    rows=_rows,
    operator="session window",
    final="Every row, as soon as it is written.",
    late="An event that is too late for its session is dropped; the ledger counts it.",
    state=(
        needs_reset("sessionize.gap", "open sessions were grouped by the other gap"),
        may_shorten("sessionize.watermark", STATE_DISCARDED),
        *ENGINE,
    ),
    open_events=_open_events,
    closes_after=_closes_after,
    watermark=lambda settings: settings.sessionize.watermark,
    grace=lambda settings: settings.sessionize.gap,
    is_in_ledger=True,
)
