"""The users who visit and what they see: pages, campaigns and their ads."""

import json
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from spark_jobs.generator.chance import TABLE_SIZE, lognormal_table

_HEAVY_SHARE = 1 / 200
_GOLDEN = 0.6180339887498949
_LOWEST_CLICK_RATE, _HIGHEST_CLICK_RATE = 0.005, 0.06
_CHEAPEST, _DEAREST = 600, 6000
_MOST_ADS = 6
_COST_FACTOR = 1000
_COST_NOISE = lognormal_table(_COST_FACTOR, 0.5)
_SECTIONS = ("news", "sport", "weather", "shop", "video", "wetter/münchen", "новости", "天気")
_PAGES_PER_SECTION = 50


@dataclass(frozen=True)
class Campaign:
    """A campaign: ``ads`` are JSON fields, one string per ad; ``click_rate`` is the share of impressions clicked."""

    ads: tuple[str, ...]
    click_rate: float
    typical_cost: int

    def ad(self, draw: float) -> str:
        """One of the ads, picked by a uniform ``draw``."""
        return self.ads[int(draw * len(self.ads))]

    def cost(self, draw: float) -> int:
        """The log-normal cost of an impression in micro-units of currency, from a uniform ``draw``."""
        return self.typical_cost * _COST_NOISE[int(draw * TABLE_SIZE)] // _COST_FACTOR


class Audience:
    """Draws users, pages and campaigns from skewed distributions."""

    def __init__(self, users: int, campaigns: int, rng: Random) -> None:
        self._random = rng.random
        self._bend = users * _HEAVY_SHARE
        self._ratio = 1 + 1 / _HEAVY_SHARE
        self._digits = max(6, len(str(users)))
        digits = len(str(campaigns))
        self._campaigns = [_campaign(rank, digits, rng) for rank in range(campaigns)]
        weights = list(accumulate(1 / (rank + 1) for rank in range(campaigns)))
        self._weights = [weight / weights[-1] for weight in weights[:-1]]
        self._pages = [
            json.dumps(f"page=/{section}/{number}", ensure_ascii=False)
            for section in _SECTIONS
            for number in range(1, _PAGES_PER_SECTION + 1)
        ]

    def user(self) -> str:
        """A user's id, Zipf-Mandelbrot distributed.

        The bend grows with the number of users, so the heaviest users make the same number of visits a day (about
        forty) in small and large inputs. Plain Zipf would turn millions of events into one day-long session.
        """
        return self.user_id(int(self._bend * (self._ratio ** self._random() - 1)) + 1)

    def user_id(self, number: int) -> str:
        """The id of a user by number, from 1 on."""
        return f"u-{number:0{self._digits}d}"

    def page(self) -> str:
        """The ``data`` of a page view, as JSON text."""
        return self._pages[int(self._random() * len(self._pages))]

    def campaign(self) -> Campaign:
        """A campaign, Zipf distributed."""
        return self._campaigns[bisect_right(self._weights, self._random())]


def _campaign(rank: int, digits: int, rng: Random) -> Campaign:
    name = f"c-{rank + 1:0{digits}d}"
    ads = tuple(
        f'"campaign_id":"{name}","ad_id":"{name}-a{number}"' for number in range(1, rng.randint(1, _MOST_ADS) + 1)
    )
    # Spread evenly over the ranks instead of drawn; otherwise the few largest campaigns would decide how many clicks
    # there are. Most rates are near the upper end.
    spread = (0.5 + rank * _GOLDEN) % 1.0
    click_rate = _HIGHEST_CLICK_RATE - (_HIGHEST_CLICK_RATE - _LOWEST_CLICK_RATE) * spread**4
    return Campaign(ads, click_rate, rng.randint(_CHEAPEST, _DEAREST))
