"""The stack with docker-compose.tls.yml, fed by its own generator: encrypted, and equal to the oracle."""

import socket
import ssl
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError

from spark_jobs.config.kafka import librdkafka_options
from spark_jobs.config.sections import KafkaSettings
from tests.compose.conftest import running
from tests.compose.stack import Stack
from tests.stack.flow import wait_for_rows
from tests.support.equality import assert_lake_equals_oracle
from tests.support.servers import wait_until

pytestmark = [pytest.mark.compose, pytest.mark.slow, pytest.mark.timeout(3600)]

_LONGEST_S = 420
_SETTINGS = {
    "COMPOSE_FILE": "docker-compose.yml:docker-compose.tls.yml",
    "GENERATOR_EVENTS": "3000",
    "GENERATOR_RATE": "50",
}


def test_events_travel_encrypted_and_all_tables_equal_the_oracle(tmp_path: Path) -> None:
    own = Stack(tmp_path, "adloom-test-tls", _SETTINGS, authority=tmp_path / "certificates/ca/ca.crt")
    own.script("certificates.sh")
    with running(own) as stack:
        for port in ("KAFKA_PORT", "MINIO_PORT"):
            assert _speaks_tls(int(stack.variables[port]), own.authority)
        stack.compose("up", "--detach", "generator")
        stack.wait_for("deploy_streams", stack.trigger("deploy_streams"), "success")
        wait_until(lambda: _has_ended(stack, "generator"), _LONGEST_S, "the generator does not end")
        source = tmp_path / "source"
        records = _keep_topic(stack.kafka, source)
        assert records > 3000, "some are sent twice"
        wait_for_rows(stack.lake, records, _LONGEST_S)
        stack.drain()
        assert_lake_equals_oracle(stack.lake, source)


def _has_ended(stack: Stack, service: str) -> bool:
    (container,) = stack.containers()[service]
    state = stack.docker("inspect", "--format", "{{.State.Status}} {{.State.ExitCode}}", container).split()
    assert state[1] == "0", stack.compose("logs", service)
    return state[0] == "exited"


def _keep_topic(settings: KafkaSettings, folder: Path) -> int:
    """Writes the topic to a file in ``folder``, one line per record, and returns the number of records."""
    group = {"group.id": "the oracle", "auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer({**librdkafka_options(settings), **group})
    partitions = len(consumer.list_topics(settings.topics[0], timeout=30).topics[settings.topics[0]].partitions)
    consumer.subscribe(list(settings.topics))
    lines, ended = [], 0
    while ended < partitions:
        message = consumer.poll(30)
        assert message is not None, "Kafka does not answer"
        if message.error() is None:
            lines.append(message.value() + b"\n")
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            ended += 1
    consumer.close()
    folder.mkdir()
    (folder / "topic.jsonl").write_bytes(b"".join(lines))
    return len(lines)


def _speaks_tls(port: int, authority: Path | None) -> bool:
    """Whether the server on ``port`` has a certificate of ``authority``; an SSLError if it is another's."""
    context = ssl.create_default_context(cafile=authority)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        return secure.version() is not None
