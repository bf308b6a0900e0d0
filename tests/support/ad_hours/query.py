"""The query ``ad_hours``: impressions of each ad by hour, into gold/ad_hours."""

from datetime import timedelta
from typing import TYPE_CHECKING

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import SILVER_EVENTS, Column, Table
from spark_jobs.queries.jobs import MEASURE_JOB
from spark_jobs.queries.query import Query
from spark_jobs.queries.state_settings import ENGINE, STATE_DISCARDED, may_shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from spark_jobs.queries.resume_point import ResumePoint

AD_HOURS = Table(
    "ad_hours",
    "gold/ad_hours",
    "one for each ad and hour with an impression",
    (
        Column("hour", "TIMESTAMP", "the hour's first instant"),
        Column("ad_id", "STRING", "whose impressions"),
        Column("impressions", "BIGINT", "impressions in the hour"),
    ),
    key=("hour", "ad_id"),
    stats_columns=("hour",),
)


class AdHoursQuery(Query):
    """Counts the impressions of each ad by hour."""

    name = "ad_hours"
    job = MEASURE_JOB
    reads = (SILVER_EVENTS,)
    writes = AD_HOURS
    operator = "windowed aggregation"
    final = "Every row, as soon as it is written."
    late = "An impression whose hour is closed is dropped."
    state = (may_shorten("attribute.impression_watermark", STATE_DISCARDED), *ENGINE)

    def rows(self, settings: Settings, sides: "Sequence[DataFrame]", initial: "DataFrame | None") -> "DataFrame":
        from spark_jobs.queries.ad_hours.operator import ad_hours

        rows: DataFrame = ad_hours(sides[0], settings.attribute.impression_watermark)
        return rows

    def watermark(self, settings: Settings) -> timedelta:
        return settings.attribute.impression_watermark

    def closes_after(self, settings: Settings) -> timedelta:
        return self.watermark(settings) + timedelta(hours=1)

    def open_events(self, at: "ResumePoint") -> "DataFrame":
        from spark_jobs.queries.ad_hours.operator import in_open_hours

        events: DataFrame = in_open_hours(at.read(SILVER_EVENTS), at.settled_before)
        return events


QUERY = AdHoursQuery()
