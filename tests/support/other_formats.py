"""Logs in the formats of others, made from a seed, each record with the event that it is.

The events are written down by the generators, and not by a mapping: they are what a right mapping must give.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from urllib.parse import quote
from uuid import UUID

Event = dict[str, Any]
"""The fields of an event. An ``event_id`` of ``ANY`` is right if each record has another one."""
ANY = object()
_START = datetime(2026, 3, 1, 12, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Log:
    """A file.

    Attributes:
        name: of the file.
        text: what it holds.
        events: by record, the event that it is.
    """

    name: str
    text: str
    events: list[Event]


@dataclass(frozen=True)
class Moment:
    """What happened, before it has a format."""

    kind: str
    number: int
    time: datetime
    user: int
    campaign: int
    ad: int
    micros: int
    impression: int


def moments(seed: int, count: int, kinds: str = "iiiiccaaa") -> list[Moment]:
    """Impressions (i), clicks (c) on earlier ones and other events (a), to the millisecond."""
    chance, found, time = Random(seed), [], _START
    shown: list[Moment] = []
    for number in range(count):
        time += timedelta(milliseconds=chance.randrange(1, 4000))
        kind = chance.choice(kinds)
        seen = chance.choice(shown) if kind == "c" and shown else None
        ad = chance.randrange(24)
        one = Moment(
            kind if seen or kind != "c" else "a",
            number,
            time,
            seen.user if seen else chance.randrange(count // 12),
            seen.campaign if seen else ad // 4,
            seen.ad if seen else ad,
            chance.randrange(500, 9000),
            seen.number if seen else number,
        )
        found.append(one)
        if one.kind == "i":
            shown.append(one)
        elif seen:
            shown.remove(seen)
    return found


def uuid(what: str, number: int) -> str:
    """An id that looks like those of others."""
    return str(UUID(int=Random(f"{what} {number}").getrandbits(128), version=4))


def millis(time: datetime) -> int:
    """Milliseconds since 1970."""
    return (time - _EPOCH) // timedelta(milliseconds=1)


def lines(records: Iterator[tuple[dict[str, Any], Event]], name: str) -> Log:
    """A file of JSON Lines."""
    pairs = list(records)
    return Log(name, "".join(json.dumps(record) + "\n" for record, _ in pairs), [event for _, event in pairs])


def table(records: Iterator[tuple[dict[str, Any], Event]], name: str, delimiter: str = ",") -> Log:
    """A CSV file with a header."""
    pairs = list(records)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(pairs[0][0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(record for record, _ in pairs)
    return Log(name, text.getvalue(), [event for _, event in pairs])


def event_of(one: Moment, event_id: Any, user_id: str | None, **fields: Any) -> Event:
    """What happened as an event."""
    kind = {"i": "impression", "c": "click", "a": "activity"}[one.kind]
    return {"event_type": kind, "event_id": event_id, "event_time": one.time, "user_id": user_id, **fields}


def _price(micros: int) -> str:
    return f"0.{micros:06}"


def flat_millis() -> Log:
    """One object a line, epoch milliseconds, short names, three types in one column."""

    def records() -> Iterator[tuple[dict[str, Any], Event]]:
        for one in moments(1, 3000):
            event_id, user = f"{one.kind}-{one.number}", f"u{one.user}"
            record: dict[str, Any] = {
                "id": event_id,
                "ts": millis(one.time),
                "rcv": millis(one.time) + 300,
                "uid": user,
            }
            if one.kind == "i":
                cost = float(_price(one.micros))
                record |= {"type": "imp", "cmp": one.campaign, "ad": f"ad{one.ad}", "price": cost, "w": 300, "h": 250}
                own = {"campaign_id": str(one.campaign), "ad_id": f"ad{one.ad}", "cost_micros": one.micros}
            elif one.kind == "c":
                record |= {"type": "clk", "imp": f"i-{one.impression}", "x": one.number % 300}
                own = {"impression_id": f"i-{one.impression}"}
            else:
                record |= {"type": "pv", "page": f"/p/{one.number % 40}"}
                own = {"data": f"/p/{one.number % 40}"}
            yield record, event_of(one, event_id, user, **own)

    return lines(records(), "flat_millis.jsonl")


def openrtb() -> Log:
    """Bids that won, nested, all of them impressions; the user is in one of two places, a price is for thousand."""

    def records() -> Iterator[tuple[dict[str, Any], Event]]:
        for one in moments(2, 2000, kinds="i"):
            user, request = uuid("user", one.user), uuid("request", one.number)
            bid = {
                "id": "1",
                "impid": "1",
                "price": one.micros / 1000,
                "cid": f"c{one.campaign}",
                "crid": f"cr{one.ad}",
            }
            record: dict[str, Any] = {
                "id": request,
                "at": 2,
                "tmax": 120,
                "imp": [{"id": "1", "banner": {"w": 300, "h": 250, "pos": one.number % 3}, "bidfloor": 0.1}],
                "site": {"domain": f"s{one.number % 9}.example", "publisher": {"id": f"p{one.number % 9}"}},
                "device": {"ua": "Mozilla/5.0 (X11)", "ip": f"192.0.2.{one.number % 250}", "os": "Linux"},
                "user": {},
                "seatbid": [{"seat": "7", "bid": [bid]}],
                "cur": "USD",
                "ext": {"shown_at": one.time.isoformat(timespec="milliseconds")},
            }
            if one.user % 3:
                record["user"]["buyeruid"] = user
            else:
                record["device"]["ifa"] = user
            own = {"campaign_id": f"c{one.campaign}", "ad_id": f"cr{one.ad}", "cost_micros": one.micros}
            yield record, event_of(one, request, user, **own)

    return lines(records(), "openrtb.jsonl.gz")


def snowplow() -> Log:
    """Self-describing events: the schema's address says what they are, and several times when something happened."""

    def records() -> Iterator[tuple[dict[str, Any], Event]]:
        for one in moments(3, 3000):
            event_id, user = uuid("event", one.number), uuid("user", one.user)
            own: Event = {}
            if one.kind == "i":
                name, shown = "ad_impression", uuid("shown", one.number)
                cost = float(_price(one.micros))
                about = {
                    "impressionId": shown,
                    "campaignId": f"c{one.campaign}",
                    "bannerId": f"b{one.ad}",
                    "cost": cost,
                }
                own = {"campaign_id": f"c{one.campaign}", "ad_id": f"b{one.ad}", "cost_micros": one.micros}
                event_id = shown
            elif one.kind == "c":
                name, about = (
                    "ad_click",
                    {"impressionId": uuid("shown", one.impression), "targetUrl": "https://x.example"},
                )
                own = {"impression_id": uuid("shown", one.impression)}
            else:
                name, about = ("screen_view", "link_click")[one.number % 2], {"name": f"screen {one.number % 20}"}
            text = one.time.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
            later = (one.time + timedelta(seconds=2)).replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
            record = {
                "app_id": "shop",
                "platform": "web",
                "event": "unstruct",
                "event_id": uuid("event", one.number),
                "etl_tstamp": later,
                "collector_tstamp": later,
                "dvce_created_tstamp": later,
                "derived_tstamp": text,
                "user_id": None,
                "user_ipaddress": f"192.0.2.{one.user % 200}",
                "domain_userid": user,
                "domain_sessionidx": one.number % 4,
                "useragent": "Mozilla/5.0 (X11)",
                "unstruct_event": {
                    "schema": "iglu:com.snowplowanalytics.snowplow/unstruct_event/jsonschema/1-0-0",
                    "data": {"schema": f"iglu:com.example/{name}/jsonschema/1-0-{one.number % 2}", "data": about},
                },
            }
            yield record, event_of(one, event_id, user, **own)

    return lines(records(), "snowplow.jsonl")


def analytics() -> Log:
    """As analytics services export them: epoch microseconds, and parameters in a list whose order varies."""

    def records() -> Iterator[tuple[dict[str, Any], Event]]:
        chance = Random(4)
        for one in moments(4, 3000):
            user, own, event_id = f"{one.user}.1772366400", {}, ANY
            parameters: dict[str, Any] = {
                "ga_session_id": 1772366400 + one.user,
                "engagement_time_msec": one.number % 900,
            }
            if one.kind == "i":
                name, event_id = "ad_impression", f"sh-{one.number}"
                parameters |= {
                    "impression_id": event_id,
                    "campaign_id": f"c {one.campaign}",
                    "creative_id": f"a{one.ad}",
                }
                parameters |= {"cost_micros": one.micros}
                own = {"campaign_id": f"c {one.campaign}", "ad_id": f"a{one.ad}", "cost_micros": one.micros}
            elif one.kind == "c":
                name, own = "ad_click", {"impression_id": f"sh-{one.impression}"}
                parameters |= {"impression_id": f"sh-{one.impression}"}
            else:
                name = chance.choice(["page_view", "click", "session_start", "scroll"])
                parameters |= {"page_location": f"https://shop.example/{one.number % 30}"}
            items = list(parameters.items())
            chance.shuffle(items)
            record = {
                "event_date": f"{one.time:%Y%m%d}",
                "event_timestamp": millis(one.time) * 1000,
                "event_name": name,
                "event_params": [{"key": key, "value": _typed(value)} for key, value in items],
                "event_bundle_sequence_id": one.number % 50,
                "user_id": None,
                "user_pseudo_id": user,
                "user_first_touch_timestamp": millis(_START) * 1000 + one.user,
                "device": {"category": "mobile", "language": "de", "advertising_id": None},
                "geo": {"country": "Germany"},
                "platform": "WEB",
            }
            yield record, event_of(one, event_id, user, **own)

    return lines(records(), "analytics.jsonl")


def _typed(value: object) -> dict[str, object]:
    empty: dict[str, object] = dict.fromkeys(("string_value", "int_value", "float_value", "double_value"))
    return empty | ({"int_value": str(value)} if isinstance(value, int) else {"string_value": value})


def server_log() -> Log:
    """CSV of a web server: what happened is in the address that was asked for, and ``-`` stands for nothing."""

    def records() -> Iterator[tuple[dict[str, Any], Event]]:
        for one in moments(5, 3000):
            user, own, event_id = f"ck{one.user:05}", {}, ANY
            if one.kind == "i":
                event_id = f"r{one.number:06}"
                query = {"rid": event_id, "cid": f"c/{one.campaign}", "crid": one.ad, "price": _price(one.micros)}
                address, referrer = f"/imp.gif?{_query(query)}", "https://news.example/a,b"
                own = {"campaign_id": f"c/{one.campaign}", "ad_id": str(one.ad), "cost_micros": one.micros}
            elif one.kind == "c":
                address = f"/click?{_query({'rid': f'r{one.impression:06}', 'to': 'https://shop.example/?a=1'})}"
                referrer, own = "-", {"impression_id": f"r{one.impression:06}"}
            else:
                address, referrer = f"/page/{one.number % 60}", "-"
            record = {
                "time": one.time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "remote_addr": f"198.51.100.{one.user % 200}",
                "cookie": user,
                "method": "GET",
                "request": address,
                "status": 200,
                "bytes": 43 + one.number % 900,
                "referrer": referrer,
                "user_agent": 'Mozilla/5.0 (X11; "x", y)',
            }
            yield record, event_of(one, event_id, user, **own)

    return table(records(), "server_log.csv")


def _query(values: dict[str, Any]) -> str:
    return "&".join(f"{name}={quote(str(value), safe='')}" for name, value in values.items())


def two_shapes() -> Log:
    """Records of each type have names of their own, and seconds with a fraction."""

    def records() -> Iterator[tuple[dict[str, Any], Event]]:
        for one in moments(6, 3000, kinds="iiic"):
            if one.kind == "a":
                continue
            at, shown = millis(one.time) / 1000, f"s{one.impression:05}"
            if one.kind == "i":
                record = {"eventType": "BANNER_IMPRESSION", "impressionId": shown, "shownAt": at, "visitorId": one.user}
                record |= {"campaign": {"id": f"c{one.campaign}", "name": "Spring"}, "bannerId": one.ad}
                record |= {"priceCpm": one.micros / 1000}
                own = {"campaign_id": f"c{one.campaign}", "ad_id": str(one.ad), "cost_micros": one.micros}
                yield record, event_of(one, shown, str(one.user), **own)
            else:
                click = f"k{one.number:05}"
                record = {"eventType": "BANNER_CLICK", "clickId": click, "impressionId": shown, "clickedAt": at}
                record |= {"visitorId": one.user}
                yield record, event_of(one, click, str(one.user), impression_id=shown)

    return lines(records(), "two_shapes.jsonl")


def edge_log() -> Log:
    """Tab-separated log of a content network: day and time of day apart, and nobody but an address."""

    def records() -> Iterator[tuple[dict[str, Any], Event]]:
        for one in moments(7, 1500, kinds="a"):
            time, address = one.time.replace(microsecond=0), f"203.0.113.{one.user % 200}"
            record = {
                "date": f"{time:%Y-%m-%d}",
                "time": f"{time:%H:%M:%S}",
                "x-edge-location": "FRA2",
                "sc-bytes": 500 + one.number % 70,
                "c-ip": address,
                "cs-method": "GET",
                "cs-uri-stem": f"/img/{one.number % 50}.png",
                "sc-status": "200",
                "x-edge-request-id": f"{Random(one.number).getrandbits(200):050x}==",
            }
            yield record, event_of(one, record["x-edge-request-id"], address) | {"event_time": time}

    return table(records(), "edge_log.tsv", "\t")


FORMATS: dict[str, Callable[[], Log]] = {
    one.__name__: one for one in (flat_millis, openrtb, snowplow, analytics, server_log, two_shapes, edge_log)
}
