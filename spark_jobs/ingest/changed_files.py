"""Files of JSON that were written to after they were read.

A file is read once, whole, and what is added later is never read. Bronze shows how far it went: the place of a record
ends where the record did::

    a.jsonl   {"event_id": "1"}⏎{"event_i │ d": "2"}⏎     source: file:///in/a.jsonl#bytes=17-28, and now there is more

Of files of rows (CSV, Avro, Parquet) bronze has only the numbers of the rows, so they are not looked at.
"""

import re
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from heapq import nlargest
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.config.durations import time_of_us
from spark_jobs.config.sections import S3Settings
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.formats.text_lines import DAMAGE, open_content
from spark_jobs.ingest.files_read import FilesRead, location_of
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
_BLANKS = b" \t\r\n\0],"
"""Bytes that may follow the last record."""
_BLOCK = re.compile(r"(.*)#bytes=\d+-(\d+)")


class ChangedFile(NamedTuple):
    """A file, with how many bytes of its text were read, and how many there are now, once it is decompressed."""

    path: Path
    read: int
    now: int


def changed_files(lake: Lake, s3: S3Settings) -> list[ChangedFile]:
    """The input files of ``lake`` that have more than when they were read, or less, the last modified first.

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
    ends = _ends_when_read(lake, s3, {path: read[str(path)] for path in modified})
    found = [_changed(path, ends.get(path, 0)) for path in modified]
    return [one for one in found if one]


def _modified_since(read: Mapping[str, int]) -> list[Path]:
    """Those of the files in ``read`` that have another modification time now, the last one first."""
    times = dict[Path, int]()
    for location in nlargest(_NEWEST, read, key=lambda one: read[one]):
        path = Path(location)
        try:
            found = path.stat()
        except OSError:
            continue  # moved away, on a disk of other machines, or in a store
        if found.st_mtime_ns // 1_000_000 != read[location]:
            times[path] = found.st_mtime_ns
    return sorted(times, key=lambda one: times[one], reverse=True)


def _ends_when_read(lake: Lake, s3: S3Settings, read: Mapping[Path, int]) -> dict[Path, int]:
    """By file in ``read``, each with its modification time then, where its last record ended."""
    version = lake.newest_commit(BRONZE_EVENTS.path)
    if version is None:
        return {}
    since = time_of_us(min(read.values()) * 1000) - _SKEW
    rows = table_rows(lake, BRONZE_EVENTS, version, row_store(lake, s3))
    is_later = ds.field("ingest_time") >= pa.scalar(since, pa.timestamp("us", "UTC"))
    ends: dict[Path, int] = {}
    for batch in rows.to_batches(columns=["source"], filter=is_later, use_threads=False):
        for block in filter(None, map(_BLOCK.fullmatch, batch.column("source").unique().to_pylist())):
            if (path := Path(location_of(block[1]))) in read:
                ends[path] = max(ends.get(path, 0), int(block[2]))
    return ends


def _changed(path: Path, end: int) -> ChangedFile | None:
    """The change of ``path``, of which the last record ended at ``end``; None: nothing but blanks comes after it."""
    has_more = False
    try:
        with closing(open_content(path)) as content:
            content.skip(end)
            while text := content.read(_LOOKED_AT):
                has_more = has_more or bool(text.strip(_BLANKS))
            now = content.position
    except (*DAMAGE, OSError):
        return None  # cut off, as it may have been then
    return ChangedFile(path, end, now) if has_more or now < end else None
