"""`adloom doctor` with the jobs' own keys, on a lake in MinIO fed from Kafka: what is fine, and what Kafka has lost."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from spark_jobs.lake.layout import Lake
from tests.stack.conftest import JOBS_USER, StartJob
from tests.stack.flow import send
from tests.stack.kafka import Kafka
from tests.support.drivers import ADLOOM
from tests.support.walks import perform, steps

pytestmark = pytest.mark.stack


def _environment(kafka: Kafka, topic: str, lake: Lake) -> dict[str, str]:
    places = {
        "ADLOOM_LAKE": lake.root,
        "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address,
        "ADLOOM_KAFKA__TOPICS": topic,
        # Those that `adloom init --user` creates, and no others.
        "ADLOOM_S3__PROFILE": JOBS_USER,
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
    }
    return {**os.environ, **places}


def _doctor(kafka: Kafka, topic: str, lake: Lake) -> tuple[int, list[dict[str, str]]]:
    done = subprocess.run(
        [*ADLOOM, "doctor", "--json"],
        env=_environment(kafka, topic, lake),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found: list[dict[str, str]] = json.loads(done.stdout)
    return done.returncode, found


@pytest.mark.slow
def test_records_that_kafka_deleted_before_they_were_read_are_found(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    send(kafka, topic, [b"{}"] * 30)
    done = job("deduplicate", ADLOOM_JOB__TRIGGER="available_now")
    assert done.wait() == 0, done.output

    code, found = _doctor(kafka, topic, lake)
    assert code == 0, found
    texts = [one["text"] for one in found if one["check"] in ("store", "topics")]
    assert any("can be listed and written, with conditional writes" in text for text in texts)
    assert any("clock and this machine's agree" in text for text in texts)
    assert any("whether it keeps old versions cannot be read with these keys (AccessDenied)" in text for text in texts)
    assert any("its lifecycle rules cannot be read with these keys (AccessDenied)" in text for text in texts)
    assert f"topic {topic}: 3 partitions, 30 records" in texts
    assert f"topic {topic}: 0 records wait to be read" in texts

    send(kafka, topic, [b"{}"] * 30)
    code, found = _doctor(kafka, topic, lake)
    assert (code, f"topic {topic}: 30 records wait to be read" in [one["text"] for one in found]) == (0, True)

    # The broker's own clean-up by age or size does the same, later. -1: everything.
    admin = AdminClient({"bootstrap.servers": kafka.address})
    for future in admin.delete_records([TopicPartition(topic, number, -1) for number in range(3)]).values():
        future.result()
    code, found = _doctor(kafka, topic, lake)
    assert code == 1
    (wrong,) = [one for one in found if one["severity"] == "wrong"]
    assert "Kafka has deleted records that ingest has not read" in wrong["text"]
    gone = sum(int(part.split()[0]) for part in wrong["text"].rpartition(": ")[2].split(", "))
    assert gone == 30
    assert "kafka.fail_on_data_loss" in wrong["todo"]

    _walked(_environment(kafka, topic, lake), tmp_path)


def _walked(environment: dict[str, str], folder: Path) -> None:
    """The walk of who is on call, from what is wrong to all is well."""
    wrong, looked, went_on, well = (perform(step, environment, folder) for step in steps("On call"))
    assert wrong.returncode == 1, wrong.stdout
    assert "Kafka has deleted records that ingest has not read" in " ".join(wrong.stdout.split())
    assert looked.returncode == 0, looked.stderr
    assert "ingest" in looked.stdout
    assert re.search(r"\b30\b", looked.stdout), looked.stdout
    assert went_on.returncode == 0, went_on.stderr
    assert well.returncode == 0, well.stdout + well.stderr
