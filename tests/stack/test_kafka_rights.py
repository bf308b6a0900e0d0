"""Rights by topic, on a broker with an authorizer: who reads may not send, who sends may neither read nor delete."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.lake.open import open_lake
from tests.stack.certificates import kafka_pem
from tests.stack.jobs import start_job
from tests.stack.kafka import Kafka
from tests.support.drivers import ADLOOM
from tests.support.lakes import read_table

pytestmark = pytest.mark.stack

_TOPIC, _OTHER = "events", "others"
_PASSWORDS = {"jobs": "canary-11aa-of-jobs", "sender": "canary-22bb-of-sender"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The PEM file of an authority, with ``broker.pem`` beside it."""
    folder, signer = tmp_path_factory.mktemp("rights"), trustme.CA()
    signer.cert_pem.write_to_path(folder / "authority.pem")
    (folder / "broker.pem").write_bytes(kafka_pem(signer.issue_cert("127.0.0.1")))
    return folder / "authority.pem"


@pytest.fixture(scope="module")
def broker(authority: Path) -> Iterator[Kafka]:
    """A broker on which `adloom init` has given jobs and sender their rights, as in docker-compose.yml."""
    folder = authority.parent
    kafka = Kafka(folder / "kafka", certificate=folder / "broker.pem", others=_PASSWORDS, has_authorizer=True)
    kafka.start()
    kafka.make_topic(_OTHER)
    for _ in range(2):  # it can be run again
        made = _adloom(
            {"ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address, "ADLOOM_KAFKA__TOPICS": _TOPIC},
            *("init", "--lake", str(folder / "lake"), "--reader", "jobs", "--writer", "sender"),
        )
        assert made.returncode == 0, made.stderr
        assert f"user jobs: may read {_TOPIC}" in made.stdout
        assert f"user sender: may send to {_TOPIC}" in made.stdout
    yield kafka
    kafka.stop()


def _adloom(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    given = {**os.environ, **environment}
    return subprocess.run([*ADLOOM, *arguments], env=given, capture_output=True, text=True, timeout=180, check=False)


def _options(kafka: Kafka, authority: Path, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka.secure_address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(authority),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": _PASSWORDS[user],
        "log_level": 0,
        "error_cb": lambda _: None,
    }


def _settings(kafka: Kafka, authority: Path, user: str) -> dict[str, str]:
    return {
        "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.secure_address,
        "ADLOOM_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
        "ADLOOM_KAFKA__SASL_MECHANISM": "SCRAM-SHA-512",
        "ADLOOM_KAFKA__CA_FILE": str(authority),
        "ADLOOM_KAFKA__USERNAME": user,
        "ADLOOM_KAFKA__PASSWORD": _PASSWORDS[user],
        "ADLOOM_KAFKA__TOPICS": _TOPIC,
    }


def _sends(options: dict[str, Any], topic: str) -> bool:
    outcome: list[Any] = []
    producer = Producer({**options, "message.timeout.ms": 20_000})
    try:
        producer.produce(topic, json.dumps({"event_id": "e"}), on_delivery=lambda error, _: outcome.append(error))
        producer.flush(30)
    except KafkaException:
        return False
    return bool(outcome) and outcome[0] is None


def _reads(options: dict[str, Any], topic: str) -> bool:
    consumer = Consumer({**options, "group.id": "adloom check-events", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(1, timeout=20)
        return bool(found) and found[0].error() is None
    except KafkaException:
        return False
    finally:
        consumer.close()


def _changes(options: dict[str, Any], topic: str) -> bool:
    """Whether the topic, its records or its rights can be changed."""
    admin = AdminClient(options)
    acts: list[Callable[[], dict[Any, Any]]] = [
        lambda: admin.delete_topics([topic]),
        lambda: admin.delete_records([TopicPartition(topic, 0, -1)]),
    ]
    done = []
    for act in acts:
        for future in act().values():
            try:
                future.result(timeout=20)
            except KafkaException:
                continue
            done.append(act)
    return bool(done)


def test_the_sender_may_send_and_neither_read_nor_delete(broker: Kafka, authority: Path) -> None:
    options = _options(broker, authority, "sender")
    assert _sends(options, _TOPIC)
    assert not _sends(options, _OTHER)
    assert not _reads(options, _TOPIC)
    assert not _changes(options, _TOPIC)
    assert _TOPIC in broker.topics()


def test_the_jobs_may_read_and_neither_send_nor_delete(broker: Kafka, authority: Path, tmp_path: Path) -> None:
    assert _sends(_options(broker, authority, "sender"), _TOPIC)
    options = _options(broker, authority, "jobs")
    assert _reads(options, _TOPIC)
    assert not _sends(options, _TOPIC)
    assert not _changes(options, _TOPIC)
    settings = _settings(broker, authority, "jobs")
    checked = _adloom(settings, "init", "--check", "--lake", str(tmp_path / "lake"))
    assert checked.returncode == 0, checked.stderr
    looked = _adloom(settings, "check-events", _TOPIC)
    assert "records fit" in looked.stdout, looked.stderr
    once = {**settings, "ADLOOM_JOB__TRIGGER": "available_now"}
    job = start_job("deduplicate", open_lake(str(tmp_path / "lake")), tmp_path / "log", environment=once)
    assert job.wait() == 0, job.output
    assert read_table(job.lake, BRONZE_EVENTS)


def test_a_user_who_may_not_give_rights_is_told_so(broker: Kafka, authority: Path, tmp_path: Path) -> None:
    refused = _adloom(
        _settings(broker, authority, "jobs"), "init", "--lake", str(tmp_path / "lake"), "--writer", "sender"
    )
    assert refused.returncode == 1
    shown = " ".join(refused.stderr.split())
    assert f"user sender cannot be given the right to send to {_TOPIC} at {broker.secure_address}" in shown
    assert "Traceback" not in refused.stderr
