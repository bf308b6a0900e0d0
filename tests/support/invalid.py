"""Events and rules for tests of invalid traffic: by hand, and drawn so that rules are often just met or missed."""

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.durations import parse_duration
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.traffic_rules.rules import RULE, RuleSet

Event = dict[str, Any]
NOON_US = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000
SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000
_TYPES = {"imp": "impression", "clk": "click", "act": "activity", "cnv": "conversion"}
_COLUMNS = {**{one.name: one.sql_type for one in SILVER_EVENTS.columns}, "ip": "STRING", "user_agent": "STRING"}
_DURATIONS = ("window", "threshold")
_MICROSECOND = timedelta(microseconds=1)
_MICRO = 0.000001


def event(kind: str, event_id: str, seconds: float, **fields: Any) -> Event:
    """An event some seconds after noon; ``kind`` is imp, clk, act or cnv."""
    return {"event_type": _TYPES[kind], "event_id": event_id, "us": NOON_US + round(seconds * SECOND), **fields}


def frame(spark: SparkSession, events: Iterable[Mapping[str, Any]]) -> DataFrame:
    """``events`` with the columns of silver, ``ip`` and ``user_agent``."""
    names = [name for name in _COLUMNS if name not in ("event_time", "event_date")]
    schema = ", ".join(["us BIGINT", *(f"{name} {_COLUMNS[name]}" for name in names)])
    rows = [(one["us"], *(one.get(name) for name in names)) for one in events]
    timed = spark.createDataFrame(rows, schema).withColumn("event_time", F.timestamp_micros("us"))
    return timed.withColumn("event_date", F.to_date("event_time")).select(*_COLUMNS).coalesce(1)


def rule_set(*rules: Mapping[str, Any]) -> RuleSet:
    """The rules, as a file has them."""
    return RuleSet.of(RULE.validate_python(dict(rule)) for rule in rules)


def for_oracle(rules: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rules as the oracle takes them."""
    plain = []
    for rule in rules:
        texts = {name: rule[name] for name in _DURATIONS if isinstance(rule.get(name), str)}
        lengths = {name: parse_duration(text) // _MICROSECOND for name, text in texts.items()}
        ends = {f"{name}_us": round(rule[name].timestamp() * SECOND) for name in ("from", "to") if name in rule}
        plain.append({**rule, **lengths, **ends})
    return plain


RULES: list[dict[str, Any]] = [
    {"id": "a", "class": "givt", "kind": "user_agent_list", "event_type": ["click", "impression"]}
    | {"patterns": ["[Bb]ot/", "^curl", "(^| )spider$", "a.c"]},
    {"id": "c", "class": "givt", "kind": "cidr", "event_type": ["click", "impression"]}
    | {"networks": ["10.0.0.0/31", "192.0.2.0/24", "2001:db8::/33", "::/127"]},
    {"id": "r-user", "class": "givt", "kind": "rate", "event_type": ["click", "activity"], "key": "user_id"}
    | {"window": "10s", "threshold": 2},
    {"id": "r-ip", "class": "givt", "kind": "rate", "event_type": "click", "key": "ip", "window": "7s", "threshold": 1}
    | {"from": datetime(2026, 3, 1, 12, 0, 20, tzinfo=UTC), "to": datetime(2026, 3, 1, 12, 3, tzinfo=UTC)},
    {"id": "p", "class": "givt", "kind": "repeat", "event_type": "click", "window": "15s", "threshold": 2},
    {"id": "d", "class": "sivt", "kind": "delay", "event_type": ["click", "conversion"], "threshold": "3s"},
    {"id": "s", "class": "sivt", "kind": "sequence", "event_type": ["click"], "key": "user_id", "window": "20s"}
    | {"threshold": 1, "without": ["activity", "impression"]},
    {"id": "e", "class": "sivt", "kind": "elsewhere", "event_type": "click", "window": "60s"},
    {"id": "p-here", "class": "givt", "kind": "repeat", "event_type": "click", "window": "15s", "threshold": 1}
    | {"without_elsewhere": True},
]
"""A rule of each kind, with limits that drawn events often meet."""
_AGENTS = [
    None,
    "",
    "Mozilla/5.0",
    "Robot/1",
    "bot/2 Mozilla",
    "curl/8",
    "a curl",
    "x spider",
    "spider\n",
    "a\nc",
    "abc",
]
_ADDRESSES = [
    *(None, "", "10.0.0.0", "10.0.0.1", "10.0.0.2", "::ffff:10.0.0.1", "::FFFF:a00:2", "192.0.2.255", "192.0.3.0"),
    *("2001:db8::", "2001:DB8:7fff::1", "2001:db8:8000::", "::", "::1", "::2", "0:0:0:0:0:0:0:1", "::0.0.0.1"),
    *("010.0.0.1", "10.0.0.1 ", "10.0.0.256", "1::2::3", "1:2:3:4:5:6:7:8:9", "fe80::1%eth0", "text"),
]


def drawn_events(seed: int, count: int, *, seconds: int = 240) -> list[Event]:
    """``count`` events within some minutes; times, users and impressions are often the same."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        kind = draw.choice(["imp", "clk", "clk", "clk", "act", "cnv"])
        time = draw.choice([float(draw.randrange(seconds)), draw.randrange(seconds * SECOND) / SECOND])
        fields: Event = {
            "user_id": draw.choice([None, *(f"u{user}" for user in range(40))]),
            "ip": draw.choice(_ADDRESSES),
            "user_agent": draw.choice(_AGENTS),
        }
        if kind == "imp":
            fields |= {"cost_micros": draw.choice([None, draw.randrange(1000)]), "campaign_id": "c", "ad_id": "a"}
        elif kind == "clk":
            fields["impression_id"] = draw.choice([None, f"imp{draw.randrange(60)}", f"imp{draw.randrange(count)}"])
        elif kind == "cnv":
            fields |= {"value_micros": draw.randrange(1000), "currency": draw.choice(["EUR", "USD"])}
        found.append(event(kind, f"{kind}{number}", time, **fields))
    return found


_FEW_ADDRESSES = [None, "", "10.0.0.1", "::FFFF:10.0.0.1", "::ffff:a00:1", "10.0.0.2", "2001:db8::1", "2001:DB8:0::1"]
_FEW_AGENTS = [None, "", "Mozilla/5.0", "Mozilla/5.0 ", "curl/8"]


def drawn_clicks(seed: int, count: int, *, seconds: int = 240) -> list[Event]:
    """Clicks and impressions of few ids, which are used again; devices are often the same, nearly so, or missing."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        device = {"ip": draw.choice(_FEW_ADDRESSES), "user_agent": draw.choice(_FEW_AGENTS)}
        impression_id, second = f"imp{draw.randrange(count // 10)}", draw.randrange(seconds)
        if draw.random() < 0.3:
            # No two impressions have both id and time in common: they would be one event.
            found.append(event("imp", impression_id, second + number * _MICRO, **device))
        else:
            time = second + draw.randrange(count) * _MICRO
            found.append(event("clk", f"clk{number}", time, impression_id=impression_id, **device))
    return found
