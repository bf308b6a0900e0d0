"""Kafka's topics: which there are, and creating them.

The client is Java's own with the very options that Spark's reader gets. So a check passes where Spark passes, whatever
``kafka.options`` name: a client certificate, OAuth, a login module of a cloud.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from spark_jobs.config.kafka import ISOLATION, NO_ID, SAMPLES_GROUP, java_options, reader_options
from spark_jobs.config.sections import KafkaSettings
from spark_jobs.config.topics import ANY, is_pattern, meant
from spark_jobs.errors import SourceError

_TIMEOUT_MS = 15_000
_KNOWN_WITHIN_S, _ASKED_EVERY_S = 15.0, 0.2


@dataclass(frozen=True)
class Topic:
    """A topic as the brokers describe it.

    Attributes:
        id: unlike the name, never given again after the topic was deleted; empty if the brokers give none.
        partitions: their numbers.
    """

    id: str
    partitions: tuple[str, ...]


def describe_topics(jvm: Any, settings: KafkaSettings) -> dict[str, Topic]:
    """By name, each topic of the settings that the brokers have.

    Args:
        jvm: Java's classes, as py4j gives them.
        settings: of Kafka.

    Raises:
        SourceError: no broker answers, it refuses the client, or its certificate is not trusted.
    """
    with _admin(jvm, settings) as admin:
        return _described(jvm, admin, settings, _names(admin))


def require_topics(jvm: Any, settings: KafkaSettings) -> dict[str, Topic]:
    """By name, each topic of the settings.

    Raises:
        SourceError: see :func:`describe_topics`, or a topic is missing.
    """
    known = describe_topics(jvm, settings)
    if missing := [topic for topic in settings.topics if not meant([topic], known)]:
        has = ", ".join(names_of_topics(jvm, settings)) or "none"
        raise SourceError(
            f"Kafka at {settings.bootstrap_servers} has no topic {', '.join(missing)} that this client may see (it "
            f"sees: {has}); create it (`adloom init` does), or change kafka.topics or the topics of the source"
        )
    return known


def unread_partitions(jvm: Any, settings: KafkaSettings, reached: Mapping[str, Mapping[str, int]]) -> set[str]:
    """The partitions, as ``<topic>/<partition>``, that have records after the offsets ``reached``.

    Args:
        jvm: Java's classes, as py4j gives them.
        settings: of Kafka.
        reached: by topic and partition the next offset to read, as Spark writes it.

    Raises:
        SourceError: see :func:`describe_topics`.
    """
    kafka = jvm.org.apache.kafka
    with _admin(jvm, settings) as admin:
        known = _described(jvm, admin, settings, _names(admin))
        places = [
            kafka.common.TopicPartition(name, int(one)) for name, topic in known.items() for one in topic.partitions
        ]
        wanted = jvm.java.util.HashMap()
        for place in places:
            wanted[place] = kafka.clients.admin.OffsetSpec.latest()
        level = kafka.common.IsolationLevel.valueOf(reader_options(settings)[ISOLATION].upper())
        ends = admin.listOffsets(wanted, kafka.clients.admin.ListOffsetsOptions(level)).all().get()
        offsets = {(place.topic(), str(place.partition())): ends[place].offset() for place in places}
    return {
        f"{topic}/{number}" for (topic, number), end in offsets.items() if end > reached.get(topic, {}).get(number, 0)
    }


def names_of_topics(jvm: Any, settings: KafkaSettings) -> list[str]:
    """The topics that the client may see, sorted, without Kafka's own.

    Raises:
        SourceError: see :func:`describe_topics`.
    """
    with _admin(jvm, settings) as admin:
        return sorted(name for name in _names(admin) if not name.startswith("__"))


def create_topics(jvm: Any, settings: KafkaSettings, partitions: int) -> Iterator[str]:
    """Creates those topics of the settings that are missing; leaves the others as they are.

    Args:
        jvm: Java's classes, as py4j gives them.
        settings: of Kafka.
        partitions: of a new topic. The brokers' default says how many replicas it has.

    Yields:
        A line for each topic.

    Raises:
        SourceError: see :func:`describe_topics`, or a topic cannot be created.
    """
    optional = jvm.java.util.Optional
    with _admin(jvm, settings) as admin:
        known = _described(jvm, admin, settings, _names(admin))
        for topic in settings.topics:
            if is_pattern(topic):
                yield f"topics {topic}: {', '.join(meant([topic], known)) or 'none fits yet'}"
                continue
            if topic in known:
                yield f"topic {topic}: exists, with {len(known[topic].partitions)} partitions"
                continue
            new = jvm.org.apache.kafka.clients.admin.NewTopic(topic, optional.of(partitions), optional.empty())
            try:
                admin.createTopics(_collection(jvm, [new])).all().get()
            except Py4JJavaError as error:
                raise SourceError(
                    f"topic {topic} cannot be created at {settings.bootstrap_servers}: {_reason(error)}"
                ) from None
            _wait_for(admin, topic)
            yield f"topic {topic}: created, with {partitions} partitions"


def grant_topics(jvm: Any, settings: KafkaSettings, readers: Sequence[str], writers: Sequence[str]) -> Iterator[str]:
    """Gives users rights on the topics of the settings, and on nothing else; for brokers with an authorizer.

    Of a pattern, these are all topics that begin as it does.

    Args:
        jvm: Java's classes, as py4j gives them.
        settings: of Kafka.
        readers: users who may read the topics.
        writers: users who may send to them.

    Yields:
        A line for each user.

    Raises:
        SourceError: see :func:`describe_topics`, or the brokers have no authorizer, or refuse; or a pattern begins
            with any characters.
    """
    if (readers or writers) and (vague := [topic for topic in settings.topics if topic.startswith(ANY)]):
        raise SourceError(
            f"Kafka has no rights on {vague[0]} without those on all topics; give the users theirs with Kafka's tools"
        )
    topics = [("TOPIC", topic) for topic in settings.topics]
    rights = [(user, "READ", [*topics, ("GROUP", SAMPLES_GROUP)], "read") for user in readers]
    rights += [(user, "WRITE", topics, "send to") for user in writers]
    with _admin(jvm, settings) as admin:
        for user, operation, resources, verb in rights:
            wanted = _collection(jvm, [_allowed(jvm, kind, name, user, operation) for kind, name in resources])
            try:
                admin.createAcls(wanted).all().get()
            except Py4JJavaError as error:
                raise SourceError(
                    f"user {user} cannot be given the right to {verb} {', '.join(settings.topics)} at "
                    f"{settings.bootstrap_servers}: {_reason(error)}; it takes brokers with an authorizer, and a user "
                    "who may change rights"
                ) from None
            yield f"user {user}: may {verb} {', '.join(settings.topics)}"


def _allowed(jvm: Any, kind: str, name: str, user: str, operation: str) -> Any:
    common = jvm.org.apache.kafka.common
    # Kafka knows rights on names and on beginnings of names.
    kinds = common.resource.PatternType
    kind_of_name, prefix = (kinds.PREFIXED if is_pattern(name) else kinds.LITERAL), name.partition(ANY)[0]
    pattern = common.resource.ResourcePattern(common.resource.ResourceType.valueOf(kind), prefix, kind_of_name)
    entry = common.acl.AccessControlEntry(
        f"User:{user}", "*", common.acl.AclOperation.valueOf(operation), common.acl.AclPermissionType.ALLOW
    )
    return common.acl.AclBinding(pattern, entry)


@contextmanager
def _admin(jvm: Any, settings: KafkaSettings) -> Iterator[Any]:
    """Kafka's client for administrators."""
    properties = jvm.java.util.Properties()
    timeouts = {"default.api.timeout.ms": str(_TIMEOUT_MS), "request.timeout.ms": str(_TIMEOUT_MS)}
    for name, value in {**java_options(settings), **timeouts}.items():
        properties.setProperty(name, value)
    admin = None
    try:
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
        yield admin
    except Py4JJavaError as error:
        # Without its Java trace, which may be long.
        raise SourceError(
            f"Kafka at {settings.bootstrap_servers} does not answer as {settings.security_protocol}: {_reason(error)}; "
            "check kafka.bootstrap_servers, kafka.security_protocol, kafka.ca_file, the user and kafka.options"
        ) from None
    finally:
        if admin is not None:
            admin.close(jvm.java.time.Duration.ZERO)


def _wait_for(admin: Any, topic: str) -> None:
    """Returns when the brokers list a new topic, which takes them a moment: a job would be refused until then."""
    deadline = time.monotonic() + _KNOWN_WITHIN_S
    while topic not in _names(admin) and time.monotonic() < deadline:
        time.sleep(_ASKED_EVERY_S)


def _names(admin: Any) -> set[str]:
    return set(admin.listTopics().names().get())


def _described(jvm: Any, admin: Any, settings: KafkaSettings, known: set[str]) -> dict[str, Topic]:
    wanted = meant(settings.topics, known)
    found = admin.describeTopics(_collection(jvm, wanted)).allTopicNames().get()
    return {
        name: Topic(
            id=one if (one := found[name].topicId().toString()) != NO_ID else "",
            partitions=tuple(str(partition.partition()) for partition in found[name].partitions()),
        )
        for name in wanted
    }


def _collection(jvm: Any, values: Iterable[Any]) -> Any:
    collection = jvm.java.util.ArrayList()
    for value in values:
        collection.add(value)
    return collection


def _reason(error: Py4JJavaError) -> str:
    """The first cause of a Java exception, in one line."""
    cause = error.java_exception
    while (deeper := cause.getCause()) is not None:
        cause = deeper
    return " ".join(f"{cause.getClass().getSimpleName()}: {cause.getMessage()}".split())
