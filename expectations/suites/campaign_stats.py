"""gold/campaign_stats: one row per campaign and window."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from expectations.rules import Rule, between, length, not_null, unique, zero
from expectations.suites.base import Suite, count_true, with_repeats
from spark_jobs.config.durations import format_duration, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import MAX_ID_CHARACTERS
from spark_jobs.contract.tables import CAMPAIGN_STATS, SUMS, VALID
from spark_jobs.queries.campaign_stats.windows import key_of


def suite(settings: Settings) -> Suite:
    """The rules for campaign statistics."""
    window, slide = settings.campaign_stats.window, settings.campaign_stats.slide

    def prepare(rows: DataFrame, whole: DataFrame | None) -> DataFrame:
        return with_repeats(rows, whole, key_of(rows.columns), "window_occurrences").withColumns(
            {
                "length_off_us": F.unix_micros("window_end") - F.unix_micros("window_start") - microseconds(window),
                "start_off_us": F.unix_micros("window_start") % microseconds(slide),
                "missing_sums": _missing(SUMS),
                # All or none: null means that net equals gross.
                "missing_net": F.when(F.coalesce(*VALID).isNull(), 0).otherwise(_missing(VALID)),
                "net_difference": count_true(
                    *(F.col(name) < 0 for name in VALID),
                    *(F.col(net) > F.col(gross) for gross, net in zip(SUMS, VALID, strict=True)),
                ),
                "events_counted": F.col("impressions") + F.col("clicks"),
                # One is null and the other is not, or the numbers differ.
                "rate_difference": F.when(
                    ~F.col("ctr").eqNullSafe(F.expr("CASE WHEN impressions > 0 THEN clicks / impressions END")), 1
                ).otherwise(0),
            }
        )

    windows = (
        zero("window_length", "length_off_us", f"Every window is {format_duration(window)} long."),
        zero("window_begins", "start_off_us", f"Windows start every {format_duration(slide)}."),
    )
    return Suite(CAMPAIGN_STATS, (*windows, *_row_rules()), prepare)


def _missing(names: Sequence[str]) -> Column:
    """How many of the sums ``names`` (impressions, clicks, cost) are missing; impressions may have no cost."""
    impressions, clicks, cost = names
    has_no_cost = F.col(cost).isNull() & ~F.coalesce(F.col(impressions) > 0, F.lit(False))
    return count_true(F.col(impressions).isNull(), F.col(clicks).isNull(), has_no_cost)


def _row_rules() -> tuple[Rule, ...]:
    return (
        not_null("window_start", "Every window has a start."),
        not_null("window_end", "Every window has an end."),
        not_null("campaign_id", "Every window has a campaign."),
        length("campaign_id", 1, MAX_ID_CHARACTERS, f"campaign_id has 1 to {MAX_ID_CHARACTERS} characters."),
        unique(
            "window_unique",
            "window_occurrences",
            "Each campaign (and value of campaign_stats.group_by) has one row per window.",
        ),
        zero(
            "no_missing_sums",
            "missing_sums",
            "Every window has impressions and clicks, and without impressions a cost of 0.",
        ),
        between("impressions_not_negative", "impressions", "impressions is never negative.", minimum=0),
        between("clicks_not_negative", "clicks", "clicks is never negative.", minimum=0),
        between("cost_micros_not_negative", "cost_micros", "cost_micros is never negative.", minimum=0),
        between("not_empty", "events_counted", "A window has at least one event.", minimum=1),
        zero("no_missing_net", "missing_net", "A window has all of the valid sums, or none of them."),
        zero(
            "net_within_gross",
            "net_difference",
            "A valid sum is never negative and never larger than that of all events.",
        ),
        zero("ctr_is_right", "rate_difference", "ctr is clicks / impressions, and null without impressions."),
    )
