"""Kafka's topics: whether they are there, and making them."""

from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from spark_jobs.contracts.errors import SourceError
from spark_jobs.contracts.kafka import client_options
from spark_jobs.contracts.sections import KafkaSettings

_ANSWER_S = 15


def partitions_of_topics(settings: KafkaSettings) -> dict[str, list[str]]:
    """By name of each topic that the brokers have, its partitions.

    Raises:
        SourceError: no broker answers, or it refuses the user or is not who it must be.
    """
    return _list(settings, *_connect(settings))


def prepare_topics(settings: KafkaSettings, partitions: int) -> Iterator[str]:
    """Makes those topics of the settings that are missing; leaves alone what is there.

    Args:
        settings: of Kafka.
        partitions: of a topic that is made. It has as many replicas as the brokers are set to give.

    Yields:
        A line for each topic.

    Raises:
        SourceError: see :func:`partitions_of_topics`, or a topic cannot be made.
    """
    client, told = _connect(settings)
    known = _list(settings, client, told)
    for topic in settings.topics:
        if topic in known:
            yield f"topic {topic}: is there, with {len(known[topic])} partitions"
            continue
        try:
            client.create_topics([NewTopic(topic, partitions)])[topic].result(timeout=_ANSWER_S)
        except KafkaException as error:
            raise SourceError(
                f"topic {topic} cannot be made at {settings.bootstrap_servers}: {error.args[0].str()}"
            ) from error
        yield f"topic {topic}: made, with {partitions} partitions"


def _connect(settings: KafkaSettings) -> tuple[Any, list[str]]:
    """A client, and what it tells of troubles from now on."""
    told: list[str] = []
    quiet = {"error_cb": lambda error: told.append(str(error.str())), "log_level": 0}
    return AdminClient({**client_options(settings), **quiet}), told


def _list(settings: KafkaSettings, client: Any, told: list[str]) -> dict[str, list[str]]:
    try:
        known = client.list_topics(timeout=_ANSWER_S).topics
    except KafkaException as error:
        reason = told[0] if told else error.args[0].str()
        raise SourceError(
            f"Kafka at {settings.bootstrap_servers} does not answer as {settings.security_protocol}: {reason}; "
            "check kafka.bootstrap_servers, kafka.security_protocol, kafka.ca_file and the user"
        ) from error
    return {name: [str(partition) for partition in topic.partitions] for name, topic in known.items()}
