"""The query ``campaign_stats``: impressions, clicks and cost by campaign and window, into gold/campaign_stats."""

from datetime import timedelta
from typing import TYPE_CHECKING

from spark_jobs.contracts.jobs import MEASURE_JOB
from spark_jobs.contracts.manifest import Manifest
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import CAMPAIGN_STATS, SILVER_EVENTS
from spark_jobs.queries.description import Position, Query
from spark_jobs.queries.state_settings import ENGINE, JOIN_STATE, STATE_DISCARDED, may_shorten, needs_reset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from spark_jobs.contracts.lake import Lake
    from spark_jobs.sinks.delta import Output

NAME = "campaign_stats"


def _rows(settings: Settings, sides: "Sequence[DataFrame]", _initial: "DataFrame | None") -> "DataFrame":
    from spark_jobs.operators.campaign_stats import campaign_stats

    return campaign_stats(sides[0], sides[1], sides[2], settings.campaign_stats, settings.attribute.window)


def _outputs(settings: Settings, lake: "Lake", manifest: Manifest | None) -> "Sequence[Output]":
    from spark_jobs.sinks.windows import outputs_of_windows

    return outputs_of_windows(settings.campaign_stats, lake, manifest)


def _open_events(at: Position) -> "DataFrame":
    from spark_jobs.transforms.open_rows import within_reach

    # A window is open until the watermark has passed it by the reach of a click, whose impression lies as far back.
    reach = at.settings.campaign_stats.window + 2 * at.longest("attribute.window")
    return within_reach(at.read(SILVER_EVENTS), at.settled_before, reach)


def _closes_after(settings: Settings) -> timedelta:
    own = settings.campaign_stats
    return own.watermark + own.window + settings.attribute.window


QUERY = Query(
    name=NAME,
    job=MEASURE_JOB,
    summary="Counts impressions, clicks and cost of each campaign in windows of event time.",
    reads=(SILVER_EVENTS, SILVER_EVENTS, SILVER_EVENTS),
    writes=CAMPAIGN_STATS,
    rows=_rows,
    operator="stream-stream join and windowed aggregation",
    output_mode=lambda settings: settings.campaign_stats.output.value,
    outputs=_outputs,
    final="With `campaign_stats.output = append` every row; with `update` a row once the watermark has passed the "
    "window's end by `attribute.window`.",
    late="A click behind the watermark is dropped; an impression counts as long as its window is open.",
    state=(
        may_shorten("attribute.window", STATE_DISCARDED),
        needs_reset("campaign_stats.window", "open windows have the other length"),
        needs_reset("campaign_stats.slide", "open windows start at other times"),
        may_shorten("campaign_stats.watermark", STATE_DISCARDED),
        needs_reset("campaign_stats.output", "the table would hold open windows beside final ones"),
        JOIN_STATE,
        *ENGINE,
    ),
    open_events=_open_events,
    closes_after=_closes_after,
    watermark=lambda settings: settings.campaign_stats.watermark,
)
