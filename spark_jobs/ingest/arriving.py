"""Records that arrive from outside, as one stream: from Kafka, or from folders of files."""

import re
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config.encoding import ROW_FILES, RecordFormat, format_of_file
from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import origin_of_files
from spark_jobs.formats.schema_store import SchemaStore
from spark_jobs.formats.sources import decoders, readers
from spark_jobs.ingest.files import PATTERNS, list_files, read_files
from spark_jobs.ingest.kafka import read_kafka, starting_offsets
from spark_jobs.ingest.row_files import RowFolder, read_row_files
from spark_jobs.ingest.topics import Topic
from spark_jobs.lake.store.files import escaped


def folders_of(settings: Settings, source: Path | None) -> tuple[Path, ...]:
    """The folders to read: ``source``, or else those of the sources in the settings; none: Kafka is read."""
    return (source,) if source else settings.paths


def files_of(settings: Settings, source: Path | None) -> list[Path]:
    """The files that are there now, in reading order for each folder.

    Raises:
        SourceError: a folder does not exist, or has no such files.
    """
    more = ROW_FILES if settings.has_row_files else ()
    return [file for folder in folders_of(settings, source) for file in list_files(folder, more)]


def arriving_files(spark: SparkSession, settings: Settings, source: Path | None) -> DataFrame:
    """Streams the records of all files.

    Args:
        spark: the session.
        settings: the sources.
        source: a folder in place of those of the sources; any source may mean its records.

    Returns:
        The columns of :func:`spark_jobs.ingest.files.read_files`; and if a source means other files, those of
        :func:`spark_jobs.ingest.row_files.read_row_files`.

    Raises:
        SourceError: a folder does not exist, or has no such files.
        SettingsError: a schema file cannot be read.
    """
    files_of(settings, source)
    folders = folders_of(settings, source)
    origins = {folder: None if source else origin_of_files(folder, RecordFormat.JSON) for folder in folders}
    lines = read_files(spark, origins, settings.ingest)
    if not settings.has_row_files:
        return lines
    # Both streams are there whatever the folders hold: a checkpoint has positions in a fixed number of streams.
    rows = [RowFolder(folder, readers(settings, None if source else folder)) for folder in folders]
    return lines.unionByName(read_row_files(spark, rows, settings.ingest), allowMissingColumns=True)


def places_of_files(settings: Settings) -> dict[str, str]:
    """By regular expression of Java for the place of a file, as bronze has it, the origin of its records."""
    found = {}
    for source in settings.sources.values():
        if source.path:
            kind = RecordFormat.JSON if source.format.is_json else source.format
            folder = str(source.path.resolve()).strip("/")
            # Of JSON Lines, bronze has the URI of the file.
            folders = "|".join(rf"\Q{name}\E" for name in dict.fromkeys((folder, escaped(folder))))
            found[f"^file:/+(?:{folders})/[^/]*(?:{_endings(kind)})$"] = origin_of_files(source.path, kind)
    return found


def _endings(kind: RecordFormat) -> str:
    patterns = PATTERNS if kind is RecordFormat.JSON else [one for one in ROW_FILES if format_of_file(one) is kind]
    return "|".join(re.escape(pattern.removeprefix("*")) for pattern in patterns)


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
