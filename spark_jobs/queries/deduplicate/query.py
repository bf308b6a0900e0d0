"""The query ``deduplicate``: each good event of bronze once, into silver."""

from datetime import timedelta
from typing import TYPE_CHECKING

from spark_jobs.config.choices import DeduplicateMode
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import OK
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.queries.jobs import DEDUPLICATE_JOB
from spark_jobs.queries.query import Query
from spark_jobs.queries.state_settings import ENGINE, may_shorten, needs_reset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from spark_jobs.queries.resume_point import ResumePoint

NAME = "deduplicate"


def _forgets(settings: Settings) -> bool:
    return settings.deduplicate.mode is DeduplicateMode.WITHIN_WATERMARK


def _remembered(settings: Settings, _source: str) -> timedelta:
    return settings.deduplicate.watermark if _forgets(settings) else timedelta()


class DeduplicateQuery(Query):
    """Keeps the first of all records with the same event type and id."""

    name = NAME
    job = DEDUPLICATE_JOB
    reads = (BRONZE_EVENTS,)
    writes = SILVER_EVENTS
    operator = "dropDuplicatesWithinWatermark (dropDuplicates in mode `forever`)"
    final = "Every row, as soon as it is written."
    late = "An event behind the watermark is dropped; the ledger counts it. In mode `forever` no event is late."
    state = (
        needs_reset("deduplicate.mode", "the state has other columns"),
        may_shorten(
            "deduplicate.watermark", "repeats of events already forgotten would be kept a second time", _remembered
        ),
        *ENGINE,
    )
    rows_in_ledger = True
    polls_often = True

    def rows(self, settings: Settings, sides: "Sequence[DataFrame]", initial: "DataFrame | None") -> "DataFrame":
        from pyspark.sql import functions as F

        from spark_jobs.queries.deduplicate.operator import deduplicate, good_events

        return deduplicate(good_events(sides[0]), settings.deduplicate).withColumn(
            "event_date", F.to_date("event_time")
        )

    def watermark(self, settings: Settings) -> timedelta | None:
        return settings.deduplicate.watermark if _forgets(settings) else None

    def open_events(self, at: "ResumePoint") -> "DataFrame":
        from spark_jobs.queries.deduplicate.rebuild import remembered_keys

        if not _forgets(at.lake.settings):
            return remembered_keys(at.read(SILVER_EVENTS), at.settled_before, None)
        delay = at.longest("deduplicate.watermark")
        return remembered_keys(at.read_within(SILVER_EVENTS, delay), at.settled_before, delay)

    def adapt_for_reset(self, at: "ResumePoint", sides: "Sequence[DataFrame]") -> "Sequence[DataFrame]":
        from pyspark.sql import functions as F

        # The open events are rows of silver, and so were good ones of bronze.
        return [side.withColumn("verdict", F.lit(OK)) for side in sides]


QUERY = DeduplicateQuery()
