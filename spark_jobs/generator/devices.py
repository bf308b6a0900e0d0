"""Addresses and user agents of people and bots, all from ranges that belong to nobody on the Internet."""

from hashlib import blake2b
from random import Random
from typing import Final

from spark_jobs.generator.spec import GeneratorSpec

DATACENTERS: Final = ("198.51.100.0/24", "2001:db8:dc::/48")
"""Where the bots in datacenters are: reserved for documentation (RFC 5737, RFC 3849)."""
_CRAWLERS_IPV4 = "203.0.113"
_SIX_SHARE_OF_DATACENTER = 0.25
_SIX_SHARE = 0.3
_AWAY_SHARE = 0.2
"""Of visits: from a second device, in another network."""
_SHARED_SHARE = 0.1
_USERS_OF_A_SHARED = 5
"""Of networks: such as an office, with one address for several users."""
_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome"
_SAMSUNG = "AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser"
_SAFARI = "AppleWebKit/605.1.15 (KHTML, like Gecko) Version"
_BROWSERS = (
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME}/131.0.0.0 Safari/537.36",
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME}/130.0.0.0 Safari/537.36",
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME}/131.0.0.0 Safari/537.36 Edg/131.0.0.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0",
    f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {_CHROME}/131.0.0.0 Safari/537.36",
    f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {_SAFARI}/18.1 Safari/605.1.15",
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) {_SAFARI}/18.1 Mobile/15E148 Safari/604.1",
    f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_7 like Mac OS X) {_SAFARI}/17.7 Mobile/15E148 Safari/604.1",
    f"Mozilla/5.0 (iPad; CPU OS 18_1 like Mac OS X) {_SAFARI}/18.1 Mobile/15E148 Safari/604.1",
    f"Mozilla/5.0 (Linux; Android 10; K) {_CHROME}/131.0.0.0 Mobile Safari/537.36",
    f"Mozilla/5.0 (Linux; Android 10; K) {_SAMSUNG}/27.0 Chrome/125.0.0.0 Mobile Safari/537.36",
)
_CRAWLERS = (
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
    "Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)",
    "DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)",
    "Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)",
)


class Devices:
    """The devices of a spec. Those of a user stay the same, mostly; they draw from a random generator of their own."""

    def __init__(self, spec: GeneratorSpec) -> None:
        self._is_given = spec.bots > 0
        self._seed = spec.seed
        self._shared = max(1, int(spec.user_count * _SHARED_SHARE / _USERS_OF_A_SHARED))
        self._random = Random(f"{spec.seed}/devices").random

    def of(self, user: str) -> str:
        """The device that ``user`` visits with, as JSON text after a comma; empty if events have no such fields."""
        if not self._is_given:
            return ""
        place = "away" if self._random() < _AWAY_SHARE else "home"
        digest = blake2b(f"{self._seed}/{user}/{place}".encode(), digest_size=12).digest()
        network, browser = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
        return _fields(self._address(network), _BROWSERS[browser % len(_BROWSERS)])

    def of_crawler(self) -> str:
        """The device of a crawler that identifies itself."""
        return _fields(f"{_CRAWLERS_IPV4}.{self._below(256)}", _CRAWLERS[self._below(len(_CRAWLERS))])

    def of_datacenter(self) -> str:
        """The device of a bot in a datacenter: its browser looks like a person's."""
        is_six = self._random() < _SIX_SHARE_OF_DATACENTER
        address = f"2001:db8:dc::{self._below(65536):x}" if is_six else f"198.51.100.{self._below(256)}"
        return _fields(address, _BROWSERS[self._below(len(_BROWSERS))])

    def _address(self, network: int) -> str:
        """The address of a person's network, from a random number: shared address space (RFC 6598), or IPv6."""
        kind, rest = network % 1000, network // 1000
        if kind < 1000 * _SHARED_SHARE:
            rest %= self._shared
        elif kind >= 1000 * (1 - _SIX_SHARE):
            return f"2001:db8:{0x1000 + rest % 0xF000:x}:{rest >> 16 & 0xFFFF:x}::{rest >> 32 & 0xFFFF:x}"
        rest %= 1 << 22
        return f"100.{64 + (rest >> 16)}.{rest >> 8 & 0xFF}.{rest & 0xFF}"

    def _below(self, count: int) -> int:
        return int(self._random() * count)


def _fields(address: str, user_agent: str) -> str:
    return f',"ip":"{address}","user_agent":"{user_agent}"'
