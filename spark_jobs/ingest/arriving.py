"""Records that arrive from outside, as one stream: from Kafka, or from folders of files."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config.folders import regex_of
from spark_jobs.config.settings import Settings
from spark_jobs.formats.schema_store import SchemaStore
from spark_jobs.formats.sources import decoders
from spark_jobs.ingest.files import read_files
from spark_jobs.ingest.input_files import files_of, sets_of
from spark_jobs.ingest.kafka import read_kafka, starting_offsets
from spark_jobs.ingest.topics import Topic
from spark_jobs.lake.store.files import escaped


def arriving_files(spark: SparkSession, settings: Settings, source: str | Path | None) -> DataFrame:
    """Streams the records of all files.

    Args:
        spark: the session.
        settings: the sources.
        source: a folder in place of those of the sources; any source may mean its records.

    Returns:
        See :func:`spark_jobs.ingest.files.read_files`.

    Raises:
        SourceError: a folder does not exist, or has no such files.
        SettingsError: a schema file cannot be read.
    """
    files_of(settings, source)
    return read_files(spark, sets_of(settings, source), settings)


def places_of_files(settings: Settings) -> dict[str, str]:
    """By regular expression of Java for the place of a file, as bronze has it, the origin of its records."""
    return {
        f"^(?:file:/+)?{_as_in_bronze(one.folder.location.strip('/'))}/{_regex(pattern)}$": one.origin_of_files
        for one in settings.sources.values()
        if one.folder
        for pattern in one.names
    }


def _regex(pattern: str) -> str:
    return regex_of(pattern, _as_in_bronze)


def _as_in_bronze(text: str) -> str:
    """The regular expression for ``text`` in the place of a file: of JSON, bronze has the URI."""
    return "".join(rf"(?:\Q{one}\E|{escaped(one)})" if escaped(one) != one else rf"\Q{one}\E" for one in text)


def arriving_in_kafka(
    spark: SparkSession,
    settings: Settings,
    schemas: SchemaStore | None,
    topics: Mapping[str, Topic],
    begins_at: str,
) -> DataFrame:
    """Streams the records of the topics.

    Args:
        spark: the session.
        settings: the brokers and sources.
        schemas: those of the registry; None without one.
        topics: as :func:`spark_jobs.ingest.kafka.check_topics` returns them.
        begins_at: where a new checkpoint starts, as Spark's JSON of offsets; empty: as the settings say.

    Returns:
        See :func:`spark_jobs.ingest.kafka.read_kafka`.

    Raises:
        SettingsError: a schema file cannot be read, or is invalid.
    """
    kafka = settings.kafka_of_sources
    if begins_at:
        kafka = kafka.model_copy(update={"starting_offsets": starting_offsets(topics, begins_at)})
    return read_kafka(spark, kafka, decoders(settings, schemas))
