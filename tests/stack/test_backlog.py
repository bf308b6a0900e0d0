"""A backlog on a real broker: whatever came in its partition's order is not late, however unequally they lag."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Producer

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.ingest.input_files import read_records
from spark_jobs.lake.layout import Lake
from spark_jobs.ledger.update import update_ledger
from tests.stack.conftest import StartJob
from tests.stack.flow import adloom, wait_for_rows
from tests.stack.jobs import LONGEST_S
from tests.stack.kafka import Kafka
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_ledger, read_table
from tests.support.servers import wait_until

pytestmark = pytest.mark.stack

Place = tuple[str, int]
"""A topic and the number of a partition."""
_MORNING = datetime(2026, 3, 1, tzinfo=UTC)


def _send(kafka: Kafka, records: Mapping[Place, Sequence[bytes]]) -> None:
    producer = Producer({"bootstrap.servers": kafka.address, "enable.idempotence": True})
    for (topic, partition), own in records.items():
        for record in own:
            producer.produce(topic, record, partition=partition)
            producer.poll(0)
    assert producer.flush(60) == 0


def _impression(number: int, time: datetime) -> bytes:
    event = {"event_type": "impression", "event_id": f"i{number}", "user_id": f"u{number % 50}", "campaign_id": "c"}
    return json.dumps({**event, "event_time": time.isoformat(), "ad_id": "a"}).encode()


def _conversion(time: datetime) -> bytes:
    event = {"event_type": "conversion", "event_id": "v1", "user_id": "u1", "conversion_type": "purchase"}
    return json.dumps({**event, "event_time": time.isoformat(), "value_micros": 1, "currency": "EUR"}).encode()


def _silver_rows(lake: Lake) -> int:
    return len(read_table(lake, SILVER_EVENTS))


def test_one_conversion_of_noon_makes_no_impression_of_the_morning_late(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake
) -> None:
    kafka.make_topic(conversions := f"{topic}-conversions")
    impressions = [_impression(i, _MORNING + i * timedelta(hours=12) / 10_000) for i in range(10_000)]
    noon = _conversion(_MORNING + timedelta(hours=11, minutes=59))
    _send(kafka, {(topic, 0): impressions, (conversions, 0): [noon]})
    running = job(
        "deduplicate", ADLOOM_KAFKA__TOPICS=f"{topic},{conversions}", ADLOOM_KAFKA__MAX_OFFSETS_PER_TRIGGER="1000"
    )
    wait_until(lambda: _silver_rows(lake) == 10_001, LONGEST_S, "silver never had all events")
    running.stop()
    assert "to be read further: events after" in running.output
    ledger = update_ledger(lake, Settings())
    assert (ledger.kept, ledger.late, ledger.wrong) == (10_001, 0, [])


@pytest.mark.slow
def test_a_topic_whose_producer_comes_back_later_is_waited_for_if_it_is_said_how_long(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake
) -> None:
    kafka.make_topic(other := f"{topic}-other")
    _send(kafka, {(topic, 0): [_impression(1, _MORNING + timedelta(hours=15))]})
    _send(kafka, {(other, 0): [_impression(2, _MORNING + timedelta(hours=9))]})
    running = job("deduplicate", ADLOOM_KAFKA__TOPICS=f"{topic},{other}", ADLOOM_KAFKA__WAIT_FOR_SILENT="60s")
    wait_for_rows(lake, 2)
    _send(kafka, {(other, 0): [_impression(3, _MORNING + timedelta(hours=10))]})
    wait_for_rows(lake, 3)
    assert _silver_rows(lake) < 3, "the event of 15:00 waits"
    wait_until(lambda: _silver_rows(lake) == 3, LONGEST_S, "what waited was never let through")
    running.stop()
    ledger = update_ledger(lake, Settings())
    assert (ledger.kept, ledger.late, ledger.wrong) == (3, 0, [])


Shape = Callable[[list[bytes], Random], dict[Place, list[bytes]]]


def _by_type(records: list[bytes]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for record in records:
        kind = next((name for name in ("impression", "click", "conversion") if f'"{name}"'.encode() in record), "other")
        found.setdefault(kind, []).append(record)
    return found


def _of_types(records: list[bytes], random: Random) -> dict[Place, list[bytes]]:
    """A topic for each type of event, whose sizes differ by far, each with partitions of unequal share."""
    found: dict[Place, list[bytes]] = {}
    for kind, own in _by_type(records).items():
        weights = [random.random() ** 3 + 0.01 for _ in range(3)]
        for record in own:
            found.setdefault((kind, random.choices(range(3), weights)[0]), []).append(record)
    return found


def _with_a_slow_one(records: list[bytes], random: Random) -> dict[Place, list[bytes]]:
    """One of twelve partitions has a hundredth of the rate, another gets nothing for a third of the time."""
    found: dict[Place, list[bytes]] = {}
    for place, record in enumerate(records):
        is_silent = len(records) / 3 < place < len(records) * 2 / 3
        choices = [number for number in range(1, 12) if number != 1 or not is_silent]
        number = 0 if random.random() < 0.01 else random.choice(choices)
        found.setdefault(("events", number), []).append(record)
    return found


def _check(shape: Shape, seed: int, kafka: Kafka, topic: str, job: StartJob, lake: Lake, folder: Path) -> None:
    source = generate_source(folder / "source", events=3000, seed=seed)
    records = list(read_records(source))
    places = {(f"{topic}-{name}", number): own for (name, number), own in shape(records, Random(seed)).items()}
    for name in {name for name, _ in places}:
        kafka.make_topic(name, partitions=1 + max(number for own, number in places if own == name))
    _send(kafka, places)
    settings = {
        "ADLOOM_KAFKA__TOPICS": ",".join(sorted({name for name, _ in places})),
        "ADLOOM_KAFKA__MAX_OFFSETS_PER_TRIGGER": "500",
    }
    running, gold = job("deduplicate", **settings), job("attribute")
    running.wait_for_log("to be read further")
    running.kill()
    running = job("deduplicate", **settings)
    wait_for_rows(lake, len(records))
    running.stop()
    gold.stop()
    adloom("drain", "--lake", lake.root)
    assert_lake_equals_oracle(lake, source)
    assert read_ledger(lake).late == 0


@pytest.mark.slow
def test_topics_of_unequal_size_lose_nothing(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    _check(_of_types, 1, kafka, topic, job, lake, tmp_path)


@pytest.mark.slow
def test_partitions_that_are_slow_or_silent_lose_nothing(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    _check(_with_a_slow_one, 2, kafka, topic, job, lake, tmp_path)
