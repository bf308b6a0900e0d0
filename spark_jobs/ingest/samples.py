"""A few records of a file or topic, without Spark: to look at before anything runs."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from spark_jobs.config.kafka import NO_ID, SAMPLES_GROUP, librdkafka_options
from spark_jobs.config.sections import KafkaSettings
from spark_jobs.errors import SourceError
from spark_jobs.formats.decoding import Decoded, Decoder
from spark_jobs.formats.files import FileReader

_ANSWER_S = 15.0
_POLL_S = 1.0
_AT_ONCE = 500
_AWAY = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001 so they are called


@dataclass(frozen=True)
class Sample:
    """A record.

    Attributes:
        place: where it was found: a line, a row, or partition and offset.
        raw: its bytes; of a file that is not JSON Lines, its JSON text.
        decoded: what was decoded from it; None: it is JSON.
    """

    place: str
    raw: bytes
    decoded: Decoded | None = None


def sample_file(file: Path, limit: int, reader: FileReader | None) -> Iterator[Sample]:
    """The first ``limit`` records of ``file``.

    Args:
        file: ``.gz``: decompressed, if it is text.
        limit: how many.
        reader: of its rows; None: it has JSON lines.

    Raises:
        SourceError: it cannot be read.
    """
    try:
        yield from islice(_rows(file, reader) if reader else _lines(file), limit)
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _lines(file: Path) -> Iterator[Sample]:
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            yield Sample(f"line {number}", line.rstrip(b"\r\n"))


def _rows(file: Path, reader: FileReader) -> Iterator[Sample]:
    for row in reader.rows(file):
        raw = row.text.encode() if row.text else row.raw
        yield Sample(row.place.replace("=", " "), raw, Decoded(row.text, row.verdict, row.reason))


def sample_topic(settings: KafkaSettings, topic: str, limit: int, decoder: Decoder | None) -> Iterator[Sample]:
    """The newest records of ``topic``, up to ``limit``. Nothing is committed.

    Args:
        settings: the brokers.
        topic: its name.
        limit: how many.
        decoder: of its records; None: they are JSON.

    Raises:
        SourceError: no broker answers, or there is no such topic.
        SettingsError: ``kafka.options`` name a login that librdkafka does not have.
    """
    with _consumer(settings, topic) as (consumer, errors):
        ends = _ends(consumer, topic, settings, errors)
        for place, value in _newest(consumer, topic, ends, limit):
            yield Sample(place, value or b"", decoder.decode(value) if decoder and value is not None else None)


def ends_of_topic(settings: KafkaSettings, topic: str) -> dict[int, tuple[int, int]]:
    """By partition of ``topic``, its first offset and the one after its last.

    Raises:
        SourceError: no broker answers, or there is no such topic.
        SettingsError: ``kafka.options`` name a login that librdkafka does not have.
    """
    with _consumer(settings, topic) as (consumer, errors):
        return _ends(consumer, topic, settings, errors)


def ids_of_topics(settings: KafkaSettings) -> dict[str, str]:
    """By name of each topic of the settings, its id; without those that the brokers lack or give no id.

    Raises:
        SourceError: no broker answers.
        SettingsError: ``kafka.options`` name a login that librdkafka does not have.
    """
    errors: list[str] = []
    admin = AdminClient(
        {**librdkafka_options(settings), "error_cb": lambda error: errors.append(error.str()), "log_level": 0}
    )
    asked = admin.describe_topics(TopicCollection(list(settings.topics)), request_timeout=_ANSWER_S)
    found = {}
    for name, answer in asked.items():
        try:
            # Java, whose ids are in the manifest, writes them with the letters of URLs.
            found[name] = str(answer.result().topic_id).replace("+", "-").replace("/", "_")
        except KafkaException as error:
            if error.args[0].code() in _AWAY:
                why = errors[0] if errors else str(error)
                raise SourceError(
                    f"Kafka at {settings.bootstrap_servers} does not answer: {why}; check kafka.*"
                ) from error
    return {name: one for name, one in found.items() if one != NO_ID}


@contextmanager
def _consumer(settings: KafkaSettings, topic: str) -> Iterator[tuple[Consumer, list[str]]]:
    """A consumer that commits nothing, and what it says went wrong so far."""
    errors: list[str] = []
    options = {
        **librdkafka_options(settings),
        "group.id": SAMPLES_GROUP,
        "enable.auto.commit": False,
        "error_cb": lambda error: errors.append(error.str()),
        "log_level": 0,
    }
    consumer = Consumer(options)
    try:
        yield consumer, errors
    except KafkaException as error:
        why = error.args[0].str() if error.args else str(error)
        raise SourceError(f"{topic} at {settings.bootstrap_servers} cannot be read: {why}") from error
    finally:
        consumer.close()


def _ends(consumer: Consumer, topic: str, settings: KafkaSettings, errors: list[str]) -> dict[int, tuple[int, int]]:
    try:
        known = consumer.list_topics(timeout=_ANSWER_S).topics
    except KafkaException as error:
        why = errors[0] if errors else str(error)
        raise SourceError(f"Kafka at {settings.bootstrap_servers} does not answer: {why}; check kafka.*") from error
    if topic not in known:
        has = ", ".join(sorted(name for name in known if not name.startswith("__"))) or "none"
        raise SourceError(f"Kafka at {settings.bootstrap_servers} has no topic {topic} (it has: {has})")
    return {
        number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_ANSWER_S)
        for number in known[topic].partitions
    }


def _newest(
    consumer: Consumer, topic: str, ends: dict[int, tuple[int, int]], limit: int
) -> Iterator[tuple[str, bytes | None]]:
    each = -(-limit // max(1, len(ends)))
    begins = {number: max(first, end - each) for number, (first, end) in ends.items()}
    left = {number for number, (_, end) in ends.items() if begins[number] < end}
    consumer.assign([TopicPartition(topic, number, begins[number]) for number in left])
    read = 0
    while left and read < limit:
        messages = consumer.consume(_AT_ONCE, timeout=_POLL_S)
        if not messages:
            return  # what was there has expired, or belongs to an aborted transaction
        for message in messages:
            number, offset = message.partition() or 0, message.offset() or 0
            if message.error() or number not in left or offset >= ends[number][1]:
                continue
            if offset + 1 >= ends[number][1]:
                left.discard(number)
            read += 1
            yield f"{topic}/{number}/{offset}", message.value()
