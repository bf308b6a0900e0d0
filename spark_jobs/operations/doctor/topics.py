"""Whether Kafka answers, has the topics, and still holds what ``ingest`` has not read."""

from collections.abc import Iterator
from typing import Any

from spark_jobs.errors import SettingsError
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import read_plan
from spark_jobs.operations.doctor.description import Check, Finding, Subject, fine, warning, wrong
from spark_jobs.queries.places import checkpoint_batches, checkpoint_in_use, checkpoint_key

_GO_ON = "start the job deduplicate once with kafka.fail_on_data_loss = false (docs/runbook.md)"


def _look(subject: Subject) -> Iterator[Finding]:
    kafka = subject.settings.kafka_of_sources
    if not kafka.bootstrap_servers:
        yield fine("kafka.bootstrap_servers is empty: events come as files")
        return
    # Its library takes a moment to load, and files do not need it.
    from spark_jobs.ingest.samples import ends_of_topic  # noqa: PLC0415

    read = _read_offsets(subject.lake)
    for topic in kafka.topics:
        try:
            ends = ends_of_topic(kafka, topic)
        except SettingsError as error:
            yield warning(f"topics were not looked at: {error}", "`adloom init --check` asks with Kafka's Java client")
            return
        records = sum(end - first for first, end in ends.values())
        yield fine(f"topic {topic}: {len(ends)} partitions, {records:,} records")
        yield from _gaps(topic, ends, read.get(topic))


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
            f"{_GO_ON}; raise the topic's retention above the longest downtime, and send again what can be",
        )
    ahead = [number for number, (_, end) in ends.items() if begins[number] > end]
    if ahead:
        yield wrong(
            f"topic {topic}: ingest has read further than partitions {ahead} go: the topic was recreated",
            _GO_ON,
        )
    waiting = sum(max(0, end - max(first, begins[number])) for number, (first, end) in ends.items())
    yield fine(f"topic {topic}: {waiting:,} records wait to be read")


def _read_offsets(lake: Lake) -> dict[str, dict[str, int]]:
    """By topic and partition, the offset that ``ingest`` reads next; empty if it reads files, or has read nothing."""
    version = checkpoint_in_use(lake, INGEST)
    planned = checkpoint_batches(lake, INGEST, version, "offsets")
    plan = lake.files.read(f"{checkpoint_key(INGEST, version)}/offsets/{planned[-1]}") if planned else None
    reached: list[Any] = read_plan(plan).reached if plan else []
    # Files have a position that is no map of topics.
    return {
        topic: offsets
        for one in reached
        if isinstance(one, dict)
        for topic, offsets in one.items()
        if isinstance(offsets, dict)
    }


CHECK = Check(3, "topics", _look)
