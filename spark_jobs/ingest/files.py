"""Files as a stream of records.

Spark finds the files, and Python workers read them. Spark's own readers need one schema for all files when a query
starts, so a column that comes later would be lost until a restart; they know no places of records within a file, and
one damaged file fails the job or disappears. Here each file is read by its own form, and what cannot be read becomes a
record with a verdict.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.folders import OBJECTS, Folder
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import INVALID_ENCODING, RECORD_TOO_LARGE
from spark_jobs.formats.file_rows import FileRow
from spark_jobs.formats.sources import FileSet, set_of
from spark_jobs.ingest.decode import REASON, TEXT, VERDICT
from spark_jobs.ingest.input_files import cannot_be_opened, input_file, names_of, place_of
from spark_jobs.lake.store.files import LOCAL
from spark_jobs.spark.columns import batch_time

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_jobs.config.sections import S3Settings
    from spark_jobs.formats.json_files import Block

_BATCH_ROWS: Final = 4096
_BATCH_CHARACTERS: Final = 16 * 1024 * 1024
_LEAST_BLOCK, _LARGEST_BLOCK = 4 * 1024 * 1024, 32 * 1024 * 1024
"""Bytes. Files of lines are divided, so that all tasks read a large one; each block opens its file."""
_FOUND: Final = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
_READ: Final = (
    f"raw STRING, {TEXT} STRING, source STRING, origin STRING, {VERDICT} STRING, {REASON} STRING, batch_time TIMESTAMP"
)


def read_files(spark: SparkSession, sets: Sequence[FileSet], settings: Settings) -> DataFrame:
    """Streams the records of the files of ``sets``, each file once, by modification time, then path.

    A file is identified by its path: one that grows after it was read is not read again. It is read piece by piece, so
    it may be larger than a worker's memory.

    Args:
        spark: the session.
        sets: the files, and how they are read; of a file that several have, the first counts.
        settings: how much a batch takes, how large a record may be, and the object store.

    Returns:
        ``raw`` (string: of JSON the value as it is, without its line ending; of other formats the row's JSON; of what
        could not be decoded, its bytes as ISO-8859-1, or the reason where no bytes belong to a row), ``text`` (string:
        the row's JSON, or null), ``source`` (string: ``<file>#bytes=<from>-<to>`` of JSON and of what could not be
        read, else ``<file>#row=<n>``, counted from 0), ``origin`` (string: as the set says), ``decode_verdict`` and
        ``decode_reason`` (strings, null if it was read), ``ingest_time`` and ``received_time`` (timestamps: both when
        the batch was planned; a replayed batch keeps it).
    """
    files = (
        spark.readStream.format("binaryFile")
        .schema(_FOUND)
        .option("pathGlobFilter", f"{{{','.join(names_of(sets))}}}")
        .option("recursiveFileLookup", str(any("/" in name for one in sets for name in one.patterns)).lower())
        .option("maxBytesPerTrigger", settings.ingest.max_bytes_per_batch)
        # By default Spark silently skips files a week older than the newest one seen.
        .option("maxFileAge", "36500d")
        .load(_one_of(dict.fromkeys(one.folder for one in sets)))
        # Without the column of their content Spark does not open the files.
        .select("path", "length", batch_time().alias("batch_time"))
    )
    tasks = spark.sparkContext.defaultParallelism
    # Spark puts all blocks of a file into one task.
    blocks = in_blocks(files, tasks).repartition(tasks)
    most, s3 = settings.ingest.max_record_bytes, settings.s3

    def read(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        from spark_jobs.formats.json_files import Block  # noqa: PLC0415 in the worker

        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("path", "start", "size"))
            for path, start, size, time in zip(*columns, batch.column("batch_time"), strict=True):
                yield from _batches(_location(path), Block(start, start + size), time, sets, most, s3)

    rows = blocks.mapInArrow(read, _READ)
    times = {"ingest_time": F.col("batch_time"), "received_time": F.col("batch_time")}
    return rows.withColumns(times).drop("batch_time")


def in_blocks(files: DataFrame, tasks: int) -> DataFrame:
    """A row with the first byte, ``start``, and ``size`` of each block of ``files``, which have a ``length``.

    A file is divided among all ``tasks``.
    """
    share = F.ceil(F.col("length") / tasks)
    size = F.least(F.greatest(share, F.lit(_LEAST_BLOCK)), F.lit(_LARGEST_BLOCK)).cast("bigint")
    starts = F.sequence(F.lit(0), F.greatest(F.col("length") - 1, F.lit(0)), size)
    return files.withColumn("size", size).withColumn("start", F.explode_outer(starts)).drop("length")


def _one_of(folders: Iterable[Folder]) -> str:
    """``folders`` as one path for Spark, which takes a pattern.

    A pattern also for a single folder: Spark demands that all files lie in a folder that it is given by name, those of
    batches before the last start included, so that a lake could never be fed from another folder.
    """
    names = [folder.location for folder in folders]
    if not names[0].startswith(OBJECTS):
        return f"{LOCAL}/{{{','.join(name.removeprefix('/') for name in names)}}}"
    bucket, _, _ = names[0].removeprefix(OBJECTS).partition("/")
    prefixes = [name.removeprefix(f"{OBJECTS}{bucket}").strip("/") for name in names]
    return f"{OBJECTS}{bucket}/{{{','.join(prefixes)}}}" if all(prefixes) else f"{OBJECTS}{bucket}/"


def _location(path: str) -> str:
    """The location of a file that Spark means by ``path``."""
    return f"/{path.removeprefix('file:').lstrip('/')}" if path.startswith("file:") else path


def _batches(
    location: str, block: "Block", time: "pa.Scalar", sets: Sequence[FileSet], max_bytes: int, s3: "S3Settings"
) -> Iterator["pa.RecordBatch"]:
    """The rows of a block of the file in batches that are limited in rows and characters."""
    # Spark also finds files that no source means, as in folders named key=value.
    of = set_of(sets, location)
    if of is None:
        return
    rows, characters = list[FileRow](), 0
    for row in _rows(location, block, of, s3):
        rows.append(_limited(row, max_bytes) if row.text else row)
        characters += len(row.text or row.raw)
        if len(rows) >= _BATCH_ROWS or characters > _BATCH_CHARACTERS:
            yield _batch(location, time, rows, of)
            rows, characters = [], 0
    yield _batch(location, time, rows, of)


def _rows(location: str, block: "Block", of: FileSet, s3: "S3Settings") -> Iterator[FileRow]:
    try:
        yield from of.reader.rows(input_file(location, s3), block)
    except OSError as error:
        if not cannot_be_opened(location, error):
            raise
        if not block.start:
            reason = f"the file cannot be opened ({error.strerror}); once it can, give it another name"
            yield FileRow("bytes=0-", None, INVALID_ENCODING, reason)


def _limited(row: FileRow, max_bytes: int) -> FileRow:
    """``row``, with a verdict if it is larger than ``max_bytes``."""
    # A character has at most four bytes.
    if not row.text or len(row.text) * 4 <= max_bytes or (size := len(row.text.encode())) <= max_bytes:
        return row
    return row._replace(verdict=RECORD_TOO_LARGE, reason=f"the row has {size} bytes, more than {max_bytes}")


def _batch(location: str, time: "pa.Scalar", rows: list[FileRow], of: FileSet) -> "pa.RecordBatch":
    import pyarrow as pa  # noqa: PLC0415 in the worker

    place, none = f"{place_of(location, of.reader)}#", pa.nulls(len(rows), pa.string())
    is_json = not any(row.text or row.verdict for row in rows)
    raw = [row.raw for row in rows] if is_json else [_raw(row) for row in rows]
    arrays = {
        # Not as text: JSON is judged by its bytes, which need not be UTF-8.
        "raw": pa.array(raw, pa.binary()).view(pa.string()),
        TEXT: none if is_json else pa.array([None if row.verdict else row.text for row in rows], pa.string()),
        "source": pa.array([place + row.place for row in rows], pa.string()),
        "origin": pa.array([of.origin] * len(rows), pa.string()),
        VERDICT: none if is_json else pa.array([row.verdict for row in rows], pa.string()),
        REASON: none if is_json else pa.array([row.reason for row in rows], pa.string()),
        "batch_time": pa.repeat(time, len(rows)),
    }
    return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))


def _raw(row: FileRow) -> bytes:
    if row.text:
        return row.text.encode()
    if row.verdict:
        return (row.raw.decode("iso-8859-1") or row.reason or "").encode()
    return row.raw
