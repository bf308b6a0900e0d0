"""Generated bots: each behaviour is told by what it does, labels name their events, and people are not like them."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spark_jobs.config.sections import IngestSettings
from spark_jobs.config.settings import Settings
from spark_jobs.errors import SettingsError
from spark_jobs.generator import bots
from spark_jobs.generator.devices import DATACENTERS
from spark_jobs.generator.generate import generate
from spark_jobs.generator.labels import LABELS
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.traffic import Traffic
from spark_jobs.ingest.input_files import files_of, read_records
from tests.support.verdicts import judge

SPEC = GeneratorSpec(events=20_000, seed=1, bots=0.2, conversions=0.3, duplicates=0, malformed=0, late=0)
_SECOND = timedelta(seconds=1)


class Made(NamedTuple):
    """An event, its time, and the behaviour of the bot that made it; None: a person did."""

    fields: dict[str, Any]
    time: datetime
    behaviour: str | None


def _key(fields: dict[str, Any]) -> tuple[str, str]:
    return fields["event_type"], fields["event_id"]


@cache
def made(spec: GeneratorSpec) -> tuple[Made, ...]:
    labels: list[bytes] = []
    events = [json.loads(line) for chunk in Traffic(spec, labels.append).chunks() for line in chunk]
    behaviours = {_key(label): label["behaviour"] for label in map(json.loads, labels)}
    assert len(behaviours) == len(labels)
    assert behaviours.keys() <= set(map(_key, events)), "each label is that of an event"
    return tuple(Made(one, datetime.fromisoformat(one["event_time"]), behaviours.get(_key(one))) for one in events)


def _of(behaviour: str | None, event_type: str = "") -> list[Made]:
    return [one for one in made(SPEC) if one.behaviour == behaviour and event_type in ("", one.fields["event_type"])]


def _shown() -> dict[str, datetime]:
    return {one.fields["event_id"]: one.time for one in made(SPEC) if one.fields["event_type"] == "impression"}


def _click_delays(behaviour: str | None) -> list[timedelta]:
    shown = _shown()
    clicks = [one for one in _of(behaviour, "click") if one.fields["impression_id"] in shown]
    return sorted(one.time - shown[one.fields["impression_id"]] for one in clicks)


def _most_clicks_a_minute(behaviour: str | None) -> Counter[str]:
    """By user, the clicks of the fullest minute."""
    minutes = Counter(
        (one.fields["user_id"], one.time.replace(second=0, microsecond=0)) for one in _of(behaviour, "click")
    )
    most = Counter[str]()
    for (user, _), count in minutes.items():
        most[user] = max(most[user], count)
    return most


def test_traffic_with_conversions_and_no_bots_is_what_it_was_before_there_were_bots() -> None:
    spec = GeneratorSpec(events=2000, seed=7, conversions=0.4)
    digest = sha256(b"".join(line for chunk in Traffic(spec).chunks() for line in chunk)).hexdigest()
    assert digest == "0022be131a297528b3044501daeead4d1f80bee16d5649fa41b42f2a5365b0d5"


@pytest.mark.parametrize("share", [0.02, 1.0])
@pytest.mark.parametrize("count", [1, 2, 17, 1000])
def test_exactly_the_requested_number_of_events_is_generated(count: int, share: float) -> None:
    traffic = Traffic(replace(SPEC, events=count, bots=share))
    found = {_key(json.loads(line)) for chunk in traffic.chunks() for line in chunk}
    assert len(found) == count == traffic.visits.made


def test_all_records_arrive_where_bots_conversions_and_late_events_meet() -> None:
    for seed in range(10):
        spec = GeneratorSpec(events=400, seed=seed, bots=0.4, conversions=1.0, late=0.3)
        assert sum(map(len, Traffic(spec).chunks())) == spec.record_count


def test_the_counters_match_the_lines() -> None:
    traffic = Traffic(SPEC)
    for _ in traffic.chunks():
        pass
    kinds, visits = Counter(one.fields["event_type"] for one in made(SPEC)), traffic.visits
    assert (visits.impressions, visits.clicks, visits.activity, visits.conversions.made) == (
        kinds["impression"],
        kinds["click"],
        kinds["activity"],
        kinds["conversion"],
    )
    assert visits.bots.made == sum(one.behaviour is not None for one in made(SPEC))


def test_bots_make_their_share_of_the_events_and_each_behaviour_equally_many() -> None:
    behaviours = Counter(one.behaviour for one in made(SPEC) if one.behaviour)
    assert set(behaviours) == set(bots.BEHAVIOURS)
    assert behaviours.total() / SPEC.events == pytest.approx(SPEC.bots, abs=0.02)
    assert min(behaviours.values()) > 0.7 * max(behaviours.values())


def test_without_conversions_no_bot_makes_any() -> None:
    found = made(replace(SPEC, conversions=0.0, events=5000))
    assert {one.behaviour for one in found if one.behaviour} == {*bots.BEHAVIOURS} - {bots.FAST_CONVERSIONS}
    assert not [one for one in found if one.fields["event_type"] == "conversion"]


def test_every_event_is_good_and_has_a_device() -> None:
    now = datetime.now(UTC)
    for one in made(SPEC):
        verdict = judge(json.dumps(one.fields).encode(), receipt=now, ingest=IngestSettings()).verdict
        assert verdict == "ok", one
        assert ip_address(one.fields["ip"])
        assert one.fields["user_agent"]


def test_no_bot_has_the_user_id_of_a_person() -> None:
    of_bots = {one.fields["user_id"] for one in made(SPEC) if one.behaviour}
    people = {one.fields["user_id"] for one in _of(None)}
    assert not of_bots & people
    assert {len(user) for user in of_bots} == {len(user) for user in people}


def test_a_person_has_at_most_two_devices_and_an_address_has_few_people() -> None:
    devices, users = defaultdict[str, set[Any]](set), defaultdict[str, set[str]](set)
    for one in _of(None):
        devices[one.fields["user_id"]].add((one.fields["ip"], one.fields["user_agent"]))
        users[one.fields["ip"]].add(one.fields["user_id"])
    assert {len(found) for found in devices.values()} == {1, 2}
    assert 2 <= max(map(len, users.values())) < 20
    assert len({agent for found in devices.values() for _, agent in found}) > 8
    assert {ip_address(address).version for address in users} == {4, 6}


def test_only_crawlers_say_that_they_are_bots() -> None:
    says = {
        one.behaviour
        for one in made(SPEC)
        if any(word in one.fields["user_agent"] for word in ("bot", "Bot", "spider"))
    }
    silent = {one.behaviour for one in made(SPEC) if "Mozilla" in one.fields["user_agent"]} - says
    assert says == {bots.CRAWLER}
    assert silent == {None, *bots.BEHAVIOURS} - says


def test_only_bots_in_datacenters_have_their_addresses() -> None:
    networks = [ip_network(text) for text in DATACENTERS]
    found = {
        (one.behaviour == bots.DATACENTER, any(ip_address(one.fields["ip"]) in network for network in networks))
        for one in made(SPEC)
    }
    assert found == {(True, True), (False, False)}
    assert {ip_address(one.fields["ip"]).version for one in _of(bots.DATACENTER)} == {4, 6}


def test_a_flood_has_more_clicks_a_minute_than_any_person() -> None:
    floods, people = _most_clicks_a_minute(bots.CLICK_FLOOD), _most_clicks_a_minute(None)
    assert sum(most > 20 for most in floods.values()) > 0.9 * len(floods), "the last one may be cut short"
    assert max(people.values()) <= 10
    assert min(_click_delays(bots.CLICK_FLOOD)) > 0.9 * _SECOND


def test_repeated_clicks_are_on_one_impression_and_too_slow_for_a_flood() -> None:
    repeats, people = (
        Counter(one.fields["impression_id"] for one in _of(kind, "click")) for kind in (bots.REPEATED_CLICKS, None)
    )
    assert sum(count >= 6 for count in repeats.values()) > 0.8 * len(repeats), "those at the end may be cut short"
    assert set(people.values()) == {1, 2}
    assert max(_most_clicks_a_minute(bots.REPEATED_CLICKS).values()) <= 5


def test_fast_clicks_come_within_a_fifth_of_a_second_and_few_of_people_do() -> None:
    fast, people = _click_delays(bots.FAST_CLICKS), _click_delays(None)
    assert timedelta() < fast[0] <= fast[-1] <= 0.21 * _SECOND
    assert sum(delay < 0.21 * _SECOND for delay in people) < 0.02 * len(people)


def test_fast_conversions_come_within_seconds_of_the_click_and_few_of_people_do() -> None:
    clicked = defaultdict[str, list[datetime]](list)
    for one in made(SPEC):
        if one.fields["event_type"] == "click":
            clicked[one.fields["user_id"]].append(one.time)

    def after(behaviour: str | None) -> list[timedelta]:
        converted = [one for one in _of(behaviour, "conversion") if "revokes" not in one.fields]
        return [min(one.time - time for time in clicked[one.fields["user_id"]] if time < one.time) for one in converted]

    fast, people = after(bots.FAST_CONVERSIONS), after(None)
    assert max(fast) < 4.01 * _SECOND
    assert sum(delay < 4.01 * _SECOND for delay in people) < 0.02 * len(people), "they clicked again before they did"


def test_labels_lie_where_nothing_reads_events(tmp_path: Path) -> None:
    spec = replace(SPEC, events=1000, files=3, malformed=0.1)
    summary = generate(spec, tmp_path)
    labels = [json.loads(line) for line in (tmp_path / LABELS).read_text().splitlines()]
    assert len(labels) == summary.bots > 100
    assert [file.name for file in files_of(Settings(), tmp_path)] == [
        f"events-{number:05}.jsonl" for number in range(3)
    ]
    assert len(list(read_records(tmp_path))) == spec.record_count
    with pytest.raises(SettingsError, match=r"already contains events-00000\.jsonl and 3 more"):
        generate(spec, tmp_path)
    for file in files_of(Settings(), tmp_path):
        Path(file.location).unlink()
    with pytest.raises(SettingsError, match=r"already contains labels\.jsonl"):
        generate(spec, tmp_path)


def test_the_same_spec_gives_the_same_bytes(tmp_path: Path) -> None:
    spec = replace(SPEC, events=1000, files=1)
    for name in ("a", "b"):
        generate(spec, tmp_path / name)
    for name in ("events-00000.jsonl", LABELS):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
        assert (tmp_path / "a" / name).stat().st_mtime == spec.start.timestamp()


def test_a_failure_leaves_no_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("spark_jobs.generator.files.EventFiles.write", broken)
    with pytest.raises(SettingsError, match="cannot be written"):
        generate(replace(SPEC, events=500), tmp_path)
    assert list((tmp_path / LABELS).parent.iterdir()) == []


def test_without_bots_there_are_no_labels_and_no_devices(tmp_path: Path) -> None:
    generate(replace(SPEC, events=500, bots=0.0), tmp_path)
    assert not (tmp_path / LABELS).parent.exists()
    assert not [record for record in read_records(tmp_path) if b'"ip"' in record or b"user_agent" in record]
