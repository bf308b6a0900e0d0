"""The credits of campaigns in the last days: a small file that `adloom credit` writes for dashboards."""

from contextlib import closing
from datetime import datetime, timedelta

from spark_jobs.config.sections import S3Settings
from spark_jobs.contract.tables import CREDITS
from spark_jobs.credit.plan import CREDIT_PLANS, FEED_DAYS, CreditedCampaign, CreditFeed
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import find_record, write_record
from spark_jobs.lake.store.arrow import row_store
from spark_jobs.places import CREDIT_FEED
from spark_jobs.sql.lake_sql import LakeSql
from spark_jobs.sql.views.daily_credits import VIEW


def refresh_feed(lake: Lake, s3: S3Settings) -> None:
    """Writes the file unless it has the last run: that run may have been killed just before it wrote the file.

    Args:
        lake: the lake.
        s3: of its store.

    Raises:
        SettingsError: there are no keys for the store.
        LakeError: a table cannot be read.
    """
    newest = CREDIT_PLANS.newest(lake)
    if newest is None or CREDIT_PLANS.done(lake, newest.number) is None or not lake.has(CREDITS):
        return
    feed = find_record(lake, CREDIT_FEED, CreditFeed)
    if feed is None or feed.run != newest.number:
        write_feed(lake, s3, newest.number, newest.reach.until)


def write_feed(lake: Lake, s3: S3Settings, run: int, until: datetime) -> None:
    """Writes the file from the current tables of credit of ``lake``.

    Args:
        lake: the lake; the tables must exist.
        s3: of its store.
        run: number of the last run that is in the tables.
        until: how far credit has come; with zone.

    Raises:
        SettingsError: there are no keys for the store.
        LakeError: a table cannot be read.
    """
    first = until.date() - timedelta(days=FEED_DAYS - 1)
    query = (
        "SELECT campaign_id, model, currency, sum(conversions), sum(value_micros)::BIGINT "
        f"FROM {VIEW.name} WHERE event_date >= DATE '{first}' GROUP BY ALL ORDER BY ALL"
    )
    with closing(LakeSql(lake, row_store(lake, s3))) as sql:
        rows = sql.run(query)
        assert rows is not None  # noqa: S101 it is a query
        names = CreditedCampaign.model_fields
        found = [CreditedCampaign.model_validate(dict(zip(names, row, strict=True))) for row in rows.fetchall()]
    write_record(lake, CREDIT_FEED, CreditFeed(run=run, until=until, credited=tuple(found)), indent=None)
