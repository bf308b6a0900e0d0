"""JSON Lines files as a stream of records."""

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.sections import IngestSettings
from spark_jobs.errors import SourceError
from spark_jobs.lake.store.files import LOCAL, hadoop_uri
from spark_jobs.spark.columns import batch_time

_OF_PATTERNS = "{}[]*?,\\"
PATTERNS = ("*.jsonl", "*.jsonl.gz", "*.ndjson", "*.ndjson.gz")


def list_files(folder: Path, more: Sequence[str] = ()) -> list[Path]:
    """The input files of ``folder`` in reading order: by modification time, then name.

    Args:
        folder: with the files.
        more: patterns of names besides those of JSON Lines.

    Raises:
        SourceError: there is no such folder, it has no input files, or Spark cannot read it because of its name.
    """
    patterns = (*PATTERNS, *more)
    if found := [character for character in _OF_PATTERNS if character in str(folder.resolve())]:
        raise SourceError(f"source {folder}: Spark would take {found[0]} for a part of a pattern; rename the folder")
    if not folder.is_dir():
        raise SourceError(f"source {folder} is not a folder; give the folder with the files of the events")
    files = [file for pattern in patterns for file in folder.glob(pattern) if not file.name.startswith((".", "_"))]
    if not files:
        raise SourceError(f"source {folder} has no file named {', '.join(patterns)}; give the folder of the events")
    times: dict[Path, int] = {}
    for file in files:
        with suppress(FileNotFoundError):  # somebody moves it away
            times[file] = file.stat().st_mtime_ns
    return sorted(times, key=lambda file: (times[file], file.name))


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


def read_files(spark: SparkSession, folders: Mapping[Path, str | None], settings: IngestSettings) -> DataFrame:
    """Streams the lines of the files in ``folders``, each file once, in the order of :func:`list_files`.

    A file is identified by its path: one that grows after it was read is not read again.

    Args:
        spark: the session.
        folders: each with the origin that its records get; null: any source may mean them.
        settings: how much a batch takes.

    Returns:
        ``raw`` (string, without its line ending), ``source`` (string, ``<file>#bytes=<from>-<to>``: the block of the
        file that held it), ``origin`` (string), ``ingest_time`` and ``received_time`` (timestamp: both when the batch
        was planned; a replayed batch keeps it).
    """
    lines = (
        spark.readStream.format("text")
        # By default Spark also splits at "\r", which JSON allows between tokens.
        .option("lineSep", "\n")
        .option("pathGlobFilter", "{" + ",".join(PATTERNS) + "}")
        .option("maxBytesPerTrigger", settings.max_bytes_per_batch)
        # By default Spark silently skips files a week older than the newest one seen.
        .option("maxFileAge", "36500d")
        .load(one_of(folders))
    )
    block = F.struct("_metadata.file_path", "_metadata.file_block_start", "_metadata.file_block_length")
    start, length = block["file_block_start"], block["file_block_length"]
    return lines.select(
        F.col("value").alias("raw"),
        F.concat(block["file_path"], F.lit("#bytes="), start, F.lit("-"), start + length).alias("source"),
        _origin(block["file_path"], folders).alias("origin"),
        batch_time().alias("ingest_time"),
    ).withColumn("received_time", F.col("ingest_time"))


def one_of(folders: Iterable[Path]) -> str:
    """``folders`` as one path for Spark, which takes a pattern.

    A pattern also for a single folder: Spark demands that all files lie in a folder that it is given by name, those of
    batches before the last start included, so that a lake could never be fed from another folder.
    """
    names = [hadoop_uri(folder.resolve()).removeprefix(f"{LOCAL}/") for folder in folders]
    return f"{LOCAL}/{{{','.join(names)}}}"


def _origin(file: Column, folders: Mapping[Path, str | None]) -> Column:
    """The origin of the records of ``file``, the URI of a file in one of ``folders``."""
    if len(set(folders.values())) == 1:
        return F.lit(next(iter(folders.values()))).cast("string")
    parent = F.regexp_replace(F.url_decode(F.regexp_replace(file, r"\+", "%2B")), "/[^/]*$", "")
    chain = F.when(F.lit(False), F.lit(""))
    for folder, origin in folders.items():
        chain = chain.when(F.regexp_replace(parent, "^file:/+", "/") == str(folder.resolve()), F.lit(origin))
    return chain
