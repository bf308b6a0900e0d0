"""Files that are still to be read, and the time of the first event in each."""

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from spark_jobs.config.durations import EPOCH, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import OK
from spark_jobs.errors import SourceError
from spark_jobs.ingest.in_python.judge import Judge
from spark_jobs.ingest.in_python.meta import of_file
from spark_jobs.ingest.input_files import FoundFile, find_files, input_file, place_of, sets_of
from spark_jobs.ingest.samples import sample_file

_LOOKED_AT = 1000
"""The records of a file among which its first event is looked for."""


class UnreadFiles:
    """The input files that ``ingest`` has not read.

    Args:
        settings: the sources.
        source: a folder in place of those of the sources.
    """

    def __init__(self, settings: Settings, source: str | Path | None) -> None:
        self._sets, self._s3 = sets_of(settings, source), settings.s3
        self._judge = Judge(settings)
        self._first: dict[str, int | None] = {}

    def first_events(self, read: Collection[str]) -> dict[str, int | None]:
        """By location of each file that is there and not in ``read``, the time of its first event.

        In microseconds since 1970; None: its first records are no events.
        """
        unread = [file for file in self._there() if file.location not in read]
        for file in unread:
            if file.location not in self._first:
                self._first[file.location] = self._first_event(file)
        return {file.location: self._first[file.location] for file in unread}

    def _there(self) -> list[FoundFile]:
        try:
            return find_files(self._sets, self._s3)
        except SourceError:
            return []  # those that were read have been moved away

    def _first_event(self, file: FoundFile) -> int | None:
        now, place = datetime.now(UTC), input_file(file.location, self._s3)
        meta = of_file(place_of(file.location, file.of.reader))
        try:
            for one in sample_file(place, _LOOKED_AT, file.of.reader, meta):
                judged = self._judge.judge(one.decoded or one.raw, now, file.of.origin, one.meta)
                for event in (found.event for found in judged if found.verdict == OK):
                    time = event["event_time"]
                    assert isinstance(time, datetime), "an event has a time"  # noqa: S101 a mistake of the rules
                    return microseconds(time - EPOCH)
        except SourceError:
            return None  # its records get their verdicts when it is read
        return None
