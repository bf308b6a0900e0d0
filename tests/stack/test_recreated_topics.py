"""A topic that is deleted and created again while the job is down: refused, then read from its beginning."""

import json
import os
import subprocess

import pytest

from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.lake.layout import Lake
from tests.stack.conftest import StartJob
from tests.stack.flow import send
from tests.stack.kafka import Kafka
from tests.support.drivers import ADLOOM
from tests.support.lakes import read_table

pytestmark = pytest.mark.stack


def test_a_recreated_topic_that_is_longer_is_refused_and_then_read_from_its_beginning(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake
) -> None:
    kept, again, sent = _refused(kafka, topic, job, lake, new=90)  # offsets do not show it
    now = _settings(kept, again)
    went_on = job("deduplicate", ADLOOM_KAFKA__FAIL_ON_DATA_LOSS="false", **now)
    assert went_on.wait() == 0, went_on.output
    more = _records("more", 3)
    send(kafka, kept, more)
    well = job("deduplicate", **now)
    assert well.wait() == 0, well.output
    assert _raw(lake) == _texts([*sent, *more])


@pytest.mark.slow
def test_so_is_one_that_is_shorter(kafka: Kafka, topic: str, job: StartJob, lake: Lake) -> None:
    kept, again, sent = _refused(kafka, topic, job, lake, new=9)
    went_on = job("deduplicate", ADLOOM_KAFKA__FAIL_ON_DATA_LOSS="false", **_settings(kept, again))
    assert went_on.wait() == 0, went_on.output
    assert _raw(lake) == _texts(sent)


def _refused(kafka: Kafka, kept: str, job: StartJob, lake: Lake, *, new: int) -> tuple[str, str, list[bytes]]:
    """Reads two topics, and recreates one with ``new`` records: doctor and the job name it, and nothing is read.

    Returns:
        The topic that stays, the one that was recreated, and all records sent.
    """
    again = f"{kept}-again"
    kafka.make_topic(again, partitions=3)
    first = {kept: _records("kept", 30), again: _records("old", 30)}
    for name, records in first.items():
        send(kafka, name, records)
    assert job("deduplicate", **_settings(kept, again)).wait() == 0
    assert _wrong_topics(kafka, lake, kept, again) == []

    kafka.recreate_topic(again, partitions=3)
    added = _records("new", new)
    send(kafka, again, added)
    (wrong,) = _wrong_topics(kafka, lake, kept, again)
    assert f"topic {again} was deleted and created again" in wrong
    refused = job("deduplicate", **_settings(kept, again))
    assert refused.wait() == 1, refused.output
    last_line = refused.output.strip().splitlines()[-1]
    assert f"topic {again} was deleted and created again" in last_line
    assert "kafka.fail_on_data_loss = false" in last_line
    assert len(_raw(lake)) == 60
    return kept, again, [record for records in (*first.values(), added) for record in records]


def _settings(*topics: str) -> dict[str, str]:
    return {"ADLOOM_KAFKA__TOPICS": ",".join(topics), "ADLOOM_JOB__TRIGGER": "available_now"}


def _wrong_topics(kafka: Kafka, lake: Lake, *topics: str) -> list[str]:
    environment = {**os.environ, **_settings(*topics), "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address}
    doctor = [*ADLOOM, "doctor", "--json", "--lake", lake.root]
    done = subprocess.run(doctor, env=environment, capture_output=True, text=True, timeout=120, check=False)
    found = json.loads(done.stdout)
    return [one["text"] for one in found if (one["check"], one["severity"]) == ("topics", "wrong")]


def _records(name: str, count: int) -> list[bytes]:
    return [b'{"n": "%s-%03d"}' % (name.encode(), number) for number in range(count)]


def _texts(records: list[bytes]) -> list[str]:
    return sorted(record.decode() for record in records)


def _raw(lake: Lake) -> list[str]:
    raw = BRONZE_EVENTS.column_names.index("raw")
    return sorted(row[raw] for row in read_table(lake, BRONZE_EVENTS))
