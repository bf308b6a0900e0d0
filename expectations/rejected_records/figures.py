"""The numbers and examples that the part shows."""

from dataclasses import dataclass
from datetime import datetime

from expectations.timelines import NOTHING, Timelines

SHOWN_CHARACTERS = 300
"""How much of a record, and of a reason, an example shows."""


@dataclass(frozen=True)
class Example:
    """A record that did not fit, its long texts cut to one character more than is shown.

    ``place`` is where the record came from, ``received`` its ``ingest_time``.
    """

    reason: str | None
    place: str | None
    received: datetime | None
    record: str | None


@dataclass(frozen=True)
class VerdictFigures:
    """The records of a source with one verdict, as received.

    Attributes:
        verdict: not ok.
        records: how many there are.
        first: the earliest ``ingest_time`` (UTC); None if no record has one.
        last: the latest.
        requeued: how many of them have been judged again since, and fit.
        examples: some of the latest.
    """

    verdict: str
    records: int
    first: datetime | None
    last: datetime | None
    requeued: int = 0
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class SourceFigures:
    """A source with records that did not fit; ``name`` is None for records of no source.

    ``received`` counts all records of the source, ``requeued`` those that were judged again and fit.
    """

    name: str | None
    received: int
    requeued: int
    verdicts: tuple[VerdictFigures, ...]

    @property
    def records(self) -> int:
        """How many of the records did not fit."""
        return sum(found.records for found in self.verdicts)


@dataclass(frozen=True)
class RejectedFigures:
    """Everything the part shows.

    Attributes:
        version: the version of bronze that was counted.
        received: how many records were received in all.
        sources: those with records that did not fit, the most first.
        timelines: when records were received, in rows by source and in bars by verdict, up to the last one received, ok
            or not.
    """

    version: int
    received: int
    sources: tuple[SourceFigures, ...] = ()
    timelines: Timelines = NOTHING

    @property
    def records(self) -> int:
        """How many records did not fit."""
        return sum(source.records for source in self.sources)

    @property
    def requeued(self) -> int:
        """How many records were judged again and fit."""
        return sum(source.requeued for source in self.sources)

    @property
    def quarantined(self) -> int:
        """How many records are still in quarantine."""
        return self.records - self.requeued
