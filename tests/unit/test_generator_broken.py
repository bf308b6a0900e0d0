"""Every way to break a record gets its documented verdict, from a judge that shares no code with the generator."""

from collections import Counter
from datetime import UTC, datetime
from random import Random

import pytest

from spark_jobs.config.sections import IngestSettings
from spark_jobs.contract.events import OK
from spark_jobs.generator.broken import BROKEN, BrokenRecords, Surroundings
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.traffic import Traffic
from tests.support.verdicts import judge

RECEIPT = datetime(2026, 1, 1, tzinfo=UTC)
AROUND = Surroundings("bad-0123456789ab", "2025-01-06T12:00:00.123Z", "u-000123")


def verdict(record: bytes) -> str:
    return judge(record, receipt=RECEIPT, ingest=IngestSettings()).verdict


@pytest.mark.parametrize("name", list(BROKEN))
def test_each_broken_record_gets_its_verdict_for_any_seed(name: str) -> None:
    for seed in range(50):
        record = BROKEN[name].make(Random(seed), AROUND)
        assert b"\n" not in record
        assert verdict(record) == BROKEN[name].verdict, record


def test_all_ways_occur_equally_often() -> None:
    broken = BrokenRecords(Random(0))
    for _ in range(len(BROKEN) * 3):
        broken.next(AROUND)
    assert broken.made == dict.fromkeys(BROKEN, 3)


def test_the_verdicts_of_a_stream_add_up_to_the_counters() -> None:
    spec = GeneratorSpec(events=3000, malformed=0.1, seed=4)
    traffic = Traffic(spec)
    found = Counter(verdict(line.removesuffix(b"\n")) for chunk in traffic.chunks() for line in chunk)

    expected = Counter({OK: spec.events + spec.duplicate_count})
    for name, count in traffic.delivery.broken.made.items():
        expected[BROKEN[name].verdict] += count
    assert found == expected
    assert sum(traffic.delivery.broken.made.values()) == 300
