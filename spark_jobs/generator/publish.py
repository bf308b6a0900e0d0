"""Sends records to Kafka at a given rate."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from spark_jobs.config.kafka import librdkafka_options
from spark_jobs.config.sections import KafkaSettings
from spark_jobs.errors import SourceError
from spark_jobs.generator.livetime import LiveTime
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.traffic import Traffic

_SLICE_S = 0.05
"""Records are sent in bursts of this duration's worth."""
_FLUSH_S = 60.0
_ANSWER_S = 15


@dataclass(frozen=True)
class Published:
    """The number of records acknowledged by all replicas, and how many seconds it took."""

    records: int
    seconds: float


def generated_records(spec: GeneratorSpec) -> Iterator[bytes]:
    """The records of ``spec`` in order of arrival, without line ends."""
    for lines in Traffic(spec).chunks():
        yield from (line.rstrip(b"\n") for line in lines)


def publish(
    records: Iterable[bytes],
    settings: KafkaSettings,
    *,
    rate: float | None,
    is_live: bool,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Published:
    """Sends ``records`` to the first of the topics, in order, each exactly once.

    Args:
        records: the records as text; equal records go to the same partition.
        settings: brokers, topics and credentials.
        rate: records per second; None for as fast as possible.
        is_live: whether to move event times to the moment of sending (:class:`LiveTime`).
        on_progress: called with the number sent so far, many times a second.

    Raises:
        SourceError: no broker answers, there is no such topic, or a record was not acknowledged.
        SettingsError: ``kafka.options`` name a login that librdkafka does not have.
    """
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error:
            failures.append(error)

    errors: list[str] = []
    quiet = {"error_cb": lambda error: errors.append(error.str()), "log_level": 0}
    producer = Producer({**librdkafka_options(settings), **quiet, "enable.idempotence": True, "linger.ms": 20})
    _check_topic(producer, settings, errors)
    clock, begin, sent = LiveTime(), time.monotonic(), 0
    for record in records:
        if rate and sent >= rate * (time.monotonic() - begin + _SLICE_S):
            on_progress(sent)
            producer.poll(max(0.0, sent / rate - (time.monotonic() - begin)))
        text = clock.retime(record, datetime.now(UTC)) if is_live else record
        _send(producer, settings.topics[0], text, delivered)
        sent += 1
        if failures:
            break
    left = producer.flush(_FLUSH_S)
    on_progress(sent)
    if failures or left:
        why = failures[0].str() if failures else f"{left} records were not acknowledged within {_FLUSH_S:.0f} s"
        raise SourceError(f"records cannot be sent to {settings.topics[0]} at {settings.bootstrap_servers}: {why}")
    return Published(sent, time.monotonic() - begin)


def _check_topic(producer: Producer, settings: KafkaSettings, errors: list[str]) -> None:
    try:
        known = producer.list_topics(timeout=_ANSWER_S).topics
    except KafkaException as error:
        raise SourceError(
            f"Kafka at {settings.bootstrap_servers} does not answer as {settings.security_protocol}: "
            f"{errors[0] if errors else error.args[0].str()}; check --kafka, kafka.security_protocol, kafka.ca_file "
            "and the user"
        ) from error
    if settings.topics[0] not in known:
        has = ", ".join(sorted(name for name in known if not name.startswith("__"))) or "none"
        raise SourceError(
            f"Kafka at {settings.bootstrap_servers} has no topic {settings.topics[0]} (it has: {has}); create it "
            "(`adloom init` does), or give another --topic"
        )


def _send(
    producer: Producer, topic: str, record: bytes, delivered: Callable[[KafkaError | None, Message], None]
) -> None:
    while True:
        try:
            # Keyed by content, so that a duplicate follows the original in the same partition.
            producer.produce(topic, value=record, key=crc32(record).to_bytes(4, "big"), on_delivery=delivered)
        except BufferError:
            producer.poll(_SLICE_S)
        except KafkaException as error:
            raise SourceError(f"records cannot be sent to {topic}: {error.args[0].str()}") from error
        else:
            producer.poll(0)
            return
