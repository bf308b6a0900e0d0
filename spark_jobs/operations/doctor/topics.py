"""Whether Kafka answers, has the topics that ``ingest`` has read, and still holds what it has not read."""

from collections.abc import Iterator

from spark_jobs.config.sections import KafkaSettings
from spark_jobs.config.topics import is_pattern, meant
from spark_jobs.errors import AdloomError, SettingsError
from spark_jobs.operations.doctor.description import Check, Finding, Subject, attempt, fine, warning, wrong
from spark_jobs.streams.topic_ids import HOW_TO_GO_ON, Offsets, Recreated, next_offsets, recreated


def _look(subject: Subject) -> Iterator[Finding]:
    kafka = subject.settings.kafka_of_sources
    if not kafka.bootstrap_servers:
        yield fine("kafka.bootstrap_servers is empty: events come as files")
        return
    # Its library takes a moment to load, and files do not need it.
    from spark_jobs.ingest.samples import ids_of_topics  # noqa: PLC0415

    try:
        ids = ids_of_topics(kafka)
    except SettingsError as error:
        yield warning(f"topics were not looked at: {error}", "`adloom init --check` asks with Kafka's Java client")
        return
    read: Offsets = {}
    again: dict[str, Recreated] = {}
    try:
        read = next_offsets(subject.lake)
        again = {one.name: one for one in recreated(subject.lake, ids)}
    except AdloomError as error:  # and Kafka is looked at
        yield wrong(f"it is unknown how far ingest has read: {error}", "")
    for topic in kafka.topics:
        if is_pattern(topic) and not meant([topic], ids):
            yield warning(f"Kafka has no topic {topic} yet", "create one, or change the topics of the source")
    for topic in dict.fromkeys([*(one for one in kafka.topics if not is_pattern(one)), *ids]):
        yield from attempt(_topic(kafka, topic, again.get(topic), read.get(topic)))


def _topic(kafka: KafkaSettings, topic: str, again: Recreated | None, read: dict[str, int] | None) -> Iterator[Finding]:
    from spark_jobs.ingest.samples import ends_of_topic  # noqa: PLC0415

    ends = ends_of_topic(kafka, topic)
    records = sum(end - first for first, end in ends.values())
    yield fine(f"topic {topic}: {len(ends)} partitions, {records:,} records")
    if again:
        yield wrong(again.text, HOW_TO_GO_ON)
    else:
        yield from _gaps(topic, ends, read)


def _gaps(topic: str, ends: dict[int, tuple[int, int]], read: dict[str, int] | None) -> Iterator[Finding]:
    if read is None:
        return
    # A partition that was added later is read from its beginning.
    begins = {number: read.get(str(number), first) for number, (first, _) in ends.items()}
    gone = {number: first - begins[number] for number, (first, _) in ends.items() if first > begins[number]}
    if gone:
        places = ", ".join(f"{count:,} of partition {number}" for number, count in sorted(gone.items()))
        yield wrong(
            f"topic {topic}: Kafka has deleted records that ingest has not read: {places}",
            f"{HOW_TO_GO_ON}; raise the topic's retention above the longest downtime, and send again what can be",
        )
    ahead = [number for number, (_, end) in ends.items() if begins[number] > end]
    if ahead:
        yield wrong(
            f"topic {topic}: ingest has read further than partitions {ahead} go: Kafka has lost their end, or the "
            "topic was created again before adloom kept its id",
            HOW_TO_GO_ON,
        )
    waiting = sum(max(0, end - max(first, begins[number])) for number, (first, end) in ends.items())
    yield fine(f"topic {topic}: {waiting:,} records wait to be read")


CHECK = Check(3, "topics", _look)
