"""Files that are still to be read, and the time of the first event in each."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from spark_jobs.config.durations import EPOCH, microseconds
from spark_jobs.config.encoding import format_of_file
from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import origin_of_files
from spark_jobs.contract.events import OK
from spark_jobs.errors import SourceError
from spark_jobs.formats.sources import readers
from spark_jobs.ingest.arriving import files_of
from spark_jobs.ingest.in_python.judge import Judge
from spark_jobs.ingest.samples import sample_file
from spark_jobs.lake.layout import Lake

_LOOKED_AT = 1000
"""The records of a file among which its first event is looked for."""


class UnreadFiles:
    """The input files that ``ingest`` has not read.

    Args:
        settings: the sources.
        source: a folder in place of those of the sources.
    """

    def __init__(self, settings: Settings, source: Path | None) -> None:
        self._settings, self._source = settings, source
        self._judge = Judge(settings)
        self._first: dict[Path, int | None] = {}

    def first_events(self, read: set[Path]) -> dict[str, int | None]:
        """By path of each file that is there and not in ``read``, the time of its first event.

        In microseconds since 1970; None: its first records are no events.
        """
        # A file may be a link: Spark notes where it lies, not where that leads.
        unread = [file for file in self._there() if file.parent.resolve() / file.name not in read]
        for file in unread:
            if file not in self._first:
                self._first[file] = self._first_event(file)
        return {str(file): self._first[file] for file in unread}

    def _there(self) -> list[Path]:
        try:
            return files_of(self._settings, self._source)
        except SourceError:
            return []  # those that were read have been moved away

    def _first_event(self, file: Path) -> int | None:
        kind, now = format_of_file(file.name), datetime.now(UTC)
        folder = None if self._source else file.parent
        reader, origin = None, origin_of_files(folder, kind) if folder else None
        if not kind.is_json:
            reader, origin = readers(self._settings, folder).get(kind, (None, None))
            if reader is None:
                return None
        try:
            for one in islice(sample_file(file, _LOOKED_AT, reader), _LOOKED_AT):
                judged = (
                    self._judge.judge_decoded(one.decoded, now, origin)
                    if one.decoded
                    else self._judge.judge(one.raw, now, origin)
                )
                if judged and judged.verdict == OK:
                    time = judged.event["event_time"]
                    assert isinstance(time, datetime), "an event has a time"  # noqa: S101 a mistake of the rules
                    return microseconds(time - EPOCH)
        except SourceError:
            return None  # its records get their verdicts when it is read
        return None


def files_read(lake: Lake, checkpoint: str, reached: Sequence[Any]) -> set[Path]:
    """The files that the batches of ``ingest`` up to an end have read.

    Args:
        lake: the lake.
        checkpoint: the key of the checkpoint of ``ingest``.
        reached: the end of a batch, as Spark's sources write it.
    """
    found: set[Path] = set()
    for number, offset in enumerate(reached):
        folder = f"{checkpoint}/sources/{number}"
        for entry in _entries(lake, folder):
            if int(entry["batchId"]) <= int(offset["logOffset"]):
                path = unquote(str(entry["path"])).removeprefix("file:")
                found.add(Path(f"/{path.lstrip('/')}"))
    return found


def _entries(lake: Lake, folder: str) -> Iterator[Mapping[str, Any]]:
    """The notes of Spark's source of files in ``folder``; it sums them up now and then, in a ``.compact``."""
    names = [name for name in lake.files.names(folder) if not name.startswith(".")]
    sums = [name for name in names if name.endswith(".compact")]
    last = max((int(name.removesuffix(".compact")) for name in sums), default=-1)
    chosen = [f"{last}.compact"] if sums else []
    chosen += [name for name in names if name.isdigit() and int(name) > last]
    for name in chosen:
        _version, *lines = (lake.files.read(f"{folder}/{name}") or b"").decode().splitlines()
        yield from (json.loads(line) for line in lines)
