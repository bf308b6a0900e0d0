"""A few records of a file or topic, without Spark: to look at before anything runs."""

import codecs
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from spark_jobs.config.encoding import UTF_8
from spark_jobs.config.kafka import NO_ID, SAMPLES_GROUP, librdkafka_options
from spark_jobs.config.sections import KafkaSettings
from spark_jobs.config.topics import is_pattern, meant
from spark_jobs.errors import SourceError
from spark_jobs.formats.decoding import Decoded, Decoder
from spark_jobs.formats.files import FileReader
from spark_jobs.formats.input_file import InputFile
from spark_jobs.formats.text_lines import DAMAGE, open_content
from spark_jobs.ingest.in_python.meta import of_message

_ANSWER_S = 15.0
_POLL_S = 1.0
_AT_ONCE = 500
_HEAD_BYTES = 1024 * 1024
_AWAY = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001 so they are called


@dataclass(frozen=True)
class Sample:
    """A record.

    Attributes:
        place: where it was found: a line, a row, or partition and offset.
        raw: its bytes; of a file of rows, its JSON text.
        decoded: what was decoded from it; None: it is JSON.
        meta: its metadata (:mod:`spark_jobs.ingest.in_python.meta`).
    """

    place: str
    raw: bytes
    decoded: Decoded | None = None
    meta: str = "{}"


def sample_file(file: InputFile, limit: int, reader: FileReader, meta: str = "{}") -> Iterator[Sample]:
    """The first ``limit`` records of ``file``.

    Args:
        file: the file.
        limit: how many.
        reader: of its records.
        meta: their metadata.

    Raises:
        SourceError: it cannot be read.
    """
    try:
        yield from islice(_rows(file, reader, meta), limit)
    except OSError as error:
        raise SourceError(f"{file.name} cannot be read: {error.strerror or error}") from error


def charset_of(file: InputFile) -> str:
    """How the characters of ``file`` are encoded: UTF-8 or UTF-16, or else most likely as in western Windows.

    Raises:
        SourceError: it cannot be read.
    """
    try:
        with closing(open_content(file)) as content:
            codecs.getincrementaldecoder(UTF_8)().decode(content.read(_HEAD_BYTES))
    except UnicodeDecodeError:
        return "windows-1252"
    except DAMAGE:
        pass  # its rows say so
    except OSError as error:
        raise SourceError(f"{file.name} cannot be read: {error.strerror or error}") from error
    return UTF_8


def _rows(file: InputFile, reader: FileReader, meta: str) -> Iterator[Sample]:
    for row in reader.rows(file):
        place = f"line {row.line}" if row.line else row.place.replace("=", " ")
        if row.text or row.verdict:
            raw = row.text.encode() if row.text else row.raw
            yield Sample(place, raw, Decoded(row.text, row.verdict, row.reason), meta)
        else:
            yield Sample(place, row.raw.rstrip(b"\r"), meta=meta)


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
        for one in _newest(consumer, topic, ends, limit):
            value = one.value()
            decoded = decoder.decode(value) if decoder and value is not None else None
            place = f"{topic}/{one.partition()}/{one.offset()}"
            yield Sample(place, value or b"", decoded, of_message(one))


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
    topics = _named(admin, settings, errors)
    asked = admin.describe_topics(TopicCollection(topics), request_timeout=_ANSWER_S) if topics else {}
    found = {}
    for name, answer in asked.items():
        try:
            # Java, whose ids are in the manifest, writes them with the letters of URLs.
            found[name] = str(answer.result().topic_id).replace("+", "-").replace("/", "_")
        except KafkaException as error:
            if error.args[0].code() in _AWAY:
                raise _no_answer(settings, errors, error) from error
    return {name: one for name, one in found.items() if one != NO_ID}


def _named(admin: AdminClient, settings: KafkaSettings, errors: list[str]) -> list[str]:
    """The topics of the settings: all that they name, and those that fit their patterns."""
    if not any(map(is_pattern, settings.topics)):
        return list(settings.topics)
    try:
        known = admin.list_topics(timeout=_ANSWER_S).topics
    except KafkaException as error:
        raise _no_answer(settings, errors, error) from error
    named = (topic for topic in settings.topics if not is_pattern(topic))
    return list(dict.fromkeys([*named, *meant(settings.topics, known)]))


def _no_answer(settings: KafkaSettings, errors: list[str], error: KafkaException) -> SourceError:
    why = errors[0] if errors else str(error)
    return SourceError(f"Kafka at {settings.bootstrap_servers} does not answer: {why}; check kafka.*")


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
        raise _no_answer(settings, errors, error) from error
    if topic not in known:
        has = ", ".join(sorted(name for name in known if not name.startswith("__"))) or "none"
        raise SourceError(f"Kafka at {settings.bootstrap_servers} has no topic {topic} (it has: {has})")
    return {
        number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_ANSWER_S)
        for number in known[topic].partitions
    }


def _newest(consumer: Consumer, topic: str, ends: dict[int, tuple[int, int]], limit: int) -> Iterator[Message]:
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
            yield message
