"""Visits: bursts of page views, the ads shown on the pages, and clicks on the ads; in between, conversions and bots."""

from collections.abc import Callable, Iterator
from itertools import islice
from random import Random

from spark_jobs.contract.events import ACTIVITY, CLICK, CONVERSION, IMPRESSION
from spark_jobs.generator import lines
from spark_jobs.generator.audience import Audience
from spark_jobs.generator.bots import Bots
from spark_jobs.generator.chance import TABLE_SIZE, Ids, lognormal_table
from spark_jobs.generator.conversions import Conversions
from spark_jobs.generator.daycurve import DayCurve
from spark_jobs.generator.devices import Devices
from spark_jobs.generator.due import Due, Planned
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.timetext import write_time

MAX_VISIT_EVENTS = 120
"""The most events a visit may have."""

Event = tuple[int, bytes]
"""A time in microseconds since 1970, and the event as a line, line end included."""

_SECOND = 1_000_000
_MEAN_PAGES = 6.0
_EVENTS_PER_PAGE = 3.1  # only spaces visits along the day curve: need not be exact
_ADS_ON_A_PAGE = (1, 2, 2, 2, 2, 3, 1, 2, 2, 3)
_DWELL = lognormal_table(22 * _SECOND, 0.9)
_CLICK_DELAY = lognormal_table(6 * _SECOND, 1.3)
_AD_LOAD = (_SECOND // 10, 2 * _SECOND)
_SECOND_CLICK_SHARE = 0.08
_FORGOTTEN_TAB_SHARE = 0.006
_FORGOTTEN_TAB = (3605 * _SECOND, 5400 * _SECOND)
_LOGOUT_SHARE = 0.4


class Visits:
    """All visits of a spec, generated in order of their start.

    ``impressions``, ``clicks`` (``orphans`` included), ``activity`` and ``conversions.made`` count the events generated
    so far, those of bots included, which ``bots.made`` counts.
    """

    def __init__(self, spec: GeneratorSpec, curve: DayCurve, on_label: Callable[[bytes], object]) -> None:
        """``on_label`` is called with the label of each event that a bot makes, a line of JSON."""
        self.impressions = self.clicks = self.activity = self.orphans = 0
        self._spec, self._on_label = spec, on_label
        self._curve = curve
        rng = Random(f"{spec.seed}/visits")
        self._due = Due()
        self.conversions = Conversions(spec, self._due)
        self._audience = Audience(spec.user_count, spec.campaigns, rng)
        self._devices = Devices(spec)
        self.bots = Bots(spec, self._audience, self._devices, self._due)
        self._ids = Ids(rng)
        self._rng = rng
        self._random = rng.random
        self._events: list[Event] = []
        self._limit = 0
        self._device = ""

    @property
    def made(self) -> int:
        """How many events have been generated."""
        return self.impressions + self.clicks + self.activity + self.conversions.made

    def __iter__(self) -> Iterator[list[Event]]:
        """The visits, each a list of events that begins with its earliest; what is planned ahead is a list of its own.

        A visit takes a stretch of the day curve proportional to its events and starts somewhere within it. So visits
        come in order, and exactly ``spec.events`` events fill the day.
        """
        total, begin = self._spec.events, self._curve.begin
        while (made := self.made) < total:
            pages = 1 + int(self._rng.expovariate(1 / (_MEAN_PAGES - 0.5)))
            stretch = min(pages * _EVENTS_PER_PAGE, total - made)
            begin = max(begin, self._curve.moment((made + self._random() * stretch) / total))
            # A visit is the last of all: what is late is due by its start.
            for planned in islice(self._due.next_before(begin), total - made - 1):
                self._count(planned)
                yield [(planned.moment, planned.line)]
            self.bots.plan(begin, self.made)
            self._events = []
            self._limit = min(MAX_VISIT_EVENTS, total - self.made)
            self._visit(begin, pages)
            yield self._events

    def _count(self, planned: Planned) -> None:
        if planned.event_type == CONVERSION:
            self.conversions.count(planned.kind)
        else:
            self.impressions += planned.event_type == IMPRESSION
            self.clicks += planned.event_type == CLICK
            self.activity += planned.event_type == ACTIVITY
        if planned.label:
            self.bots.made += 1
            self._on_label(planned.label)

    def _visit(self, begin: int, pages: int) -> None:
        user, moment = self._audience.user(), begin
        self._device = self._devices.of(user)
        for _ in range(pages):
            moment = self._page(user, moment)
            moment += _DWELL[int(self._random() * TABLE_SIZE)]
            if not self._has_room(moment):
                return
        if self._random() < _LOGOUT_SHARE:
            self._add_activity(user, moment, '"page=/logout","is_last":true')

    def _has_room(self, moment: int) -> bool:
        return moment < self._curve.end and len(self._events) < self._limit

    def _page(self, user: str, moment: int) -> int:
        """Adds a page view at ``moment``, its ads and their clicks; returns when the last ad was shown."""
        random = self._random
        self._add_activity(user, moment, self._audience.page())
        earliest, latest = _AD_LOAD
        for _ in range(_ADS_ON_A_PAGE[int(random() * len(_ADS_ON_A_PAGE))]):
            moment += earliest + int(random() * (latest - earliest))
            if not self._has_room(moment):
                break
            campaign = self._audience.campaign()
            impression_id = f"imp-{self._ids.next()}"
            shown, text = write_time(moment, random)
            ad, cost = campaign.ad(random()), campaign.cost(random())
            self._events.append((shown, lines.impression(impression_id, text, user, ad, cost, self._device)))
            self.impressions += 1
            if random() < campaign.click_rate:
                self._click(user, shown, impression_id)
        return moment

    def _click(self, user: str, shown: int, impression_id: str) -> None:
        """One click on an ad, sometimes two; sometimes so late that it misses the attribution window."""
        random = self._random
        moment = shown + 1000 + _CLICK_DELAY[int(random() * TABLE_SIZE)]
        if random() < _FORGOTTEN_TAB_SHARE:
            soonest, latest = _FORGOTTEN_TAB
            much_later = shown + soonest + int(random() * (latest - soonest))
            moment = much_later if much_later < self._curve.end else moment
        if len(self._events) < self._limit:
            self._add_click(user, moment, impression_id)
        if random() < _SECOND_CLICK_SHARE and len(self._events) < self._limit:
            self._add_click(user, moment + _SECOND + int(random() * 20 * _SECOND), impression_id)

    def _add_click(self, user: str, moment: int, impression_id: str) -> None:
        if self._random() < self._spec.orphans:
            impression_id = f"imp-{self._ids.next()}"
            self.orphans += 1
        moment, text = write_time(moment, self._random)
        self.clicks += 1
        self.conversions.follow(user, moment, self._device)
        line = lines.click(f"clk-{self._ids.next()}", text, user, impression_id, self._device)
        self._events.append((moment, line))

    def _add_activity(self, user: str, moment: int, data: str) -> None:
        """Adds an activity; ``data`` is JSON text, optionally followed by more fields."""
        moment, text = write_time(moment, self._random)
        self.activity += 1
        line = lines.activity(f"act-{self._ids.next()}", text, user, data, self._device)
        self._events.append((moment, line))
