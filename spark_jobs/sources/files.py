"""JSON Lines files as a stream of records."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts.errors import SourceError
from spark_jobs.contracts.files import hadoop_uri
from spark_jobs.contracts.sections import IngestSettings
from spark_jobs.transforms.clock import batch_time

PATTERNS = ("*.jsonl", "*.jsonl.gz", "*.ndjson", "*.ndjson.gz")


def list_files(folder: Path) -> list[Path]:
    """The input files of ``folder`` in reading order: by modification time, then name.

    Raises:
        SourceError: there is no such folder, or it has no input files.
    """
    if not folder.is_dir():
        raise SourceError(f"source {folder} is not a folder; give the folder with the JSON Lines files")
    files = [file for pattern in PATTERNS for file in folder.glob(pattern) if not file.name.startswith((".", "_"))]
    if not files:
        raise SourceError(f"source {folder} has no file named {', '.join(PATTERNS)}; give the folder of the events")
    return sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))


def open_file(file: Path) -> BinaryIO:
    """Opens ``file``, one of :func:`list_files`, decompressing it if needed."""
    return cast("BinaryIO", gzip.open(file)) if file.suffix == ".gz" else file.open("rb")


def read_records(folder: Path) -> Iterator[bytes]:
    """The non-blank lines of the files in ``folder``, in the order of :func:`list_files`, without line endings.

    Raises:
        SourceError: see :func:`list_files`.
    """
    for file in list_files(folder):
        with open_file(file) as lines:
            yield from (line for line in (raw.rstrip(b"\r\n") for raw in lines) if line.strip())


def read_files(spark: SparkSession, folder: Path, settings: IngestSettings) -> DataFrame:
    """Streams the records of the files in ``folder``, each file once, in the order of :func:`list_files`.

    A file is identified by its path: one that grows after it was read is not read again.

    Returns:
        ``raw`` (string, without its line ending), ``source`` (string, ``<file>#bytes=<from>-<to>``: the block of the
        file that held it), ``ingest_time`` and ``received_time`` (timestamp: both when the batch was planned; a
        replayed batch keeps it).

    Raises:
        SourceError: see :func:`list_files`.
    """
    list_files(folder)
    lines = (
        spark.readStream.format("text")
        # By default Spark also splits at "\r", which JSON allows between tokens.
        .option("lineSep", "\n")
        .option("pathGlobFilter", "{" + ",".join(PATTERNS) + "}")
        .option("maxBytesPerTrigger", settings.max_bytes_per_batch)
        # By default Spark silently skips files a week older than the newest one seen.
        .option("maxFileAge", "36500d")
        .load(hadoop_uri(folder.resolve()))
    )
    block = F.struct("_metadata.file_path", "_metadata.file_block_start", "_metadata.file_block_length")
    start, length = block["file_block_start"], block["file_block_length"]
    return lines.select(
        F.col("value").alias("raw"),
        F.concat(block["file_path"], F.lit("#bytes="), start, F.lit("-"), start + length).alias("source"),
        batch_time().alias("ingest_time"),
    ).withColumn("received_time", F.col("ingest_time"))
