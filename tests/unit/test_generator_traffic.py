"""The generated stream: its contents, its order, and its bounded memory."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

import pytest

from spark_jobs.generator.daycurve import DayCurve
from spark_jobs.generator.delivery import MOST_DELAY
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.traffic import Traffic

DAY = GeneratorSpec(events=30_000, seed=1)
FAULTLESS = GeneratorSpec(events=5000, duplicates=0.0, late=0.0, malformed=0.0, orphans=0.0)
LONGEST_WATERMARK = timedelta(hours=3)
WINDOW = timedelta(hours=1)


class Arrived(NamedTuple):
    """A good record in order of arrival, and how far the stream had come before it."""

    fields: dict[str, Any]
    time: datetime
    is_repeat: bool
    behind: timedelta


def lines(spec: GeneratorSpec) -> list[bytes]:
    return [line for chunk in Traffic(spec).chunks() for line in chunk]


@cache
def arrivals(spec: GeneratorSpec) -> tuple[Arrived, ...]:
    latest, seen, found = datetime.min.replace(tzinfo=UTC), set[str](), []
    for line in lines(replace(spec, malformed=0.0)):
        fields = json.loads(line)
        time = datetime.fromisoformat(fields["event_time"])
        latest = max(latest, time)
        found.append(Arrived(fields, time, fields["event_id"] in seen, latest - time))
        seen.add(fields["event_id"])
    return tuple(found)


def events(spec: GeneratorSpec) -> list[Arrived]:
    return [arrived for arrived in arrivals(spec) if not arrived.is_repeat]


@pytest.mark.parametrize("count", [1, 2, 17, 1000])
def test_exactly_the_requested_number_of_events_is_generated(count: int) -> None:
    traffic = Traffic(replace(FAULTLESS, events=count))
    found = [json.loads(line) for chunk in traffic.chunks() for line in chunk]
    assert len({record["event_id"] for record in found}) == len(found) == count == traffic.visits.made


def test_the_kinds_of_events_have_their_usual_shares() -> None:
    kinds = Counter(event.fields["event_type"] for event in events(DAY))
    assert kinds["impression"] / DAY.events == pytest.approx(0.62, abs=0.03)
    assert 0.03 <= kinds["click"] / DAY.events <= 0.05
    assert kinds.total() == DAY.events


def test_the_counters_match_the_lines() -> None:
    traffic = Traffic(DAY)
    for _ in traffic.chunks():
        pass
    kinds = Counter(event.fields["event_type"] for event in events(DAY))
    assert (traffic.visits.impressions, traffic.visits.clicks, traffic.visits.activity) == (
        kinds["impression"],
        kinds["click"],
        kinds["activity"],
    )
    assert traffic.delivery.duplicates == sum(arrived.is_repeat for arrived in arrivals(DAY))
    assert traffic.delivery.late == sum(event.behind > LONGEST_WATERMARK for event in events(DAY))


def test_the_share_of_duplicates_is_exact_and_each_is_the_same_record_again_soon_after() -> None:
    spec = GeneratorSpec(events=5000, duplicates=0.1, late=0.0, malformed=0.0)
    copies = Counter(lines(spec))
    assert Counter(copies.values()) == {1: 4500, 2: 500}
    assert max(arrived.behind for arrived in arrivals(spec) if arrived.is_repeat) < timedelta(minutes=40)


@pytest.mark.parametrize("share", [0.002, 0.05])
def test_late_events_are_hours_behind_the_stream_and_all_others_minutes(share: float) -> None:
    spec = replace(DAY, late=share)
    most_delay = timedelta(microseconds=MOST_DELAY)
    late = [event.behind for event in events(spec) if event.behind > most_delay]
    assert most_delay < timedelta(minutes=5)
    assert len(late) / spec.events == pytest.approx(share, rel=0.3)
    assert min(late) > LONGEST_WATERMARK
    assert max(late) < timedelta(hours=6.5)


@pytest.mark.parametrize("count", [1, 100, 500, 3000])
def test_thin_traffic_never_has_events_that_are_half_late(count: int) -> None:
    spec = GeneratorSpec(events=count, late=0.5, hours=12, seed=3)
    behind = [event.behind for event in events(spec)]
    assert not [lag for lag in behind if timedelta(minutes=4) <= lag <= LONGEST_WATERMARK]
    assert len(behind) == count


def test_traffic_too_short_for_late_events_has_none() -> None:
    traffic = Traffic(GeneratorSpec(events=5000, late=0.5, hours=3.5))
    for _ in traffic.chunks():
        pass
    assert traffic.delivery.late == 0


def test_events_do_arrive_out_of_order() -> None:
    assert sum(event.behind > timedelta(seconds=1) for event in events(DAY)) > DAY.events * 0.01
    assert max(event.behind for event in events(replace(DAY, late=0.0))) > timedelta(minutes=2)


def test_every_event_but_a_click_is_within_the_requested_time() -> None:
    start, span = datetime(2025, 3, 1, 19, 59, 59, 999_500, tzinfo=UTC), timedelta(hours=1.5)
    spec = GeneratorSpec(events=5000, start=start, hours=1.5)
    assert all(start <= event.time for event in events(spec))
    assert all(event.time < start + span for event in events(spec) if event.fields["event_type"] != "click")
    assert max(event.time for event in events(spec)) < start + span + timedelta(minutes=20)


def test_traffic_is_quiet_at_four_and_busiest_at_twenty() -> None:
    hours = Counter(event.time.astimezone(UTC).hour for event in events(DAY))
    assert min(range(24), key=hours.__getitem__) in (3, 4)
    assert max(range(24), key=hours.__getitem__) in (19, 20)
    assert hours[20] > 6 * hours[4]


def test_the_day_curve_and_its_inverse_agree() -> None:
    curve = DayCurve(datetime(2025, 1, 6, 13, 7, tzinfo=UTC), timedelta(hours=30))
    assert curve.moment(0.0) == curve.begin
    for share in (0.001, 0.25, 0.5, 0.999):
        assert curve.share_before(curve.moment(share)) == pytest.approx(share, abs=1e-6)


def test_a_click_names_an_impression_of_its_user_unless_it_is_an_orphan() -> None:
    spec = replace(DAY, orphans=0.1)
    shown = {event.fields["event_id"]: event for event in events(spec) if event.fields["event_type"] == "impression"}
    clicks = [event for event in events(spec) if event.fields["event_type"] == "click"]
    matched = [
        (shown[click.fields["impression_id"]], click) for click in clicks if click.fields["impression_id"] in shown
    ]

    assert 1 - len(matched) / len(clicks) == pytest.approx(0.1, abs=0.03)
    assert all(impression.time < click.time for impression, click in matched)
    assert all(impression.fields["user_id"] == click.fields["user_id"] for impression, click in matched)


def test_some_impressions_are_clicked_twice_and_some_clicks_miss_the_window() -> None:
    shown = {
        event.fields["event_id"]: event.time for event in events(DAY) if event.fields["event_type"] == "impression"
    }
    clicks = [event for event in events(DAY) if event.fields.get("impression_id") in shown]
    per_impression = Counter(click.fields["impression_id"] for click in clicks)
    delays = sorted(click.time - shown[click.fields["impression_id"]] for click in clicks)

    assert set(per_impression.values()) == {1, 2}
    assert delays[len(delays) // 2] < timedelta(seconds=15)
    assert 0 < sum(delay > WINDOW for delay in delays) < len(delays) * 0.03


def test_about_four_visits_in_ten_end_with_a_logout() -> None:
    # Events do not name their visit, but a visit has six page views on average.
    activity = [event.fields for event in events(DAY) if event.fields["event_type"] == "activity"]
    logouts = sum(fields.get("is_last", False) for fields in activity)
    assert logouts / (len(activity) - logouts) == pytest.approx(0.4 / 6, rel=0.25)


def test_a_few_users_are_heavy_and_most_are_not() -> None:
    per_user = sorted(Counter(event.fields["user_id"] for event in events(DAY)).values(), reverse=True)
    assert sum(per_user[: len(per_user) // 100]) > DAY.events * 0.1
    assert per_user[0] < DAY.events * 0.05


def test_campaigns_differ_in_size_and_in_how_often_they_are_clicked() -> None:
    spec = replace(FAULTLESS, events=40_000, campaigns=5)
    of_impression, clicked = {}, defaultdict[str, set[str]](set)
    for event in events(spec):
        if event.fields["event_type"] == "impression":
            of_impression[event.fields["event_id"]] = event.fields["campaign_id"]
    for event in events(spec):
        if event.fields["event_type"] == "click":
            clicked[of_impression[event.fields["impression_id"]]].add(event.fields["impression_id"])
    sizes = Counter(of_impression.values())
    rates = sorted(len(clicked[campaign]) / sizes[campaign] for campaign in sizes)

    assert len(sizes) == 5
    assert sizes["c-1"] > 3 * sizes["c-5"]
    assert rates[0] < 0.03
    assert 0.045 < rates[-1] < 0.075


def test_event_times_are_written_in_every_way_the_contract_allows() -> None:
    texts = [event.fields["event_time"] for event in events(DAY)]
    in_milliseconds = sum(text[19] == "." and text[23:] == "Z" for text in texts)
    in_microseconds = sum(text[26:] == "Z" for text in texts)
    with_offset = sum(not text.endswith("Z") for text in texts)

    assert in_milliseconds + in_microseconds + with_offset == len(texts)
    assert in_milliseconds > 0.9 * len(texts)
    assert min(in_microseconds, with_offset) > 0.005 * len(texts)


def test_another_seed_gives_other_events() -> None:
    ids = [{event.fields["event_id"] for event in events(GeneratorSpec(events=500, seed=seed))} for seed in (1, 2)]
    assert not ids[0] & ids[1]


def test_broken_records_change_nothing_about_the_good_ones() -> None:
    without = lines(GeneratorSpec(events=5000, malformed=0.0))
    known = set(without)
    among_broken = lines(GeneratorSpec(events=5000, malformed=0.5))
    assert [line for line in among_broken if line in known] == without
    assert len(among_broken) - len(without) == 2500


def test_duplicates_and_lateness_change_no_event() -> None:
    assert set(lines(replace(FAULTLESS, duplicates=0.3, late=0.1))) == set(lines(FAULTLESS))


def test_what_is_held_grows_with_how_busy_traffic_is_and_not_with_how_long() -> None:
    def most_pending(days: int) -> int:
        traffic = Traffic(GeneratorSpec(events=8000 * days, hours=24.0 * days, late=0.02))
        return max(traffic.pending for _ in traffic.chunks())

    one_day = most_pending(1)
    assert 0 < one_day < 800
    assert most_pending(5) < 1.5 * one_day


CONVERTING = replace(DAY, conversions=0.3, duplicates=0.0, malformed=0.0, late=0.0)


def _conversions(spec: GeneratorSpec) -> list[Arrived]:
    return [event for event in events(spec) if event.fields["event_type"] == "conversion"]


def test_traffic_without_conversions_is_what_it_was_before_there_were_any() -> None:
    digest = sha256(b"".join(lines(GeneratorSpec(events=2000, seed=7)))).hexdigest()
    assert digest == "5da9b3b7d852f4c9991e29c9f9dd200efde914d455022fe5b03750848852ad62"


@pytest.mark.parametrize("count", [1, 2, 17, 1000, 5000])
def test_conversions_are_among_the_requested_events(count: int) -> None:
    spec = replace(FAULTLESS, events=count, conversions=1.0)
    traffic = Traffic(spec)
    found = [json.loads(line) for chunk in traffic.chunks() for line in chunk]
    assert len({record["event_id"] for record in found}) == len(found) == count == traffic.visits.made
    assert traffic.visits.conversions.made == sum(record["event_type"] == "conversion" for record in found)


def test_all_records_arrive_where_conversions_and_late_events_meet() -> None:
    for seed in range(20):
        spec = GeneratorSpec(events=400, seed=seed, conversions=1.0, late=0.3)
        assert len(lines(spec)) == spec.record_count


def test_a_conversion_follows_a_click_of_its_user() -> None:
    clicked = defaultdict[str, list[datetime]](list)
    for event in events(CONVERTING):
        if event.fields["event_type"] == "click":
            clicked[event.fields["user_id"]].append(event.time)
    converted = [event for event in _conversions(CONVERTING) if "revokes" not in event.fields]
    after = [min(e.time - time for time in clicked[e.fields["user_id"]] if time < e.time) for e in converted]
    assert min(after) >= timedelta(seconds=5) - timedelta(milliseconds=1)
    clicks = sum(map(len, clicked.values()))
    assert 0.15 * clicks < len(converted) < 0.35 * clicks, "those past the end are not generated"


def test_a_repeated_order_is_the_same_purchase_under_another_id() -> None:
    by_order = defaultdict[str, list[Arrived]](list)
    for event in _conversions(CONVERTING):
        if "order_id" in event.fields and "revokes" not in event.fields:
            by_order[event.fields["order_id"]].append(event)
    repeated = [found for found in by_order.values() if len(found) > 1]
    assert 0.01 < len(repeated) / len(by_order) < 0.1
    for first, again in repeated:
        assert first.fields["event_id"] != again.fields["event_id"]
        assert {**first.fields, "event_id": "", "event_time": ""} == {**again.fields, "event_id": "", "event_time": ""}


def test_a_refund_takes_back_an_earlier_purchase_whole() -> None:
    by_id = {event.fields["event_id"]: event for event in _conversions(CONVERTING)}
    refunds = [event for event in by_id.values() if "revokes" in event.fields]
    assert refunds
    for refund in refunds:
        revoked = by_id[refund.fields["revokes"]]
        assert revoked.time < refund.time
        same = ("user_id", "conversion_type", "value_micros", "currency", "order_id")
        assert [refund.fields[name] for name in same] == [revoked.fields[name] for name in same]


def test_the_counters_of_conversions_match_the_lines() -> None:
    traffic = Traffic(CONVERTING)
    for _ in traffic.chunks():
        pass
    made, found = traffic.visits.conversions, [event.fields for event in _conversions(CONVERTING)]
    orders = Counter(fields["order_id"] for fields in found if "order_id" in fields and "revokes" not in fields)
    assert (made.made, made.refunds) == (len(found), sum("revokes" in fields for fields in found))
    assert made.repeats == sum(orders.values()) - len(orders)
