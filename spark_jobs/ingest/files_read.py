"""The files that ``ingest`` has read, as Spark notes them in its checkpoint.

Spark notes each batch of files in a file of its own. Every tenth, a ``.compact``, sums up all that it remembers, which
is every file that it ever read::

    sources/0/ 8                {"path": "file:///in/h.jsonl", "timestamp": 1767261600000, "batchId": 8}
               9.compact        those of all batches up to 9, in their order
               10
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from spark_jobs.config.folders import OBJECTS
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.checkpoint_files import read_lines, write_lines

_COMPACT = ".compact"
_REPEATED = 10
"""Spark looks up the files of the batch that it repeats after a start, which is one of the last two."""
_log = logging.getLogger(__name__)


class FilesRead:
    """The files that the batches of ``ingest`` have read; each look reads only what was noted since the last one.

    Args:
        lake: the lake.
        checkpoint: the key of the checkpoint of ``ingest``.
    """

    def __init__(self, lake: Lake, checkpoint: str) -> None:
        self._lake, self._checkpoint = lake, checkpoint
        self._found: dict[str, int] = {}
        self._last: dict[int, int] = {}

    def until(self, reached: Sequence[Any]) -> Mapping[str, int]:
        """The files of all batches up to an end, each with when it had been modified then, in ms since 1970.

        Args:
            reached: the end of a batch, as Spark's sources write it; no earlier one than at the last call.
        """
        for number, offset in enumerate(reached):
            last, end = self._last.get(number, -1), int(offset["logOffset"])
            for entry in _entries_after(self._lake, _folder(self._checkpoint, number), last):
                if int(entry["batchId"]) <= end:
                    self._found[location_of(str(entry["path"]))] = int(entry["timestamp"])
            self._last[number] = end
        return self._found


def location_of(uri: str) -> str:
    """The location of the file that Spark means by ``uri``: a path, or ``s3a://bucket/key``."""
    path = unquote(uri)
    return path if path.startswith(OBJECTS) else f"/{path.removeprefix('file:').lstrip('/')}"


def count_files(lake: Lake, checkpoint: str) -> int:
    """How many files Spark remembers."""
    numbers = lake.numbers(f"{checkpoint}/sources")
    return sum(1 for number in numbers for _ in _entries_after(lake, _folder(checkpoint, number), -1))


def forget_moved_files(lake: Lake, checkpoint: str) -> int:
    """Drops from Spark's notes the files that are no longer in their folder. Returns how many those are.

    The query holds them in memory, and writes them all again every tenth batch: 11 MB per 100,000 files. A file of the
    same name that comes later is read; if its events were read before, they are repeats. Of a folder that is missing or
    empty nothing is dropped: its disk may not be mounted. The query must not be running.

    Args:
        lake: the lake.
        checkpoint: the key of the checkpoint of ``ingest``.
    """
    dropped = 0
    for number in lake.numbers(f"{checkpoint}/sources"):
        folder = _folder(checkpoint, number)
        newest = _newest_compact(lake.files.names(folder))
        if newest < 0:
            continue
        key = f"{folder}/{newest}{_COMPACT}"
        version, *lines = read_lines(lake, key)
        there: dict[Path, frozenset[str]] = {}
        kept = [line for line in lines if _is_needed(json.loads(line), newest, there)]
        if len(kept) < len(lines):
            write_lines(lake, key, [version, *kept])
            dropped += len(lines) - len(kept)
    if dropped:
        _log.info("%d files that were read have been moved away since, and are forgotten", dropped)
    return dropped


def _is_needed(entry: Mapping[str, Any], newest: int, there: dict[Path, frozenset[str]]) -> bool:
    location = location_of(str(entry["path"]))
    file = Path(location)
    if location.startswith(OBJECTS):
        return True  # a store has room, and is far to be asked about each
    if file.parent not in there:
        try:
            there[file.parent] = frozenset(one.name for one in file.parent.iterdir())
        except OSError:
            there[file.parent] = frozenset()
    names = there[file.parent]
    return not names or file.name in names or int(entry["batchId"]) > newest - _REPEATED


def _folder(checkpoint: str, number: int) -> str:
    return f"{checkpoint}/sources/{number}"


def _newest_compact(names: Sequence[str]) -> int:
    sums = (name.removesuffix(_COMPACT) for name in names if name.endswith(_COMPACT))
    return max((int(number) for number in sums if number.isdigit()), default=-1)


def _entries_after(lake: Lake, folder: str, last: int) -> Iterator[Mapping[str, Any]]:
    """The notes in ``folder`` of the batches after ``last``, in no order."""
    names = lake.files.names(folder)
    newest = _newest_compact(names)
    if newest > last:
        for line in reversed(read_lines(lake, f"{folder}/{newest}{_COMPACT}")[1:]):
            entry = json.loads(line)
            if int(entry["batchId"]) <= last:
                break
            yield entry
    for name in names:
        if name.isdigit() and int(name) > max(newest, last):
            yield from map(json.loads, read_lines(lake, f"{folder}/{name}")[1:])
