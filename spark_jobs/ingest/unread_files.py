"""Files that are still to be read, and the time of the first event in each."""

from collections.abc import Collection
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

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

    def first_events(self, read: Collection[Path]) -> dict[str, int | None]:
        """By path of each file that is there and not in ``read``, the time of its first event.

        In microseconds since 1970; None: its first records are no events.
        """
        # A file may be a link: Spark notes where it lies, not where that leads.
        there = self._there()
        folders = {folder: folder.resolve() for folder in {file.parent for file in there}}
        unread = [file for file in there if folders[file.parent] / file.name not in read]
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
                for event in (found.event for found in judged if found.verdict == OK):
                    time = event["event_time"]
                    assert isinstance(time, datetime), "an event has a time"  # noqa: S101 a mistake of the rules
                    return microseconds(time - EPOCH)
        except SourceError:
            return None  # its records get their verdicts when it is read
        return None
