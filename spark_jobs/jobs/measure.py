"""The job ``measure``: silver into gold/campaign_stats, gold/moving_averages and gold/user_status."""

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.choices import StatsOutput
from spark_jobs.contracts.jobs import CAMPAIGN_STATS_QUERY, MOVING_AVERAGE, USER_STATUS_QUERY
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import CAMPAIGN_STATS, MOVING_AVERAGES, SILVER_EVENTS, USER_STATUS
from spark_jobs.operators.campaign_stats import campaign_stats
from spark_jobs.operators.moving_average import moving_average
from spark_jobs.operators.user_status import user_status
from spark_jobs.runtime.manifests import read_manifest
from spark_jobs.runtime.session import keyed_state_conf, using
from spark_jobs.sinks.delta import ASAP, Start, Write, start_query
from spark_jobs.sinks.windows import Feed, add_new_windows, add_to_windows
from spark_jobs.sources.delta import stream_table


def start_campaign_stats(spark: SparkSession, settings: Settings, lake: Lake, *, start: Start = ASAP) -> StreamingQuery:
    """Starts counting the impressions and clicks of silver, which must have been begun, campaign by campaign."""
    impressions, clicked, clicks = (stream_table(spark, lake, SILVER_EVENTS) for _side in range(3))
    stats = campaign_stats(impressions, clicked, clicks, settings.campaign_stats, settings.attribute.window)
    how = _into_windows(lake, settings.campaign_stats.output)
    feed = Feed(lake, settings.campaign_stats.feed)
    return start_query(
        stats,
        lake,
        CAMPAIGN_STATS,
        query=CAMPAIGN_STATS_QUERY,
        start=start,
        how=how,
        also=[feed] if feed.length else [],
    )


def _into_windows(lake: Lake, output: StatsOutput) -> Write | None:
    if output is StatsOutput.UPDATE:
        return add_to_windows
    manifest = read_manifest(lake, CAMPAIGN_STATS_QUERY, lake.version(CAMPAIGN_STATS_QUERY))
    return add_new_windows if manifest and manifest.follows else None


def start_moving_average(spark: SparkSession, settings: Settings, lake: Lake, *, start: Start = ASAP) -> StreamingQuery:
    """Starts averaging the last values of each key of silver, which must have been begun."""
    averages = moving_average(stream_table(spark, lake, SILVER_EVENTS), settings.moving_average)
    with using(spark, keyed_state_conf()):
        return start_query(averages, lake, MOVING_AVERAGES, query=MOVING_AVERAGE, start=start)


def start_user_status(spark: SparkSession, settings: Settings, lake: Lake, *, start: Start = ASAP) -> StreamingQuery:
    """Starts telling which users of silver, which must have been begun, are there."""
    changes = user_status(stream_table(spark, lake, SILVER_EVENTS), settings.user_status)
    with using(spark, keyed_state_conf()):
        return start_query(changes, lake, USER_STATUS, query=USER_STATUS_QUERY, start=start)
