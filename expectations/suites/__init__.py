"""What must hold of each table, and of the tables together."""

from expectations.suites.attributions import attributions_suite
from expectations.suites.base import Suite
from expectations.suites.bronze import bronze_suite
from expectations.suites.campaign_stats import campaign_stats_suite
from expectations.suites.lake import lake_rules
from expectations.suites.moving_averages import moving_averages_suite
from expectations.suites.sessions import sessions_suite
from expectations.suites.silver import silver_suite
from expectations.suites.user_status import user_status_suite
from spark_jobs.contracts.settings import Settings

__all__ = ["Suite", "lake_rules", "table_suites"]


def table_suites(settings: Settings) -> tuple[Suite, ...]:
    """The suite of every table, in the order in which data flows."""
    return (
        bronze_suite(settings),
        silver_suite(),
        attributions_suite(settings),
        sessions_suite(settings),
        campaign_stats_suite(settings),
        moving_averages_suite(settings),
        user_status_suite(settings),
    )
