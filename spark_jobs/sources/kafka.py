"""Kafka topics as a stream of records."""

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.errors import SourceError
from spark_jobs.contracts.sections import KafkaSettings
from spark_jobs.sources.topics import partitions_of_topics
from spark_jobs.transforms.clock import batch_time

_EARLIEST = -2
"""In place of an offset, Spark's sign for the first record there is."""
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def check_topics(settings: KafkaSettings) -> dict[str, list[str]]:
    """Checks that the brokers answer and have every topic, so that what is wrong is said at once and in one line.

    Returns:
        By topic of the settings, its partitions.

    Raises:
        SourceError: no broker answers, it refuses the user or is not who it must be, or a topic is missing.
    """
    if not settings.bootstrap_servers:
        raise SourceError("no source: give --source DIR, or set kafka.bootstrap_servers to read Kafka")
    known = partitions_of_topics(settings)
    missing = [topic for topic in settings.topics if topic not in known]
    if missing:
        has = ", ".join(sorted(name for name in known if not name.startswith("__"))) or "none"
        raise SourceError(
            f"Kafka at {settings.bootstrap_servers} has no topic {', '.join(missing)} (it has: {has}); "
            "make it (`adloom init` does), or set kafka.topics"
        )
    return {topic: known[topic] for topic in settings.topics}


def starting_offsets(settings: KafkaSettings, begins_at: str) -> str:
    """Where to begin reading: ``begins_at`` (Spark's JSON of offsets), and new partitions from their first record.

    Raises:
        SourceError: see :func:`check_topics`.
    """
    wanted: dict[str, dict[str, int]] = json.loads(begins_at)
    known = check_topics(settings)
    offsets = {
        topic: {partition: wanted.get(topic, {}).get(partition, _EARLIEST) for partition in known[topic]}
        for topic in settings.topics
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
        # Brokers before 0.10 gave records no time, which reads as one before 1970.
        F.when(F.col("timestampType").isin(0, 1), F.col("timestamp")).alias("kafka_time"),
    )
    return taken.select("raw", "source", "ingest_time", F.least("kafka_time", "ingest_time").alias("received_time"))


def _options(settings: KafkaSettings) -> dict[str, str]:
    client = {
        "bootstrap.servers": settings.bootstrap_servers,
        "security.protocol": settings.security_protocol.value,
        **_login(settings),
        **dict(settings.options),
    }
    if settings.ca_file:
        client |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(settings.ca_file)}
    return {
        "subscribe": ",".join(settings.topics),
        "startingOffsets": settings.starting_offsets,
        "maxOffsetsPerTrigger": str(settings.max_offsets_per_trigger),
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        **{f"kafka.{name}": value for name, value in client.items()},
    }


def _login(settings: KafkaSettings) -> dict[str, str]:
    if not settings.security_protocol.has_login:
        return {}
    user, password = (_quoted(text) for text in (settings.username, settings.password.get_secret_value()))
    module = _LOGIN_MODULES[settings.sasl_mechanism]
    return {
        "sasl.mechanism": settings.sasl_mechanism.value,
        "sasl.jaas.config": f"{module} required username={user} password={password};",
    }


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
