"""Each kind of rule: at its edges, and on drawn events exactly as an independent computation has it."""

import ipaddress
import json
import random
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from crawleruseragents import CRAWLER_USER_AGENTS_DATA
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.traffic_rules.evaluate import expected_marks
from spark_jobs.traffic_rules.kinds.addresses import with_address_bits
from spark_jobs.traffic_rules.rule_files import load_rules
from spark_jobs.traffic_rules.rules import RuleSet
from tests.support.invalid import (
    MINUTE,
    NOON_US,
    RULES,
    Event,
    drawn_clicks,
    drawn_events,
    event,
    for_oracle,
    frame,
    rule_set,
)
from tests.support.marks_oracle import Mark, expected

pytestmark = pytest.mark.derived

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNTIL_US = NOON_US + 10 * MINUTE


def _evaluate(events: DataFrame, rules: RuleSet, until_us: int = _UNTIL_US) -> DataFrame:
    return expected_marks(events, rules, _EPOCH + timedelta(microseconds=until_us))


def _marks(events: DataFrame, rules: RuleSet, until_us: int = _UNTIL_US) -> list[Mark]:
    found = _evaluate(events, rules, until_us).select("event_type", "event_id", F.unix_micros("event_time"), "rule_id")
    return [(row[0], row[1], row[2], row[3]) for row in found.collect()]


@dataclass(frozen=True)
class _Case:
    """Events, and what a rule says of them: by id of the event, the evidence."""

    rule: dict[str, Any]
    events: list[Event]
    marked: dict[str, dict[str, Any]]


_MICRO = 0.000001
_START = "2026-03-01T12:00:00.000Z"
_MAC = {"ip": "198.51.100.7", "user_agent": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"}
_SCANNER = {"ip": "203.0.113.9", "user_agent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64)"}
_CASES = {
    "rate-marks-all-of-a-window-and-none-beside-it": _Case(
        {"kind": "rate", "event_type": "click", "key": "user_id", "window": "1min", "threshold": 2},
        [
            *(event("clk", f"before{n}", -_MICRO, user_id="u") for n in range(2)),
            *(event("clk", f"in{n}", time, user_id="u") for n, time in enumerate((0, 0, 60 - _MICRO))),
            *(event("clk", f"after{n}", 60, user_id="u") for n in range(2)),
            *(event("act", f"other{n}", 5, user_id="u") for n in range(3)),
            *(event("clk", f"nobody{n}", 5) for n in range(3)),
        ],
        {f"in{n}": {"events": 3, "window_start": _START} for n in range(3)},
    ),
    "rate-judges-a-window-when-it-is-over": _Case(
        {"kind": "rate", "event_type": "click", "key": "user_id", "window": "1min", "threshold": 1},
        [
            *(event("clk", f"over{n}", 540, user_id="u") for n in range(2)),
            *(event("clk", f"open{n}", 600, user_id="u") for n in range(2)),
        ],
        {f"over{n}": {"events": 2, "window_start": "2026-03-01T12:09:00.000Z"} for n in range(2)},
    ),
    "rate-takes-each-type-by-itself": _Case(
        {"kind": "rate", "event_type": ["click", "activity"], "key": "ip", "window": "1min", "threshold": 1},
        [
            event("clk", "c", 0, ip="198.51.100.1"),
            event("act", "a", 0, ip="198.51.100.1"),
            event("act", "b", 1, ip="198.51.100.1"),
        ],
        {name: {"events": 2, "window_start": _START} for name in "ab"},
    ),
    "repeat-counts-the-clicks-just-before": _Case(
        {"kind": "repeat", "event_type": "click", "window": "10s", "threshold": 1},
        [
            event("clk", "a", 0, impression_id="i"),
            event("clk", "c", 10, impression_id="i"),
            event("clk", "b", 10, impression_id="i"),
            event("clk", "d", 20 + _MICRO, impression_id="i"),
            event("clk", "e", 5, impression_id="j"),
            event("clk", "f", 5),
            event("clk", "g", 5),
        ],
        {"b": {"earlier_clicks": 1, "within_ms": 10_000}, "c": {"earlier_clicks": 1, "within_ms": 0}},
    ),
    "repeat-takes-a-click-from-elsewhere-for-nobodys": _Case(
        {"kind": "repeat", "event_type": "click", "window": "10s", "threshold": 1, "without_elsewhere": True},
        [
            event("imp", "i", 0, **_MAC),
            event("clk", "scanner", 1, impression_id="i", **_SCANNER),
            event("clk", "scanner-again", 2, impression_id="i", **_SCANNER),
            event("clk", "person", 3, impression_id="i", **_MAC),
            event("clk", "scanner-once-more", 4, impression_id="i", **_SCANNER),
            event("clk", "person-again", 5, impression_id="i", **_MAC),
            event("clk", "unknown", 6, impression_id="i", ip=_SCANNER["ip"]),
            event("imp", "j", -3600, **_MAC),
            event("clk", "hour", 0, impression_id="j", **_SCANNER),
            event("clk", "after-the-hour", _MICRO, impression_id="j", **_SCANNER),
            event("clk", "person-then", 1, impression_id="j", **_MAC),
        ],
        {
            "person-again": {"earlier_clicks": 1, "within_ms": 2000},
            "unknown": {"earlier_clicks": 1, "within_ms": 1000},
            "person-then": {"earlier_clicks": 1, "within_ms": 999},
        },
    ),
    "elsewhere-needs-another-address-and-another-user-agent": _Case(
        {"kind": "elsewhere", "event_type": "click", "window": "1min"},
        [
            event("imp", "i", 0, **_MAC),
            event("clk", "same-time", 0, impression_id="i", **_SCANNER),
            event("clk", "scanner", 1.2345, impression_id="i", **_SCANNER),
            event("clk", "person", 2, impression_id="i", **_MAC),
            event("clk", "wifi-left", 2, impression_id="i", **_MAC | {"ip": _SCANNER["ip"]}),
            event("clk", "browser-updated", 2, impression_id="i", **_SCANNER | {"ip": _MAC["ip"]}),
            event("clk", "before", -_MICRO, impression_id="i", **_SCANNER),
            event("clk", "last", 60, impression_id="i", **_SCANNER),
            event("clk", "too-late", 60 + _MICRO, impression_id="i", **_SCANNER),
            event("clk", "orphan", 2, impression_id="j", **_SCANNER),
            event("clk", "no-impression", 2, **_SCANNER),
            event("act", "type", 2, **_SCANNER),
        ],
        {"same-time": {"delay_ms": 0}, "scanner": {"delay_ms": 1234}, "last": {"delay_ms": 60_000}},
    ),
    "elsewhere-holds-what-is-unknown-against-nobody": _Case(
        {"kind": "elsewhere", "event_type": "click", "window": "1min"},
        [
            event("imp", "i", 0, **_MAC),
            *(event("clk", f"click-{gap}", 1, impression_id="i", **_SCANNER | {gap: None}) for gap in _MAC),
            *(event("clk", f"click-empty-{gap}", 1, impression_id="i", **_SCANNER | {gap: ""}) for gap in _MAC),
            *(event("imp", f"no-{gap}", 0, **_MAC | {gap: None}) for gap in _MAC),
            *(event("clk", f"impression-{gap}", 1, impression_id=f"no-{gap}", **_SCANNER) for gap in _MAC),
            *(event("imp", f"empty-{gap}", 0, **_MAC | {gap: ""}) for gap in _MAC),
            *(event("clk", f"impression-empty-{gap}", 1, impression_id=f"empty-{gap}", **_SCANNER) for gap in _MAC),
            event("clk", "scanner", 1, impression_id="i", **_SCANNER),
        ],
        {"scanner": {"delay_ms": 1000}},
    ),
    "elsewhere-compares-addresses-and-other-text-as-it-is": _Case(
        {"kind": "elsewhere", "event_type": "click", "window": "1min"},
        [
            event("imp", "v4", 0, ip="192.0.2.1", user_agent="a"),
            event("clk", "mapped", 1, impression_id="v4", ip="::FFFF:192.0.2.1", user_agent="b"),
            event("clk", "hex", 1, impression_id="v4", ip="::ffff:c000:201", user_agent="b"),
            event("clk", "zeros", 1, impression_id="v4", ip="192.0.2.01", user_agent="b"),
            event("imp", "v6", 0, ip="2001:db8::a", user_agent="a"),
            event("clk", "long", 1, impression_id="v6", ip="2001:DB8:0:0:0:0:0:A", user_agent="b"),
            event("clk", "next", 1, impression_id="v6", ip="2001:db8::b", user_agent="b"),
            event("imp", "hash", 0, ip="1f3a", user_agent="a"),
            event("clk", "same-hash", 1, impression_id="hash", ip="1f3a", user_agent="b"),
            event("clk", "other-hash", 1, impression_id="hash", ip="1F3A", user_agent="b"),
            event("clk", "user-agent-in-capitals", 1, impression_id="hash", ip="1F3A", user_agent="A"),
        ],
        {name: {"delay_ms": 1000} for name in ("zeros", "next", "other-hash", "user-agent-in-capitals")},
    ),
    "elsewhere-goes-by-the-last-impression-before-the-click": _Case(
        {"kind": "elsewhere", "event_type": "click", "window": "1min"},
        [
            event("imp", "i", 0, **_MAC),
            event("imp", "i", 10, **_SCANNER),
            event("imp", "i", 20, ip=_MAC["ip"]),
            event("clk", "on-first", 9, impression_id="i", **_SCANNER),
            event("clk", "on-second", 10, impression_id="i", **_SCANNER),
            event("clk", "not-on-second", 19, impression_id="i", **_MAC),
            event("clk", "on-unknown", 20, impression_id="i", **_SCANNER),
        ],
        {"on-first": {"delay_ms": 9000}, "not-on-second": {"delay_ms": 9000}},
    ),
    "delay-of-clicks-goes-by-their-impression": _Case(
        {"kind": "delay", "event_type": "click", "threshold": "300ms"},
        [
            event("imp", "i", 0),
            event("clk", "same", 0, impression_id="i"),
            event("clk", "soon", 0.2999, impression_id="i"),
            event("clk", "person", 0.3, impression_id="i"),
            event("clk", "before", -_MICRO, impression_id="i"),
            event("clk", "orphan", 0, impression_id="j"),
        ],
        {"same": {"delay_ms": 0}, "soon": {"delay_ms": 299}},
    ),
    "delay-of-conversions-goes-by-the-last-click-of-the-user": _Case(
        {"kind": "delay", "event_type": "conversion", "threshold": "3s"},
        [
            event("clk", "k1", 0, user_id="u"),
            event("clk", "k2", 10, user_id="u"),
            event("cnv", "same", 10, user_id="u"),
            event("cnv", "soon", 12.5, user_id="u"),
            event("cnv", "person", 13, user_id="u"),
            event("cnv", "other", 10, user_id="v"),
            event("cnv", "nobody", 10),
            event("clk", "nobody-clicks", 10),
        ],
        {"same": {"delay_ms": 0}, "soon": {"delay_ms": 2500}},
    ),
    "sequence-needs-that-nothing-else-happens": _Case(
        {"kind": "sequence", "event_type": "click", "key": "user_id", "window": "1min", "threshold": 1}
        | {"without": ["activity", "conversion"]},
        [
            *(event("clk", f"bot{n}", n, user_id="u") for n in range(2)),
            event("act", "too-late", 60, user_id="u"),
            *(event("clk", f"person{n}", n, user_id="v") for n in range(2)),
            event("act", "last", 60 - _MICRO, user_id="v"),
            event("clk", "few", 0, user_id="w"),
        ],
        {f"bot{n}": {"events": 2, "window_start": _START} for n in range(2)},
    ),
    "user-agents-fit-the-first-pattern": _Case(
        {"kind": "user_agent_list", "event_type": ["click", "impression"]}
        | {"patterns": ["SSL Labs$", "(^| )sentry\\/", "bot", "[Bb]o[t]", "\\d\\.\\d+ Fetch"]},
        [
            event("clk", "two", 0, user_agent="a bot"),
            event("imp", "class", 0, user_agent="Bot"),
            event("clk", "end", 0, user_agent="SSL Labs"),
            event("clk", "line-end", 0, user_agent="SSL Labs\n"),
            event("clk", "begin", 0, user_agent="sentry/1"),
            event("clk", "within", 0, user_agent="x-sentry/1"),
            event("clk", "digits", 0, user_agent="0.12 Fetch"),
            event("act", "type", 0, user_agent="a bot"),
            event("clk", "person", 0, user_agent="Mozilla/5.0"),
            event("clk", "none", 0),
        ],
        {
            "two": {"pattern": "bot"},
            "class": {"pattern": "[Bb]o[t]"},
            "end": {"pattern": "SSL Labs$"},
            "begin": {"pattern": "(^| )sentry\\/"},
            "digits": {"pattern": "\\d\\.\\d+ Fetch"},
        },
    ),
    "addresses-lie-in-the-smallest-network": _Case(
        {"kind": "cidr", "event_type": "click"}
        | {"networks": ["203.0.113.0/24", "203.0.113.8/31", "2001:db8:ff::/48", "::/0", "::ffff:203.0.112.0/121"]},
        [
            event("clk", "v4", 0, ip="203.0.113.7"),
            event("clk", "small", 0, ip="203.0.113.9"),
            event("clk", "mapped", 0, ip="::FFFF:203.0.113.8"),
            event("clk", "hex", 0, ip="::ffff:cb00:7108"),
            event("clk", "given-mapped", 0, ip="203.0.112.127"),
            event("clk", "outside", 0, ip="203.0.112.128"),
            event("clk", "v6", 0, ip="2001:DB8:FF:0::1"),
            event("clk", "any-v6", 0, ip="2001:db8:fe:ffff:ffff:ffff:ffff:ffff"),
            event("clk", "no-address", 0, ip="203.0.113.07"),
            event("imp", "type", 0, ip="203.0.113.7"),
        ],
        {
            "v4": {"network": "203.0.113.0/24"},
            "small": {"network": "203.0.113.8/31"},
            "mapped": {"network": "203.0.113.8/31"},
            "hex": {"network": "203.0.113.8/31"},
            "given-mapped": {"network": "203.0.112.0/25"},
            "v6": {"network": "2001:db8:ff::/48"},
            "any-v6": {"network": "::/0"},
        },
    ),
    "a-rule-holds-within-its-time-and-counts-beyond-it": _Case(
        {"kind": "rate", "event_type": "click", "key": "user_id", "window": "1min", "threshold": 2}
        | {"from": datetime(2026, 3, 1, 12, 0, 10, tzinfo=UTC), "to": datetime(2026, 3, 1, 12, 0, 20, tzinfo=UTC)},
        [event("clk", f"at{time}", time, user_id="u") for time in (0, 10, 20)],
        {"at10": {"events": 3, "window_start": _START}},
    ),
}


_BROWSER = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
)
_IDS = ("event_id", "user_id", "impression_id")


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, dict[str, dict[str, Any]]]:
    """By case and event, the evidence; the cases share a run, and see each other's events."""
    events = []
    for name, case in _CASES.items():
        for one in case.events:
            apart = {key: f"{name}/{one[key]}" for key in _IDS if key in one}
            events.append(one | apart)
    named: list[dict[str, Any]] = [{"id": name, "class": "sivt", **case.rule} for name, case in _CASES.items()]
    rules = rule_set(*named)
    marks: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in _CASES}
    for row in _evaluate(frame(spark, events).persist(), rules).collect():
        case, _, event_id = row["event_id"].partition("/")
        if case == row["rule_id"]:
            assert event_id not in marks[case], "each mark once"
            marks[case][event_id] = json.loads(row["evidence"])
    return marks


@pytest.mark.parametrize("name", _CASES)
def test_a_rule_marks_what_it_says(name: str, found: dict[str, dict[str, dict[str, Any]]]) -> None:
    assert found[name] == _CASES[name].marked


def test_drawn_events_are_marked_as_the_oracle_has_it(spark: SparkSession) -> None:
    events, until_us = drawn_events(seed=3, count=1500), NOON_US + 223 * 1_000_000
    random.Random(1).shuffle(events)
    found = _marks(frame(spark, events).persist(), rule_set(*RULES), until_us)
    wanted = expected(events, for_oracle(RULES), until_us)
    assert {rule for *_, rule in wanted} == {rule["id"] for rule in RULES}, "each rule is tried"
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("seed", [1, 2])
def test_clicks_on_ids_used_again_from_devices_half_known_are_marked_as_the_oracle_has_it(
    seed: int, spark: SparkSession
) -> None:
    events = drawn_clicks(seed, 600)
    found = _marks(frame(spark, events).persist(), rule_set(*_AWAY), _UNTIL_US)
    wanted = expected(events, for_oracle(_AWAY), _UNTIL_US)
    assert {rule for *_, rule in wanted} == {rule["id"] for rule in _AWAY}, "each rule is tried"
    assert sorted(found) == sorted(wanted)
    random.Random(seed).shuffle(events)
    in_another_order = _marks(frame(spark, events).persist(), rule_set(*_AWAY), _UNTIL_US)
    assert sorted(in_another_order) == sorted(found)


_AWAY = [rule for rule in RULES if rule["id"] in ("e", "p", "p-here")]


def test_by_default_a_link_scanner_is_marked_and_the_person_behind_it_is_not(spark: SparkSession) -> None:
    events = [
        event("imp", "i-1", 0, user_id="u-1", **_MAC),
        event("clk", "k-1", 1, user_id="u-1", impression_id="i-1", **_SCANNER),
        event("clk", "k-2", 13, user_id="u-1", impression_id="i-1", **_MAC),
    ]
    rows = _evaluate(frame(spark, events), load_rules()).collect()
    assert [(row["event_id"], row["rule_id"], row["class"], json.loads(row["evidence"])) for row in rows] == [
        ("k-1", "clicks-from-elsewhere", "sivt", {"delay_ms": 1000})
    ]


def test_the_list_of_crawlers_finds_its_own_examples_by_the_first_pattern(spark: SparkSession) -> None:
    crawlers = [rule for rule in load_rules().rules if rule.id == "crawlers"]
    patterns = [(one["pattern"], re.compile(one["pattern"])) for one in CRAWLER_USER_AGENTS_DATA]
    agents = {agent for one in CRAWLER_USER_AGENTS_DATA for agent in one.get("instances", ())}
    agents |= {agent[::-1] for agent in sorted(agents)[::20]} | {_BROWSER}
    wanted = {agent: next((text for text, fits in patterns if fits.search(agent)), None) for agent in agents}
    assert wanted[_BROWSER] is None
    events = [event("clk", agent, 0, user_agent=agent) for agent in agents]
    found = _evaluate(frame(spark, events).persist(), RuleSet.of(crawlers)).collect()
    assert {row["event_id"]: json.loads(row["evidence"])["pattern"] for row in found} == {
        agent: text for agent, text in wanted.items() if text
    }


def test_no_rules_mark_nothing(spark: SparkSession) -> None:
    assert _marks(frame(spark, drawn_events(seed=1, count=5)), RuleSet.of([])) == []


_NEARLY = (
    *("1.2.3.4.5", "1.2.3", ":::", ":", "1:", ":1", "::1:", "1::2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8"),
    *("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3.04", "12345::", "g::", "1.2.3.4\n", "1:2:3:4:5:6:7:8"),
)


def test_addresses_are_read_as_python_reads_them(spark: SparkSession) -> None:
    draw = random.Random(5)
    texts = list(_NEARLY)
    for _ in range(200):
        number = draw.getrandbits(128) & draw.getrandbits(128) & draw.getrandbits(128)
        address = ipaddress.IPv6Address(number)
        texts += [address.compressed, address.exploded.upper(), str(ipaddress.IPv4Address(number & 0xFFFFFFFF))]
        texts.append("".join(draw.choice("0:1f.") for _ in range(draw.randrange(12))))
    rows = spark.createDataFrame([(text,) for text in texts], "text STRING")
    found = {row["text"]: row["bits"] for row in with_address_bits(rows, "text").collect()}
    for text, bits in found.items():
        try:
            address_read = ipaddress.ip_address(text)
        except ValueError:
            assert bits is None, text
            continue
        mapped = 0xFFFF << 32 if address_read.version == 4 else 0
        assert bits == f"{int(address_read) | mapped:0128b}", text
