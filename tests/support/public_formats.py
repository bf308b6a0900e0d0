"""Logs in formats that are public: archives, analytics and ad servers. Made as those of ``other_formats``.

No name of a column here was chosen with the drafts in mind: they are those of the services.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from random import Random
from typing import Any

from tests.support.other_formats import ANY, Event, Log, event_of, lines, millis, moments, table, uuid

Records = Iterator[tuple[dict[str, Any], Event]]


def code_hosting() -> Log:
    """Events of a code hosting service."""

    def records() -> Records:
        for one in moments(11, 2000, kinds="a"):
            time, actor = one.time.replace(microsecond=0), 1000 + one.user
            record = {
                "id": str(47000000000 + one.number * 7),
                "type": ("PushEvent", "WatchEvent", "IssuesEvent", "PullRequestEvent")[one.number % 4],
                "actor": {"id": actor, "login": f"dev{one.user}", "url": f"https://api.example/users/dev{one.user}"},
                "repo": {"id": one.number % 90, "name": f"org/repo{one.number % 90}"},
                "payload": {
                    "ref": "refs/heads/main",
                    "size": one.number % 5,
                    "commits": [{"sha": f"{one.number:040x}"}],
                },
                "public": True,
                "created_at": f"{time:%Y-%m-%dT%H:%M:%SZ}",
            }
            yield record, event_of(one, record["id"], str(actor)) | {"event_time": time}

    return lines(records(), "code_hosting.jsonl")


def encyclopedia() -> Log:
    """Edits of an encyclopedia: no id."""

    def records() -> Records:
        for one in moments(12, 2000, kinds="a"):
            record: dict[str, Any] = {
                "time": one.time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "channel": ("#en.wikipedia", "#de.wikipedia")[one.number % 2],
                "cityName": None,
                "comment": f"/* History */ fixed a typo in part {one.number % 77}",
                "countryIsoCode": None,
                "isAnonymous": False,
                "isRobot": one.number % 3 == 0,
                "namespace": "Main",
                "page": f"Page {one.number % 400}",
                "user": f"Editor{one.user}",
                "delta": one.number % 90,
                "added": one.number % 90,
                "deleted": 0,
            }
            yield record, event_of(one, ANY, record["user"])

    return lines(records(), "encyclopedia.json")


def fraud_clicks() -> Log:
    """CSV of a click fraud contest: numbers only, an address, and no impression."""

    def records() -> Records:
        for one in moments(13, 2000, kinds="a"):
            time = one.time.replace(microsecond=0)
            record = {
                "ip": 80000 + one.user,
                "app": one.number % 12,
                "device": 1,
                "os": one.number % 20,
                "channel": 100 + one.number % 60,
                "click_time": f"{time:%Y-%m-%d %H:%M:%S}",
                "attributed_time": "",
                "is_attributed": 0,
            }
            yield record, event_of(one, ANY, str(record["ip"])) | {"event_time": time}

    return table(records(), "fraud_clicks.csv")


def customer_data() -> Log:
    """Calls of a customer data platform: four times, two users, properties of one's own."""

    def records() -> Records:
        for one in moments(14, 3000):
            anonymous, known = uuid("anonymous", one.user), f"cust-{one.user}"
            own: Event = {}
            properties: dict[str, Any]
            event_id = f"ajs-{uuid('message', one.number)}"
            if one.kind == "i":
                name, properties = "Ad Impression", {"ad_impression_id": uuid("shown", one.number)}
                properties |= {"campaign_id": f"c{one.campaign}", "ad_id": f"a{one.ad}", "position": 1}
                event_id = properties["ad_impression_id"]
                own = {"campaign_id": f"c{one.campaign}", "ad_id": f"a{one.ad}"}
            elif one.kind == "c":
                name, properties = "Ad Clicked", {"ad_impression_id": uuid("shown", one.impression), "position": 1}
                own = {"impression_id": uuid("shown", one.impression)}
            else:
                name, properties = (
                    ("Product Viewed", "Product Clicked")[one.number % 2],
                    {"product_id": one.number % 50},
                )
            text = one.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            later = (one.time + timedelta(seconds=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            record = {
                "anonymousId": anonymous,
                "channel": "browser",
                "context": {
                    "ip": "192.0.2.1",
                    "library": {"name": "analytics.js"},
                    "page": {"path": "/a", "url": "https://x"},
                },
                "event": name,
                "messageId": f"ajs-{uuid('message', one.number)}",
                "originalTimestamp": text,
                "properties": properties,
                "receivedAt": later,
                "sentAt": later,
                "timestamp": text,
                "type": "track",
                "userId": known if one.user % 2 else None,
            }
            yield record, event_of(one, event_id, anonymous, **own)

    return lines(records(), "customer_data.jsonl")


def web_server() -> Log:
    """JSON of a web server: the readable time names its months, another column has seconds."""

    def records() -> Records:
        for one in moments(15, 2000, kinds="a"):
            record = {
                "time_local": f"{one.time:%d/%b/%Y:%H:%M:%S +0000}",
                "msec": f"{millis(one.time) / 1000:.3f}",
                "remote_addr": f"192.0.2.{one.user % 200}",
                "remote_user": "-",
                "request_id": f"{Random(one.number).getrandbits(128):032x}",
                "request_method": "GET",
                "request_uri": f"/articles/{one.number % 40}",
                "status": "200",
                "request_time": "0.003",
                "http_user_agent": "Mozilla/5.0 (X11)",
            }
            yield record, event_of(one, record["request_id"], record["remote_addr"])

    return lines(records(), "web_server.log")


def app_attribution() -> Log:
    """CSV callbacks of an app tracker: no ids, and ``adid`` is a device."""

    def records() -> Records:
        for one in moments(16, 2000, kinds="i"):
            time, device = one.time.replace(microsecond=0), uuid("device", one.user)
            record = {
                "activity_kind": "impression",
                "app_token": "2fm9gkqubvpc",
                "adid": f"{Random(one.user).getrandbits(128):032x}",
                "gps_adid": device,
                "created_at": millis(time) // 1000,
                "network_name": "Example Ads",
                "campaign_name": f"Spring {one.campaign}",
                "adgroup_name": f"Group {one.ad // 2}",
                "creative_name": f"Banner {one.ad}",
                "country": "de",
                "cost_amount": f"0.{one.micros:06}",
                "cost_currency": "EUR",
            }
            own = {"campaign_id": f"Spring {one.campaign}", "ad_id": f"Banner {one.ad}", "cost_micros": one.micros}
            yield record, event_of(one, ANY, device, **own) | {"event_time": time}

    return table(records(), "app_attribution.csv")


def changes() -> Log:
    """Changes of a database table of clicks and impressions, as a connector writes them."""

    def records() -> Records:
        for one in moments(17, 3000, kinds="iiic"):
            if one.kind == "a":
                continue
            user = one.user + 1
            row: dict[str, Any] = {"id": one.number + 1, "user_id": user, "created_at": millis(one.time) * 1000}
            if one.kind == "i":
                row |= {"kind": "impression", "campaign_id": one.campaign, "creative_id": one.ad, "parent_id": None}
                own = {"campaign_id": str(one.campaign), "ad_id": str(one.ad)}
            else:
                row |= {"kind": "click", "campaign_id": None, "creative_id": None, "parent_id": one.impression + 1}
                own = {"impression_id": str(one.impression + 1)}
            record = {
                "before": None,
                "after": row,
                "source": {"db": "ads", "table": "events", "lsn": 9000 + one.number, "ts_ms": millis(one.time) + 40},
                "op": "c",
                "ts_ms": millis(one.time) + 90,
            }
            yield record, event_of(one, str(row["id"]), str(user), **own)

    return lines(records(), "changes.jsonl")


def ad_server() -> Log:
    """Data transfer files of an ad server: names with spaces, and clicks that have no id of their own."""

    def records() -> Records:
        for one in moments(18, 3000, kinds="iiic"):
            if one.kind == "a":
                continue
            shown, user = f"CK{one.impression:08}AB", f"CAESE{Random(one.user).getrandbits(64):016X}"
            record = {
                "Event Time": millis(one.time) * 1000,
                "Event Type": "VIEW" if one.kind == "i" else "CLICK",
                "User ID": user,
                "Advertiser ID": 4711,
                "Campaign ID": 900 + one.campaign,
                "Ad ID": 5000 + one.ad,
                "Rendering ID": 77,
                "Site ID (CM360)": one.number % 9,
                "Placement ID": one.number % 30,
                "Country Code": "DE",
                "Impression ID": shown,
            }
            if one.kind == "i":
                own: Event = {"campaign_id": str(900 + one.campaign), "ad_id": str(5000 + one.ad)}
                yield record, event_of(one, shown, user, **own)
            else:
                yield record, event_of(one, ANY, user, impression_id=shown)

    return table(records(), "ad_server.tsv", "\t")


PUBLIC_FORMATS: dict[str, Callable[[], Log]] = {
    one.__name__: one
    for one in (
        *(code_hosting, encyclopedia, fraud_clicks, customer_data),
        *(web_server, app_attribution, changes, ad_server),
    )
}
