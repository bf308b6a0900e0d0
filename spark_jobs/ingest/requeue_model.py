"""Which records of the quarantine are judged again, and what became of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from spark_jobs.contract.events import OK, VERDICTS
from spark_jobs.errors import SettingsError

REJECTIONS = tuple(verdict for verdict in VERDICTS if verdict != OK)
"""The verdicts of records in quarantine."""


@dataclass(frozen=True)
class Selection:
    """Records of the quarantine.

    Attributes:
        verdicts: only those that got one of these when they were received; empty: whatever they got.
        since: only those received at this time or later; with its zone. None: from the first on.
        until: only those received before this time; with its zone. None: up to the last.
        source: only those that belong to this source of the settings now, or, where none means them now, belonged to it
            when they were received. None: of any source.
    """

    verdicts: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        """Refuses what selects nothing.

        Raises:
            SettingsError: there is no such verdict, a time has no zone, or the times are in the wrong order.
        """
        if unknown := [verdict for verdict in self.verdicts if verdict not in REJECTIONS]:
            what = "is never in quarantine" if unknown[0] == OK else "is no verdict"
            raise SettingsError(f"verdict {unknown[0]!r} {what}; there are {', '.join(REJECTIONS)}")
        for name, time in (("since", self.since), ("until", self.until)):
            if time is not None and time.tzinfo is None:
                raise SettingsError(f"{name} {time} has no zone; write it as 2026-03-01T00:00:00Z")
        if self.since and self.until and self.since >= self.until:
            raise SettingsError(
                f"since {self.since.astimezone(UTC)} is not before until {self.until.astimezone(UTC)}: no record was "
                "received between them; swap them, or leave one out"
            )

    def check(self, sources: Mapping[str, object]) -> None:
        """Checks it against the sources of the settings.

        Raises:
            SettingsError: there is no such source.
        """
        if self.source is not None and self.source not in sources:
            raise SettingsError(
                f"no source {self.source!r} in the settings; there are {', '.join(sources)}. Name the settings with "
                "--config"
            )


@dataclass(frozen=True)
class JudgedRecords:
    """Records of one source that were judged alike, then and now.

    Attributes:
        source: the name of their source in the settings; None: no source means them.
        before: their verdict when they were received.
        now: their verdict now.
        records: how many there are.
        late: how many of them fit now, but lie behind the present watermark of ``deduplicate``: silver will not have
            them, and the ledger counts them as late.
        reason: of one of those that still do not fit, why; empty where the verdict says it all.
    """

    source: str | None
    before: str
    now: str
    records: int
    late: int = 0
    reason: str = ""

    @property
    def fits(self) -> bool:
        """Whether they fit now."""
        return self.now == OK


@dataclass(frozen=True)
class Requeued:
    """The findings and effects of a requeue.

    Attributes:
        judged: the records that it looked at, in groups.
        at: the ``ingest_time`` of the rows that it added; None: it added none.
    """

    judged: tuple[JudgedRecords, ...]
    at: datetime | None = None

    @property
    def looked_at(self) -> int:
        """How many records it judged."""
        return sum(one.records for one in self.judged)

    @property
    def fit(self) -> int:
        """How many of them fit now."""
        return sum(one.records for one in self.judged if one.fits)
