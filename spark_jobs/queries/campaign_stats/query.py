"""The query ``campaign_stats``: impressions, clicks and cost by campaign and window, into gold/campaign_stats."""

from datetime import timedelta
from typing import TYPE_CHECKING

from spark_jobs.config.choices import StatsOutput
from spark_jobs.config.durations import EPOCH
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import CAMPAIGN_STATS, SILVER_EVENTS
from spark_jobs.queries.jobs import MEASURE_JOB
from spark_jobs.queries.manifest import Manifest
from spark_jobs.queries.query import Query
from spark_jobs.queries.state_settings import ENGINE, JOIN_STATE, STATE_DISCARDED, TOLERANCE, may_shorten, needs_reset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from spark_jobs.lake.layout import Lake
    from spark_jobs.queries.correction import Correction
    from spark_jobs.queries.output import Output
    from spark_jobs.queries.resume_point import ResumePoint

NAME = "campaign_stats"
_GRID = ("campaign_stats.window", "campaign_stats.slide", "campaign_stats.group_by")


def _final_ms(at: "ResumePoint") -> int:
    """Windows that end by then (milliseconds since 1970) are final at a reset."""
    from spark_jobs.queries.campaign_stats.output import final_before_ms

    if at.note.final_before_ms:
        return at.note.final_before_ms
    return final_before_ms(at.note, at.before("attribute.window"))


class CampaignStatsQuery(Query):
    """Counts impressions, clicks and cost of each campaign in windows of event time."""

    name = NAME
    job = MEASURE_JOB
    reads = (SILVER_EVENTS, SILVER_EVENTS, SILVER_EVENTS)
    writes = CAMPAIGN_STATS
    operator = "stream-stream join and windowed aggregation"
    output_mode = "append; merged by key with `campaign_stats.output = update`"
    final = (
        "With `campaign_stats.output = append` every row; with `update` a row once the watermark has passed the "
        "window's end by `attribute.window`."
    )
    late = "A click behind the watermark is dropped; an impression counts as long as its window is open."
    state = (
        may_shorten("attribute.window", STATE_DISCARDED),
        TOLERANCE,
        needs_reset("campaign_stats.window", "open windows have the other length"),
        needs_reset("campaign_stats.slide", "open windows start at other times"),
        needs_reset("campaign_stats.group_by", "open windows are counted by other columns"),
        may_shorten("campaign_stats.watermark", STATE_DISCARDED),
        needs_reset("campaign_stats.output", "the table would hold open windows next to final ones"),
        JOIN_STATE,
        *ENGINE,
    )
    is_correctable = True

    def rows(self, settings: Settings, sides: "Sequence[DataFrame]", initial: "DataFrame | None") -> "DataFrame":
        from spark_jobs.queries.campaign_stats.operator import campaign_stats

        own, join = settings.campaign_stats, settings.attribute
        return campaign_stats(sides[0], sides[1], sides[2], own, join, settings.group_types)

    def outputs(self, settings: Settings, lake: "Lake", manifest: Manifest | None) -> "Sequence[Output]":
        from spark_jobs.queries.campaign_stats.output import outputs_of_windows

        return outputs_of_windows(settings, lake, manifest)

    def watermark(self, settings: Settings) -> timedelta:
        return settings.campaign_stats.watermark

    def closes_after(self, settings: Settings) -> timedelta:
        own = settings.campaign_stats
        return own.watermark + own.window + settings.attribute.window

    def open_events(self, at: "ResumePoint") -> "DataFrame":
        from spark_jobs.queries.open_events import events_since

        # Every window that is not final, in full, and clicks that are not late; for both the impressions of the clicks.
        own, final = at.lake.settings.campaign_stats, EPOCH + timedelta(milliseconds=_final_ms(at))
        begin = min(final - own.window, at.settled_before - own.watermark)
        begin -= at.lake.settings.attribute.window
        return events_since(at.read_within(SILVER_EVENTS, at.settled_before - begin), begin)

    def final_before_ms(self, at: "ResumePoint") -> int:
        """A rebuilt query does not emit final windows again.

        In update mode it may still add late events to any window, unless the windows have changed: an early one would
        be incomplete.
        """
        before, now = at.manifest, self.state_settings(at.lake.settings, "")
        has_same_windows = before is not None and all(before.settings.get(name, "") == now[name] for name in _GRID)
        if at.lake.settings.campaign_stats.output is StatsOutput.UPDATE and before and has_same_windows:
            return before.final_before_ms
        return _final_ms(at)

    def write_rebuilt(self, at: "ResumePoint") -> "Callable[[DataFrame], None]":
        from spark_jobs.queries.append_missing import note_of_reset
        from spark_jobs.queries.campaign_stats.output import write_rebuilt_windows

        note, final_ms = note_of_reset(at.note), _final_ms(at)
        return lambda rows: write_rebuilt_windows(
            rows, at.lake.settings.campaign_stats, at.lake, note, final_ms=final_ms
        )

    def correction(self) -> "Correction":
        from spark_jobs.queries.campaign_stats.correction import CORRECTION

        return CORRECTION


QUERY = CampaignStatsQuery()
