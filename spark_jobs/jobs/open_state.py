"""What the state of each query was after a batch: from which events, and with which operator, it is rebuilt."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contracts.choices import DeduplicateMode
from spark_jobs.contracts.commits import CommitNote
from spark_jobs.contracts.durations import EPOCH, parse_duration
from spark_jobs.contracts.jobs import (
    ATTRIBUTE,
    CAMPAIGN_STATS_QUERY,
    DEDUPLICATE,
    MOVING_AVERAGE,
    SESSIONIZE,
    USER_STATUS_QUERY,
    WRITES,
)
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import SILVER_EVENTS, USER_STATUS
from spark_jobs.jobs.deduplicate import good_events
from spark_jobs.operators.attribute import attribute
from spark_jobs.operators.campaign_stats import campaign_stats
from spark_jobs.operators.deduplicate import deduplicate
from spark_jobs.operators.moving_average import moving_average
from spark_jobs.operators.sessionize import sessionize
from spark_jobs.operators.user_status import user_status
from spark_jobs.runtime.manifests import read_manifest
from spark_jobs.runtime.session import keyed_state_conf
from spark_jobs.sources.delta import read_table
from spark_jobs.transforms import known_states, open_rows


def open_events(spark: SparkSession, settings: Settings, lake: Lake, query: str, note: CommitNote) -> DataFrame:
    """The events that ``query`` held after the batch of ``note``, with the columns of silver; others may be among them.

    Args:
        spark: the session.
        settings: those that the query will run with.
        lake: the lake.
        query: its name; not ``ingest``, which holds none.
        note: of its last batch.
    """
    settled, silver = _settled(note), read_table(spark, lake, SILVER_EVENTS)
    if query == DEDUPLICATE:
        forgets = settings.deduplicate.mode is DeduplicateMode.WITHIN_WATERMARK
        delay = _longest(lake, query, "deduplicate.watermark", settings.deduplicate.watermark)
        return open_rows.remembered_keys(silver, settled, delay if forgets else None)
    if query == ATTRIBUTE:
        window = _longest(lake, query, "attribute.window", settings.attribute.window)
        return open_rows.undecided_pairs(silver, read_table(spark, lake, WRITES[query]), settled, window)
    if query == SESSIONIZE:
        gap = _longest(lake, query, "sessionize.gap", settings.sessionize.gap)
        return open_rows.open_sessions(silver, read_table(spark, lake, WRITES[query]), settled, gap)
    if query == CAMPAIGN_STATS_QUERY:
        # A window is open until the watermark has passed it by the reach of a click, whose impression lies as far back.
        reach = _longest(lake, query, "attribute.window", settings.attribute.window)
        return open_rows.within_reach(silver, settled, settings.campaign_stats.window + 2 * reach)
    return open_rows.not_settled(silver, settled)


def rows_of(
    spark: SparkSession, settings: Settings, lake: Lake, query: str, note: CommitNote, sides: Sequence[DataFrame]
) -> DataFrame:
    """The rows of ``query`` from ``sides``, for each of its sources the open events as a stream."""
    if query == DEDUPLICATE:
        return deduplicate(good_events(sides[0]), settings.deduplicate)
    if query == ATTRIBUTE:
        return attribute(sides[0], sides[-1], settings.attribute)
    if query == SESSIONIZE:
        return sessionize(sides[0], settings.sessionize)
    if query == CAMPAIGN_STATS_QUERY:
        return campaign_stats(sides[0], sides[1], sides[2], settings.campaign_stats, settings.attribute.window)
    settled, silver = _settled(note), read_table(spark, lake, SILVER_EVENTS)
    if query == MOVING_AVERAGE:
        known = known_states.last_values(silver, settled, settings.moving_average)
        return moving_average(sides[0], settings.moving_average, initial=known)
    there = known_states.users_there(silver, read_table(spark, lake, USER_STATUS), settled)
    return user_status(sides[0], settings.user_status, initial=there)


def conf_of(query: str) -> dict[str, str]:
    """What ``query`` needs of Spark beside what all do."""
    return keyed_state_conf() if query in (MOVING_AVERAGE, USER_STATUS_QUERY) else {}


def _settled(note: CommitNote) -> datetime:
    return EPOCH + timedelta(milliseconds=note.watermark_ms)


def _longest(lake: Lake, query: str, setting: str, now: timedelta) -> timedelta:
    manifest = read_manifest(lake, query, lake.version(query))
    return max(now, parse_duration(manifest.settings[setting])) if manifest else now
