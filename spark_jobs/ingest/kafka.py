"""Kafka topics as a stream of records."""

import json
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.kafka import reader_options
from spark_jobs.config.sections import KafkaSettings
from spark_jobs.config.topics import is_pattern, regex_of
from spark_jobs.contract.record_places import RECEIVED_META
from spark_jobs.errors import SourceError
from spark_jobs.ingest.decode import comes_from_topics, decode, raw_text
from spark_jobs.ingest.meta import kafka_time, of_kafka
from spark_jobs.ingest.topics import Topic, require_topics
from spark_jobs.spark.columns import batch_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spark_jobs.formats.decoding import Decoder

_ALL_JSON: "Mapping[str, Decoder]" = MappingProxyType({})
_EARLIEST = -2
"""Spark's value, in place of an offset, for the first record that the broker still has."""


def check_topics(spark: SparkSession, settings: KafkaSettings) -> dict[str, Topic]:
    """Checks that the brokers answer and have every topic, so that a job fails at once and with one line.

    Returns:
        By name, each topic of the settings.

    Raises:
        SourceError: no broker answers, it refuses the client, its certificate is not trusted, or a topic is missing.
    """
    if not settings.bootstrap_servers:
        raise SourceError("no source: give --source DIR, or set kafka.bootstrap_servers to read Kafka")
    jvm = spark.sparkContext._jvm  # noqa: SLF001 there is no public API for the JVM
    return require_topics(jvm, settings)


def starting_offsets(topics: "Mapping[str, Topic]", begins_at: str) -> str:
    """Where to start reading: ``begins_at`` (Spark's JSON of offsets), and new partitions at their first record.

    Args:
        topics: as :func:`check_topics` returns them.
        begins_at: offsets by topic and partition.
    """
    wanted: dict[str, dict[str, int]] = json.loads(begins_at)
    offsets = {
        name: {partition: wanted.get(name, {}).get(partition, _EARLIEST) for partition in topic.partitions}
        for name, topic in topics.items()
    }
    return json.dumps(offsets)


def read_kafka(
    spark: SparkSession, settings: KafkaSettings, decoders: "Mapping[str, Decoder]" = _ALL_JSON
) -> DataFrame:
    """Streams the records of the topics, each once, in the order of each partition.

    Args:
        spark: the session.
        settings: the brokers and topics.
        decoders: by topic, what decodes its records, if they are not JSON.

    Returns:
        ``raw`` (string: the record's value, of topics with a decoder as ISO-8859-1; empty where it has none),
        ``source`` (string, ``<topic>/<partition>/<offset>``), ``origin`` (string: the topic), ``ingest_time``
        (timestamp: when the batch was planned; a replayed batch keeps it), ``received_time`` (timestamp: the record's
        own or ``ingest_time``, whichever is earlier; one from before there was Kafka does not count), ``received_meta``
        (string: its metadata, see :mod:`spark_jobs.ingest.meta`); with decoders also what
        :func:`spark_jobs.ingest.decode.decode` adds.

    Source: Spark's `Kafka integration guide <https://spark.apache.org/docs/latest/streaming/>`_.
    """
    records = spark.readStream.format("kafka").options(**_options(settings)).load()
    place = F.concat_ws("/", "topic", F.col("partition").cast("string"), F.col("offset").cast("string"))
    taken = records.select(
        "value",
        place.alias("source"),
        F.col("topic").alias("origin"),
        batch_time().alias("ingest_time"),
        "key",
        "headers",
        kafka_time(F.col("timestamp")).alias("kafka_time"),
    )
    meta = of_kafka(F.col("source"), F.col("key"), F.col("headers"), F.col("kafka_time"))
    times = taken.withColumns({"received_time": F.least("kafka_time", "ingest_time"), RECEIVED_META: meta})
    times = times.drop("kafka_time", "key", "headers")
    if not decoders:
        return times.select(F.coalesce(F.col("value").cast("string"), F.lit("")).alias("raw"), *times.columns[1:])
    decoded = decode(times, decoders)
    raw = F.when(comes_from_topics(decoders), raw_text(F.col("value"))).otherwise(F.col("value").cast("string"))
    return decoded.select(F.coalesce(raw, F.lit("")).alias("raw"), *decoded.columns[1:])


def _subscribed(topics: "Sequence[str]") -> dict[str, str]:
    # A running query finds new topics of a pattern, and reads them from their beginning.
    return {"subscribePattern": regex_of(topics)} if any(map(is_pattern, topics)) else {"subscribe": ",".join(topics)}


def _options(settings: KafkaSettings) -> dict[str, str]:
    return {
        **_subscribed(settings.topics),
        "includeHeaders": "true",
        "startingOffsets": settings.starting_offsets,
        "maxOffsetsPerTrigger": str(settings.max_offsets_per_trigger),
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        **{f"kafka.{name}": value for name, value in reader_options(settings).items()},
    }
