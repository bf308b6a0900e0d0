"""Prometheus metrics of the credits of campaigns, from the small file that `adloom credit` writes."""

from collections import defaultdict
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from spark_jobs.credit.plan import FEED_DAYS, CreditFeed
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import read_record
from spark_jobs.operations.exporter.series import OTHERS, largest
from spark_jobs.places import CREDIT_FEED

NO_CAMPAIGN = "(organic)"
"""The campaign label of conversions without a touch."""
_Key = tuple[str, str, str]
"""Campaign, model and currency."""


def credit_metrics(lake: Lake) -> Iterator[Metric]:
    """Gauges from the file of ``lake``; none without a file.

    The campaigns with the largest shares of conversions have series of their own.

    Raises:
        LakeError: the file is damaged.
    """
    remedy = "remove it, the next run of `adloom credit` writes it again"
    feed = read_record(lake, CREDIT_FEED, CreditFeed, remedy=remedy)
    if feed is None:
        return
    conversions, values = defaultdict[_Key, float](float), defaultdict[_Key, float](float)
    shown = largest((one.campaign, one.conversions) for one in feed.credited if one.campaign is not None)
    named: dict[str | None, str] = {campaign: campaign for campaign in shown} | {None: NO_CAMPAIGN}
    for one in feed.credited:
        key = named.get(one.campaign, OTHERS), one.model, one.currency or ""
        conversions[key] += one.conversions
        values[key] += one.value_micros
    of = f"of the last {FEED_DAYS} days that a campaign is credited with"
    yield _family("adloom_credit_conversions", f"conversions {of}, each by its share", conversions)
    yield _family("adloom_credit_value_micros", f"value of conversions {of}, in micro-units of currency", values)
    meaning = "Unix time up to which conversions have their credit"
    yield GaugeMetricFamily("adloom_credit_until_seconds", meaning, value=feed.until.timestamp())


def _family(name: str, meaning: str, sums: dict[_Key, float]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=["campaign", "model", "currency"])
    for key, value in sums.items():
        family.add_metric(key, value)
    return family
