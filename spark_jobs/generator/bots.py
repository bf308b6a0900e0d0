"""Bots: visitors that are not people, each with a behaviour that a rule can detect, and labels for their events.

A bot has a user id of its own, which looks like all others. But for crawlers and those in datacenters, its address and
its user agent are like those of people, so that only what it does gives it away.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Final

from spark_jobs.contract.events import ACTIVITY, CLICK, CONVERSION, IMPRESSION
from spark_jobs.generator import lines
from spark_jobs.generator.audience import Audience
from spark_jobs.generator.chance import Ids
from spark_jobs.generator.devices import Devices
from spark_jobs.generator.due import Due, Planned
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.timetext import write_time

CRAWLER: Final = "crawler"
DATACENTER: Final = "datacenter"
CLICK_FLOOD: Final = "click_flood"
REPEATED_CLICKS: Final = "repeated_clicks"
FAST_CLICKS: Final = "fast_clicks"
FAST_CONVERSIONS: Final = "fast_conversions"
BEHAVIOURS: Final = (CRAWLER, DATACENTER, CLICK_FLOOD, REPEATED_CLICKS, FAST_CLICKS, FAST_CONVERSIONS)
"""The values of the labels. Without conversions there are no fast ones."""

_MILLISECOND, _SECOND = 1000, 1_000_000
_START = (_SECOND, 60 * _SECOND)
"""How long after it was planned a bot begins."""
_PAGES = (3, 9)
_CLICKED_SHARE = 0.3
_CRAWL_PAUSE = (_SECOND, 5 * _SECOND)
_READ = (5 * _SECOND, 40 * _SECOND)
_AD_LOAD = (_SECOND // 10, 2 * _SECOND)
_THINK = (2 * _SECOND, 20 * _SECOND)
_FLOOD_CLICKS, _FLOOD_PAUSE, _FLOOD_DELAY = (40, 90), (300 * _MILLISECOND, _SECOND), (_SECOND, 4 * _SECOND)
_REPEATS, _REPEAT_PAUSE = (6, 20), (15 * _SECOND, 40 * _SECOND)
_FAST_CLICK = (20 * _MILLISECOND, 200 * _MILLISECOND)
_FAST_CONVERSION = (500 * _MILLISECOND, 4 * _SECOND)
"""After the click. People take at least five seconds, unless they click again in between."""


class Bots:
    """The bots of a spec: a share of all events, with equally many events of each behaviour.

    They draw from a random generator of their own. ``made`` counts the events that were taken.
    """

    def __init__(self, spec: GeneratorSpec, audience: Audience, devices: Devices, due: Due) -> None:
        self.made = 0
        self._share, self._users = spec.bots, spec.user_count
        behaviours = BEHAVIOURS if spec.conversions else tuple(one for one in BEHAVIOURS if one != FAST_CONVERSIONS)
        self._planned = dict.fromkeys(behaviours, 0)
        self._bots = 0
        rng = Random(f"{spec.seed}/bots")
        self.random, self.ids = rng.random, Ids(rng)
        self.audience, self.devices, self.due = audience, devices, due

    def plan(self, begin: int, made: int) -> None:
        """Plans bots that come after ``begin``, as many as are due when ``made`` events have been generated."""
        while sum(self._planned.values()) < self._share * made:
            behaviour = min(self._planned, key=self._planned.__getitem__)
            self._bots += 1
            bot = _Bot(self, behaviour, self.audience.user_id(self._users + self._bots))
            _ACTS[behaviour](bot, begin + self.between(_START))
            self._planned[behaviour] += bot.events

    def between(self, bounds: tuple[int, int]) -> int:
        """A uniform draw from ``bounds``."""
        least, most = bounds
        return least + int(self.random() * (most - least))


class _Bot:
    """One bot: who it is, and what it can do; ``events`` counts what it does."""

    def __init__(self, bots: Bots, behaviour: str, user: str) -> None:
        self.events = 0
        self.between, self.random = bots.between, bots.random
        self._bots, self._behaviour, self._user = bots, behaviour, user
        devices = bots.devices
        own = {CRAWLER: devices.of_crawler, DATACENTER: devices.of_datacenter}.get(behaviour)
        self._device = own() if own else devices.of(user)

    def view(self, moment: int) -> None:
        """Views a page."""
        event_id, moment, text = self._begin("act", moment)
        line = lines.activity(event_id, text, self._user, self._bots.audience.page(), self._device)
        self._do(moment, ACTIVITY, event_id, line)

    def see(self, moment: int) -> str:
        """Is shown an ad; returns the id of the impression."""
        event_id, moment, text = self._begin("imp", moment)
        campaign = self._bots.audience.campaign()
        ad, cost = campaign.ad(self.random()), campaign.cost(self.random())
        self._do(moment, IMPRESSION, event_id, lines.impression(event_id, text, self._user, ad, cost, self._device))
        return event_id

    def click(self, moment: int, impression_id: str) -> None:
        """Clicks the ad of an impression."""
        event_id, moment, text = self._begin("clk", moment)
        self._do(moment, CLICK, event_id, lines.click(event_id, text, self._user, impression_id, self._device))

    def convert(self, moment: int) -> None:
        """Signs up."""
        event_id, moment, text = self._begin("cnv", moment)
        fields = '"conversion_type":"signup","value_micros":0'
        self._do(moment, CONVERSION, event_id, lines.conversion(event_id, text, self._user, fields, self._device))

    def browse(self, moment: int, pause: tuple[int, int], click_after: tuple[int, int], *, converts: bool) -> None:
        """Views pages as a person does; ``pause`` lies between them, and ``click_after`` before a click."""
        for _ in range(self.between(_PAGES)):
            self.view(moment)
            shown = moment + self.between(_AD_LOAD)
            impression_id = self.see(shown)
            if self.random() < _CLICKED_SHARE:
                clicked = shown + self.between(click_after)
                self.click(clicked, impression_id)
                if converts:
                    self.convert(clicked + self.between(_FAST_CONVERSION))
            moment = shown + self.between(pause)

    def _begin(self, prefix: str, moment: int) -> tuple[str, int, str]:
        """The id of an event, its time, and the text of that."""
        return f"{prefix}-{self._bots.ids.next()}", *write_time(moment, self.random)

    def _do(self, moment: int, event_type: str, event_id: str, line: bytes) -> None:
        label = {"event_type": event_type, "event_id": event_id, "behaviour": self._behaviour}
        self._bots.due.add(Planned(moment, line, event_type, label=json.dumps(label).encode() + b"\n"))
        self.events += 1


def _crawl(bot: _Bot, moment: int) -> None:
    bot.browse(moment, _CRAWL_PAUSE, _THINK, converts=False)


def _visit(bot: _Bot, moment: int) -> None:
    bot.browse(moment, _READ, _THINK, converts=False)


def _flood(bot: _Bot, moment: int) -> None:
    for _ in range(bot.between(_FLOOD_CLICKS)):
        bot.click(moment + bot.between(_FLOOD_DELAY), bot.see(moment))
        moment += bot.between(_FLOOD_PAUSE)


def _repeat(bot: _Bot, moment: int) -> None:
    impression_id = bot.see(moment)
    for _ in range(bot.between(_REPEATS)):
        moment += bot.between(_REPEAT_PAUSE)
        bot.click(moment, impression_id)


def _click_fast(bot: _Bot, moment: int) -> None:
    bot.browse(moment, _READ, _FAST_CLICK, converts=False)


def _convert_fast(bot: _Bot, moment: int) -> None:
    bot.browse(moment, _READ, _THINK, converts=True)


_ACTS: dict[str, Callable[[_Bot, int], None]] = {
    CRAWLER: _crawl,
    DATACENTER: _visit,
    CLICK_FLOOD: _flood,
    REPEATED_CLICKS: _repeat,
    FAST_CLICKS: _click_fast,
    FAST_CONVERSIONS: _convert_fast,
}
"""By behaviour, what a bot of it does from a moment on."""
