"""Sends records to Kafka at a given rate."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from spark_jobs.contracts.errors import SourceError
from spark_jobs.contracts.kafka import client_options
from spark_jobs.contracts.sections import KafkaSettings
from spark_jobs.generator.livetime import LiveTime
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.generator.traffic import Traffic

_SLICE_S = 0.05
"""Records are sent in bursts of this duration's worth."""
_FLUSH_S = 60.0


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
        SourceError: a record was not acknowledged.
    """
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error:
            failures.append(error)

    quiet = {"error_cb": lambda _: None, "log_level": 0}
    producer = Producer({**client_options(settings), **quiet, "enable.idempotence": True, "linger.ms": 20})
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
