"""Kafka topics as a stream of records."""

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.errors import SourceError
from spark_jobs.contracts.kafka import java_options
from spark_jobs.contracts.sections import KafkaSettings
from spark_jobs.sources.topics import names_of_topics, partitions_of_topics
from spark_jobs.transforms.clock import batch_time

_EARLIEST = -2
"""Spark's value, in place of an offset, for the first record that the broker still has."""


def check_topics(spark: SparkSession, settings: KafkaSettings) -> dict[str, list[str]]:
    """Checks that the brokers answer and have every topic, so that a job fails at once and with one line.

    Returns:
        By topic of the settings, its partitions.

    Raises:
        SourceError: no broker answers, it refuses the client, its certificate is not trusted, or a topic is missing.
    """
    if not settings.bootstrap_servers:
        raise SourceError("no source: give --source DIR, or set kafka.bootstrap_servers to read Kafka")
    jvm = spark.sparkContext._jvm  # noqa: SLF001 there is no public API for the JVM
    known = partitions_of_topics(jvm, settings)
    if missing := [topic for topic in settings.topics if topic not in known]:
        has = ", ".join(names_of_topics(jvm, settings)) or "none"
        raise SourceError(
            f"Kafka at {settings.bootstrap_servers} has no topic {', '.join(missing)} (it has: {has}); "
            "create it (`adloom init` does), or set kafka.topics"
        )
    return known


def starting_offsets(partitions: dict[str, list[str]], begins_at: str) -> str:
    """Where to start reading: ``begins_at`` (Spark's JSON of offsets), and new partitions at their first record.

    Args:
        partitions: of each topic, as :func:`check_topics` returns them.
        begins_at: offsets by topic and partition.
    """
    wanted: dict[str, dict[str, int]] = json.loads(begins_at)
    offsets = {
        topic: {partition: wanted.get(topic, {}).get(partition, _EARLIEST) for partition in numbers}
        for topic, numbers in partitions.items()
    }
    return json.dumps(offsets)


def read_kafka(spark: SparkSession, settings: KafkaSettings) -> DataFrame:
    """Streams the records of the topics, each once, in the order of each partition.

    Returns:
        ``raw`` (string: the record's value; empty where it has none), ``source`` (string,
        ``<topic>/<partition>/<offset>``), ``ingest_time`` (timestamp: when the batch was planned; a replayed batch
        keeps it), ``received_time`` (timestamp: the record's own or ``ingest_time``, whichever is earlier).

    Source: Spark's `Kafka integration guide <https://spark.apache.org/docs/latest/streaming/>`_.
    """
    records = spark.readStream.format("kafka").options(**_options(settings)).load()
    place = F.concat_ws("/", "topic", F.col("partition").cast("string"), F.col("offset").cast("string"))
    taken = records.select(
        F.coalesce(F.col("value").cast("string"), F.lit("")).alias("raw"),
        place.alias("source"),
        batch_time().alias("ingest_time"),
        # Records written by brokers before 0.10 have no timestamp: it reads as a time before 1970.
        F.when(F.col("timestampType").isin(0, 1), F.col("timestamp")).alias("kafka_time"),
    )
    return taken.select("raw", "source", "ingest_time", F.least("kafka_time", "ingest_time").alias("received_time"))


def _options(settings: KafkaSettings) -> dict[str, str]:
    return {
        "subscribe": ",".join(settings.topics),
        "startingOffsets": settings.starting_offsets,
        "maxOffsetsPerTrigger": str(settings.max_offsets_per_trigger),
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        **{f"kafka.{name}": value for name, value in java_options(settings).items()},
    }
