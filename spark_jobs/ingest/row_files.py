"""Files of rows (CSV, Avro, Parquet) as a stream of records.

Spark finds the files, and Python workers read them. Spark's own readers need one schema for all files when a query
starts, so a column that comes later would be lost until a restart; they know no row numbers, and one damaged file fails
the job or disappears. Here each file is read by its own schema, and what cannot be read becomes a record with a
verdict.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.encoding import ROW_FILES, format_of_file
from spark_jobs.config.sections import IngestSettings
from spark_jobs.contract.events import RECORD_TOO_LARGE
from spark_jobs.ingest.decode import REASON, TEXT, VERDICT
from spark_jobs.ingest.files import one_of
from spark_jobs.lake.store.files import LOCAL
from spark_jobs.spark.columns import batch_time

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_jobs.formats.file_rows import FileRow
    from spark_jobs.formats.sources import Readers

_BATCH_ROWS = 4096
_BATCH_CHARACTERS = 16 * 1024 * 1024
_FOUND = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
_READ = (
    f"raw STRING, {TEXT} STRING, source STRING, origin STRING, {VERDICT} STRING, {REASON} STRING, batch_time TIMESTAMP"
)


@dataclass(frozen=True)
class RowFolder:
    """A folder of files that are not JSON Lines.

    Attributes:
        path: of the folder, visible on all machines of a cluster.
        readers: how its files are read, by their format, and the origin of their records; None: any source may mean
            them.
    """

    path: Path
    readers: "Readers"


def read_row_files(spark: SparkSession, folders: Sequence[RowFolder], settings: IngestSettings) -> DataFrame:
    """Streams the rows of the files in ``folders``, each file once and whole, by modification time, then name.

    A file is read by one task, block by block, so it may be larger than a worker's memory.

    Args:
        spark: the session.
        folders: all that are read; files of formats that their folder has no reader for are left out.
        settings: how much a batch takes, and how large a row may be.

    Returns:
        ``raw`` (string: the row's JSON; of what could not be decoded, its bytes as ISO-8859-1, or the reason where no
        bytes belong to a row), ``text`` (string: the row's JSON, or null), ``source`` (string: ``<file>#row=<n>``,
        counted from 0; ``#rows=`` or ``#bytes=`` of what could not be read), ``origin`` (string: as the folder says),
        ``decode_verdict`` and ``decode_reason`` (strings, null if it was read), ``ingest_time`` and ``received_time``
        (timestamps: both when the batch was planned; a replayed batch keeps it).
    """
    files = (
        spark.readStream.format("binaryFile")
        .schema(_FOUND)
        .option("pathGlobFilter", "{" + ",".join(ROW_FILES) + "}")
        .option("maxBytesPerTrigger", settings.max_bytes_per_batch)
        # By default Spark silently skips files a week older than the newest one seen.
        .option("maxFileAge", "36500d")
        .load(one_of(folder.path for folder in folders))
        # Without the column of their content Spark does not open the files.
        .select("path", batch_time().alias("batch_time"))
    )
    by_path = {str(folder.path.resolve()): folder for folder in folders}

    def read(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        for batch in batches:
            for path, time in zip(batch.column("path").to_pylist(), batch.column("batch_time"), strict=True):
                yield from _batches(path, time, by_path, settings.max_record_bytes)

    rows = files.mapInArrow(read, _READ)
    times = {"ingest_time": F.col("batch_time"), "received_time": F.col("batch_time")}
    return rows.withColumns(times).drop("batch_time")


def _batches(
    path: str, time: "pa.Scalar", folders: Mapping[str, RowFolder], max_bytes: int
) -> Iterator["pa.RecordBatch"]:
    """The rows of the file in batches that are limited in rows and characters."""
    place = Path(f"/{path.removeprefix('file:').lstrip('/')}")
    # Spark also finds what lies in folders named key=value below; nobody asked for these files.
    folder = folders.get(str(place.parent))
    reader, origin = folder.readers.get(format_of_file(place.name), (None, None)) if folder else (None, None)
    rows, characters = list["FileRow"](), 0
    for row in reader.rows(place) if reader else ():
        rows.append(_limited(row, max_bytes))
        characters += len(row.text or row.raw)
        if len(rows) >= _BATCH_ROWS or characters > _BATCH_CHARACTERS:
            yield _batch(place, time, rows, origin)
            rows, characters = [], 0
    yield _batch(place, time, rows, origin)


def _limited(row: "FileRow", max_bytes: int) -> "FileRow":
    """``row``, with a verdict if it is larger than ``max_bytes``."""
    # A character has at most four bytes.
    if not row.text or len(row.text) * 4 <= max_bytes or (size := len(row.text.encode())) <= max_bytes:
        return row
    return row._replace(verdict=RECORD_TOO_LARGE, reason=f"the row has {size} bytes, more than {max_bytes}")


def _batch(place: Path, time: "pa.Scalar", rows: list["FileRow"], origin: str | None) -> "pa.RecordBatch":
    import pyarrow as pa  # noqa: PLC0415 in the worker

    texts = {
        "raw": [row.text or row.raw.decode("iso-8859-1") or row.reason for row in rows],
        TEXT: [None if row.verdict else row.text for row in rows],
        "source": [f"{LOCAL}{place}#{row.place}" for row in rows],
        "origin": [origin] * len(rows),
        VERDICT: [row.verdict for row in rows],
        REASON: [row.reason for row in rows],
    }
    arrays = [pa.array(values, pa.string()) for values in texts.values()]
    return pa.RecordBatch.from_arrays([*arrays, pa.repeat(time, len(rows))], [*texts, "batch_time"])
