"""Files of JSON Lines that were written to after they were read.

A file is read once, whole, and what is added later is never read. Bronze shows the size that it had: the place of a
record ends where its block of the file ended::

    a.jsonl   {"event_id": "1"}⏎{"event_i │ d": "2"}⏎     source: file:///in/a.jsonl#bytes=0-28, and now it has 40

Of files of rows (CSV, Avro, Parquet) bronze has only the numbers of the rows, so they are not looked at.
"""

import gzip
import re
from collections.abc import Mapping
from datetime import timedelta
from heapq import nlargest
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.config.durations import time_of_us
from spark_jobs.config.sections import S3Settings
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.ingest.files_read import FilesRead, path_of
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.store.arrow import row_store
from spark_jobs.lake.table_rows import table_rows
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_in_use, checkpoint_key

_NEWEST = 10_000
"""How many of the files that were read last are looked at."""
_SKEW = timedelta(days=1)
"""How far the clock of the disk may be ahead of that of the jobs."""
_LOOKED_AT = 1 << 16
_BLOCK = re.compile(r"(.*)#bytes=\d+-(\d+)")


class ChangedFile(NamedTuple):
    """A file, with its size in bytes when it was read, and now."""

    path: Path
    read: int
    now: int


def changed_files(lake: Lake, s3: S3Settings) -> list[ChangedFile]:
    """The input files of ``lake`` that have another size than when they were read, the last modified first.

    Files that this machine does not see are left out. Bronze is read only if a file was modified since.

    Raises:
        LakeError: a log has a gap.
        SettingsError: there are no keys of the object store.
        OSError: a file cannot be read.
    """
    note = last_note(lake, INGEST)
    # The first stream is that of JSON Lines; positions in Kafka have no such number.
    reached = [one for one in (note.reached[:1] if note else ()) if isinstance(one, dict) and "logOffset" in one]
    read = FilesRead(lake, checkpoint_key(INGEST, checkpoint_in_use(lake, INGEST))).until(reached)
    modified = _modified_since(read)
    if not modified:
        return []
    sizes = _sizes_when_read(lake, s3, {path: read[path] for path in modified})
    found = [ChangedFile(path, sizes.get(path, 0), now) for path, now in modified.items()]
    # Without a record in bronze a file was empty or blank, of whatever size.
    return [one for one in found if (one.now != one.read if one.path in sizes else _has_text(one.path))]


def _modified_since(read: Mapping[Path, int]) -> dict[Path, int]:
    """Those of the files in ``read`` that have another modification time now, each with its size."""
    times = dict[Path, tuple[int, int]]()
    for path in nlargest(_NEWEST, read, key=lambda one: read[one]):
        try:
            found = path.stat()
        except OSError:
            continue  # moved away, or on a disk of other machines
        if found.st_mtime_ns // 1_000_000 != read[path]:
            times[path] = found.st_mtime_ns, found.st_size
    return {path: times[path][1] for path in sorted(times, key=lambda one: times[one], reverse=True)}


def _sizes_when_read(lake: Lake, s3: S3Settings, read: Mapping[Path, int]) -> dict[Path, int]:
    """By file in ``read``, each with its modification time then, where its last block with a record ended."""
    version = lake.newest_commit(BRONZE_EVENTS.path)
    if version is None:
        return {}
    since = time_of_us(min(read.values()) * 1000) - _SKEW
    rows = table_rows(lake, BRONZE_EVENTS, version, row_store(lake, s3))
    is_later = ds.field("ingest_time") >= pa.scalar(since, pa.timestamp("us", "UTC"))
    sizes: dict[Path, int] = {}
    for batch in rows.to_batches(columns=["source"], filter=is_later, use_threads=False):
        for block in filter(None, map(_BLOCK.fullmatch, batch.column("source").unique().to_pylist())):
            if (path := path_of(block[1])) in read:
                sizes[path] = max(sizes.get(path, 0), int(block[2]))
    return sizes


def _has_text(path: Path) -> bool:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return bool(file.read(_LOOKED_AT).strip())
    except (EOFError, gzip.BadGzipFile):
        return True
