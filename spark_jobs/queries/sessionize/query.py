"""The query ``sessionize``: each user's events grouped into sessions, into gold/sessions."""

from datetime import date, timedelta
from typing import TYPE_CHECKING

from spark_jobs.config.sections import SessionizeSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import VISIT_TYPES
from spark_jobs.contract.tables import SESSIONS, SILVER_EVENTS
from spark_jobs.queries.jobs import ATTRIBUTE_JOB
from spark_jobs.queries.query import InitialState, Query
from spark_jobs.queries.state_settings import (
    ENGINE,
    STATE_DISCARDED,
    TAKEN_ONCE,
    keeps_first_value,
    may_shorten,
    needs_reset,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from spark_jobs.queries.correction import Correction
    from spark_jobs.queries.resume_point import ResumePoint

NAME = "sessionize"
_INITIAL = "sessionize.initial_state"


def _as_before(at: "ResumePoint") -> SessionizeSettings:
    """The settings with the longer of the gaps of before and now, and the cuts of before."""
    was = {"gap": at.longest("sessionize.gap"), "longest": at.before("sessionize.longest")}
    return at.lake.settings.sessionize.model_copy(update=was)


class SessionizeQuery(Query):
    """Groups each user's events into sessions, which end with `is_last` or after a silence."""

    name = NAME
    job = ATTRIBUTE_JOB
    reads = (SILVER_EVENTS,)
    writes = SESSIONS
    operator = "session window"
    final = "Every row, as soon as it is written."
    late = "An event that is too late for its session is dropped; the ledger counts it."
    state = (
        needs_reset("sessionize.gap", "open sessions were grouped by the other gap"),
        needs_reset("sessionize.longest", "open sessions were cut elsewhere, or not at all", before_it_existed="0s"),
        may_shorten("sessionize.watermark", STATE_DISCARDED),
        *ENGINE,
        keeps_first_value(_INITIAL, TAKEN_ONCE),
    )
    initial_state = InitialState(
        _INITIAL,
        columns="user_id STRING NOT NULL, event_type STRING NOT NULL, event_id STRING NOT NULL, "
        "event_time TIMESTAMP NOT NULL, is_last BOOLEAN",
        meaning="A row for each event of the sessions that are open. These events join those of the first batch; the "
        "ledger counts them as `session_initial`.",
        choices=lambda _: {"event_type": VISIT_TYPES},
    )
    is_correctable = True
    outlives_watermark = True
    rows_in_ledger = True

    def rows(self, settings: Settings, sides: "Sequence[DataFrame]", initial: "DataFrame | None") -> "DataFrame":
        from spark_jobs.queries.sessionize.operator import sessionize

        return sessionize(sides[0], settings.sessionize)

    def watermark(self, settings: Settings) -> timedelta:
        return settings.sessionize.watermark

    def closes_after(self, settings: Settings) -> timedelta:
        return settings.sessionize.watermark + settings.sessionize.gap

    def extra_delay(self, settings: Settings) -> timedelta:
        return settings.sessionize.gap

    def open_events(self, at: "ResumePoint") -> "DataFrame":
        from spark_jobs.queries.sessionize.rebuild import all_open_sessions

        return all_open_sessions(at, _as_before(at))

    def open_events_since(self, at: "ResumePoint", day: date) -> "DataFrame":
        """A session goes on for as long as its events do, past any watermark."""
        from spark_jobs.queries.open_events import is_of_visit
        from spark_jobs.queries.sessionize.rebuild import open_sessions_since

        # What is open and began by the end of the day has an event on it, or within a gap of it.
        settings = _as_before(at)
        since = day - settings.gap // timedelta(days=1) * timedelta(days=1)
        return open_sessions_since(at, settings, since).where(is_of_visit())

    def correction(self) -> "Correction":
        from spark_jobs.queries.sessionize.correction import CORRECTION

        return CORRECTION


QUERY = SessionizeQuery()
