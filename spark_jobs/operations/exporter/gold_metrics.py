"""Prometheus metrics of campaigns, sessions and credit, from the small files of gold; rows are not read."""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from spark_jobs.contract.tables import SESSIONS
from spark_jobs.credit.plan import FEED_DAYS, CreditFeed
from spark_jobs.errors import AdloomError, LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import read_record
from spark_jobs.lake.table_files import live_files
from spark_jobs.places import CREDIT_FEED, FEED

_FIGURES = {
    "impressions": "impressions",
    "clicks": "clicks, by their own time",
    "cost_micros": "cost of the impressions, in micro-units of currency",
}
_log = logging.getLogger(__name__)
NO_CAMPAIGN = "(organic)"
"""In place of the campaign of conversions without a touch."""
_Key = tuple[str, str, str]
"""Campaign, model and currency."""
MOST_CAMPAIGNS = 100
"""The number of campaigns with series of their own, those with the largest amounts."""
OTHERS = "(others)"
"""In place of the name of all other campaigns together."""


class GoldMetrics(Collector):
    """Metrics of ``lake``: campaigns in its newest windows, today's sessions and credit; as of the last refresh."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._latest: tuple[Metric, ...] = ()

    def collect(self) -> Iterator[Metric]:
        """The metrics; none for a table that is missing or could not be read."""
        yield from self._latest

    def refresh(self, now: datetime) -> None:
        """Reads the feeds of ``campaign_stats`` and credit, and the log of ``gold/sessions``, at the time ``now``."""
        try:
            self._latest = (
                *self._campaigns(),
                *self._sessions(now.date()),
                *credit_metrics(self._lake),
            )
        except AdloomError as error:
            # Old figures would look current.
            self._latest = ()
            _log.warning("no metrics of campaigns, sessions and credit: %s", error)

    def _campaigns(self) -> Iterator[Metric]:
        windows = _windows(self._lake)
        if not windows:
            return
        end, length = windows[-1].end, windows[-1].length
        # Windows may overlap: each event is in exactly one of these.
        apart = [one for one in windows if one.length == length and (end - one.end) % length == timedelta()]
        spans = {"window": [one for one in apart if one.end == end], "feed": apart}
        covered = GaugeMetricFamily("adloom_campaign_span_seconds", "event time of a span", labels=["span"])
        figures = {
            name: GaugeMetricFamily(f"adloom_campaign_{name}", f"{meaning}, in a span", labels=["campaign", "span"])
            for name, meaning in _FIGURES.items()
        }
        for span, members in spans.items():
            covered.add_metric([span], (end - min(one.start for one in members)).total_seconds())
            for name, family in figures.items():
                for campaign, value in _summed(members, name):
                    family.add_metric([campaign, span], value)
        yield from (covered, *figures.values())
        meaning = "Unix time at which the newest window of campaign_stats ends"
        yield GaugeMetricFamily("adloom_campaign_newest_window_seconds", meaning, value=end.timestamp())

    def _sessions(self, today: date) -> Iterator[Metric]:
        version = self._lake.newest_commit(SESSIONS.path)
        if version is None:
            return
        files = live_files(self._lake, SESSIONS, version)
        rows = [file.rows for file in files if file.partition.get("event_date") == today.isoformat()]
        if None not in rows:
            meaning = "sessions that began today (UTC) and have ended"
            yield GaugeMetricFamily("adloom_sessions_today", meaning, value=sum(map(int, filter(None, rows))))


class _Window:
    """A row of the feed."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.start, self.end = (datetime.fromisoformat(row[name]) for name in ("window_start", "window_end"))
        self.campaign: str = row["campaign_id"]
        self.figures: dict[str, int | None] = {name: row[name] for name in _FIGURES}

    @property
    def length(self) -> timedelta:
        return self.end - self.start


def _windows(lake: Lake) -> list[_Window]:
    """The rows of the feed, the newest last; none without a feed.

    Raises:
        LakeError: the file is not a feed.
    """
    text = lake.files.read(FEED)
    if text is None:
        return []
    try:
        return sorted(map(_Window, json.loads(text)["windows"]), key=lambda one: one.end)
    except (ValueError, KeyError, TypeError) as error:
        raise LakeError(
            f"{lake.shown(FEED)} is not a feed of campaign_stats: {error!r}; remove it, the next batch of "
            "campaign_stats writes it again"
        ) from error


def _summed(windows: Iterable[_Window], name: str) -> Iterator[tuple[str, int]]:
    """The sum of the figure ``name`` by campaign; campaigns without a known value are left out."""
    shown = largest((one.campaign, one.figures["impressions"] or 0) for one in windows)
    sums = Counter[str]()
    for one in windows:
        if (value := one.figures[name]) is not None:
            # Added even if it is 0, which is a known value.
            sums[one.campaign if one.campaign in shown else OTHERS] += value
    yield from sums.items()


def credit_metrics(lake: Lake) -> Iterator[Metric]:
    """Gauges of what the file of ``lake`` says; none without a file.

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


def largest(amounts: Iterable[tuple[str, float]]) -> set[str]:
    """The :data:`MOST_CAMPAIGNS` campaigns with the largest sums of ``amounts``; of equal ones, the first."""
    sums = defaultdict[str, float](float)
    for campaign, amount in amounts:
        sums[campaign] += amount
    return set(sorted(sums, key=lambda campaign: -sums[campaign])[:MOST_CAMPAIGNS])
