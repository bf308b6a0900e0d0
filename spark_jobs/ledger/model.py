"""The ledger: where every record went, up to versions of the tables that belong together."""

from collections import Counter
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from spark_jobs.places import PROGRESS

LEDGERS = f"{PROGRESS}/ledger/cuts"
"""Folder of the ledger: a file ``<number>.json`` for each state, and what the next update needs to know."""
RECORDS = "records"
"""The account of all records, from their arrival to silver. The others are named after queries."""
LEDGER_FORMAT = 1
"""Raised whenever a change of the code makes earlier states unusable: the next one is then counted from the start."""


class RecordKind(StrEnum):
    """The fate of a record, or of an event in a query."""

    RECEIVED = "received"
    FURTHER = "further events of a record"
    QUARANTINED = "quarantined"
    REQUEUED = "requeued"
    OK = "ok"
    KEPT = "kept"
    DUPLICATE = "duplicate"
    UNPROVED = "duplicate, not proved"
    HELD = "held back"
    LATE_AWAITING = "late, no repair yet"
    LATE_PENDING = "late, pending"
    LATE_REPAIRED = "late, repaired"
    LATE_EXPIRED = "late, expired"
    LATE_FROZEN = "late, frozen"
    READ = "read"
    INITIAL = "initial"
    USERLESS = "without a user"
    PENDING = "pending"
    LATE = "late"
    UNACCOUNTED = "unaccounted"
    SURPLUS = "surplus"
    REMOVED = "removed by others"
    ADDED = "added by others"


LATE_KINDS = (
    RecordKind.LATE_AWAITING,
    RecordKind.LATE_PENDING,
    RecordKind.LATE_REPAIRED,
    RecordKind.LATE_EXPIRED,
    RecordKind.LATE_FROZEN,
)
"""The fates of a record that came too late for silver. Awaiting: no repair has looked at it, so it may also be a
copy of an event that was kept long ago."""
DUPLICATES = (RecordKind.DUPLICATE, RecordKind.UNPROVED)
"""Copies of events that were kept. Not proved: the event would have to be from before the ledger began."""
ALARMS = (RecordKind.UNACCOUNTED, RecordKind.SURPLUS, RecordKind.REMOVED, RecordKind.ADDED)
"""Kinds of which there must be none."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class QueryPosition(_Frozen):
    """Where a query stood: the version of its table, and what it had read of silver by then.

    ``before`` is what it had read before its last batch, whose watermark is ``watermark_ms``; that of the batch before
    is ``previous_ms``.
    """

    version: int = -1
    silver: int = -1
    before: int = -1
    watermark_ms: int = 0
    previous_ms: int = 0


class Part(_Frozen):
    """A Parquet file with the events of some versions of silver: ``first`` to ``last``.

    ``deduplicate`` remembers none of their ids once its watermark has reached ``until_us``; None: it always does.
    ``newest_us`` is the largest event time, ``level`` how often it was merged with others.
    """

    key: str
    first: int
    last: int
    newest_us: int
    until_us: int | None
    level: int = 0


class Figure(_Frozen):
    """How many rows of an account are of one kind; ``verdict`` and ``source`` distinguish those in quarantine."""

    account: str
    kind: RecordKind
    rows: int
    verdict: str | None = None
    source: str | None = None


class Ledger(_Frozen):
    """The account up to versions that belong together, and the files from which the next update goes on.

    received = records + further events of a record = ok + quarantined; ok = kept + duplicates (:data:`DUPLICATES`)
    + late (:data:`LATE_KINDS`) + held back + unaccounted, which must be 0. ``surplus`` counts rows of silver without a
    record, and must be 0 too. In the account of a query, read + initial = emitted + pending + late + unaccounted.
    """

    format: int = LEDGER_FORMAT
    number: int
    taken_at: datetime
    bronze: int = -1
    """Version of bronze that ``deduplicate`` had read when it wrote version ``silver``; -1: none."""
    silver: int = -1
    settled: int = -1
    frontier_us: int | None = None
    """Of the versions of bronze after ``settled`` the records after this event time are held back; None: none is."""
    watermark_ms: int = 0
    """Watermark of the last batch of ``deduplicate``."""
    positions: dict[str, QueryPosition] = {}
    """By name, the queries that read silver."""
    since_us: int | None = None
    """Events up to then (microseconds since 1970) may be from before the ledger began; None: it counts all."""
    repair: int = 0
    """Number of the last repair that is counted."""
    late_events: int = -1
    restatements: int = -1
    """Versions of these tables that are counted."""
    parts: tuple[Part, ...] = ()
    quarantine: tuple[str, ...] = ()
    found_late: tuple[str, ...] = ()
    """Keys of Parquet files: the records in quarantine, and the events in ``silver/late_events``."""
    files: dict[str, str] = {}
    """By name, the key of each Parquet file that each update writes again."""
    figures: tuple[Figure, ...] = ()

    def rows(self, *kinds: RecordKind, account: str = RECORDS) -> int:
        """How many rows of ``account`` are of one of ``kinds``."""
        return sum(one.rows for one in self.figures if one.account == account and one.kind in kinds)

    @property
    def received(self) -> int:
        """Records that arrived."""
        return self.rows(RecordKind.RECEIVED)

    @property
    def records(self) -> int:
        """Records that the events arrived in: one may hold several."""
        return self.received - self.rows(RecordKind.FURTHER)

    @property
    def ok(self) -> int:
        """Records that became events, requeued ones included."""
        return self.rows(RecordKind.OK)

    @property
    def requeued(self) -> int:
        """Records that were in quarantine, and are ok since: a part of ``ok``."""
        return self.rows(RecordKind.REQUEUED)

    @property
    def kept(self) -> int:
        """Records whose event is in silver because of them."""
        return self.rows(RecordKind.KEPT)

    @property
    def duplicates(self) -> int:
        """Copies of events that were kept, proved or not."""
        return self.rows(*DUPLICATES)

    @property
    def total_quarantined(self) -> int:
        """Records that are still in quarantine."""
        return self.rows(RecordKind.QUARANTINED)

    @property
    def quarantined(self) -> dict[str, int]:
        """Records that are still in quarantine, by verdict."""
        found: Counter[str] = Counter()
        for one in self.figures:
            found[one.verdict or ""] += one.rows if one.kind is RecordKind.QUARANTINED else 0
        return {verdict: rows for verdict, rows in sorted(found.items()) if rows}

    @property
    def late(self) -> int:
        """Records that came too late for silver, whatever became of them since."""
        return self.rows(*LATE_KINDS)

    @property
    def accounts(self) -> list[str]:
        """Names of the accounts of queries."""
        return [name for name in dict.fromkeys(one.account for one in self.figures) if name != RECORDS]

    @property
    def alarms(self) -> list[Figure]:
        """Errors: rows that are lost, or that come from nowhere."""
        return [one for one in self.figures if one.kind in ALARMS and one.rows]

    @property
    def received_difference(self) -> int:
        """By how much received differs from ok + quarantined."""
        return self.received - self.ok - self.total_quarantined

    @property
    def ok_difference(self) -> int:
        """By how much ok differs from kept + duplicates + late + held back + unaccounted."""
        others = self.rows(RecordKind.HELD, RecordKind.UNACCOUNTED)
        return self.ok - self.kept - self.duplicates - self.late - others

    @property
    def wrong(self) -> list[str]:
        """Why it does not balance, in words."""
        found = [f"{one.rows:,} {one.kind.value} ({one.account})" for one in self.alarms]
        if self.received_difference:
            found.append(f"received differs from ok + quarantined by {self.received_difference:,}")
        if self.ok_difference:
            found.append(f"ok differs from kept + duplicates + late + held back by {self.ok_difference:,}")
        return found

    @property
    def balances(self) -> bool:
        """Whether every row is accounted for, and none is there twice or from nowhere."""
        return not self.wrong

    @property
    def keys(self) -> set[str]:
        """All its files."""
        return {*(part.key for part in self.parts), *self.quarantine, *self.found_late, *self.files.values()}


def ledger_key(number: int) -> str:
    """A state of the ledger, as JSON: see :class:`Ledger`."""
    return f"{LEDGERS}/{number}.json"
