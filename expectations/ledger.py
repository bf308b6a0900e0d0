"""The part of the landing page that shows the ledger: where every record went, while jobs run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from expectations.intervals import describe, interval_between, start_of
from expectations.timelines import TIME, Bar, Timelines, draw
from spark_jobs.config.durations import EPOCH, time_of_us
from spark_jobs.lake.layout import Lake
from spark_jobs.ledger.ledger_files import Row, last_ledger, rows_of
from spark_jobs.ledger.model import DUPLICATES, LATE_KINDS, RECORDS, Ledger, RecordKind

_HOUR = timedelta(hours=1)
_COLORS = {
    "kept": "var(--good-bar)",
    "duplicates": "var(--series-1)",
    "late": "var(--warn-bar)",
    "quarantined": "var(--series-4)",
    "unaccounted": "var(--bad)",
}
_DRAWN: Mapping[str, tuple[RecordKind, ...]] = {
    "kept": (RecordKind.KEPT,),
    "duplicates": DUPLICATES,
    "late": LATE_KINDS,
    "quarantined": (RecordKind.QUARANTINED,),
    "unaccounted": (RecordKind.UNACCOUNTED,),
}
_LATE_NAMES = {
    RecordKind.LATE_AWAITING: "no repair has looked yet",
    RecordKind.LATE_PENDING: "wait for a later repair",
    RecordKind.LATE_REPAIRED: "brought to gold by a repair",
    RecordKind.LATE_EXPIRED: "expired: beyond repair.horizon",
    RecordKind.LATE_FROZEN: "frozen: the bill has gone out",
}
_QUERY_KINDS = (RecordKind.READ, RecordKind.PENDING, RecordKind.LATE, RecordKind.UNACCOUNTED, RecordKind.SURPLUS)


@dataclass(frozen=True)
class Line:
    """A line of the account: ``depth`` is how far it is indented."""

    depth: int
    name: str
    rows: int


@dataclass(frozen=True)
class LedgerPart:
    """The content of the template.

    Attributes:
        last: the ledger as of its last update.
        lines: the account of records, from the top.
        queries: for each query its name and its counts, in the order of ``kinds``.
        chart: SVG of records by hour of event time; empty if none has one.
        interval: the length of a bar in words.
        colors: by kind, as in the chart.
    """

    last: Ledger
    lines: tuple[Line, ...]
    queries: tuple[tuple[str, tuple[int, ...]], ...]
    chart: str
    interval: str
    colors: Mapping[str, str]
    kinds: tuple[str, ...] = tuple(kind.value for kind in _QUERY_KINDS)

    @property
    def taken(self) -> str:
        """When it was last updated, to the minute."""
        return self.last.taken_at.strftime(TIME)

    @property
    def since(self) -> str:
        """From when on the ledger counts; empty if it counts all."""
        return "" if self.last.since_us is None else time_of_us(self.last.since_us).strftime(TIME)


def ledger_part(lake: Lake) -> LedgerPart | None:
    """The part for ``lake``; None if it has no ledger."""
    ledger = last_ledger(lake)
    if ledger is None:
        return None
    timelines = _timelines(rows_of(lake, ledger))
    drawn = {bar.kind for bar in timelines.bars}
    colors = {kind: color for kind, color in _COLORS.items() if kind in drawn}
    return LedgerPart(
        ledger,
        tuple(_lines(ledger)),
        tuple((name, tuple(ledger.rows(kind, account=name) for kind in _QUERY_KINDS)) for name in ledger.accounts),
        draw(timelines, {None: "records by hour of their event"}, colors),
        describe(timelines.interval),
        colors,
    )


def _lines(ledger: Ledger) -> list[Line]:
    late = [Line(2, _LATE_NAMES[kind], rows) for kind in LATE_KINDS if (rows := ledger.rows(kind))]
    verdicts = sorted(ledger.quarantined.items(), key=lambda item: (-item[1], item[0]))
    requeued = ledger.requeued
    return [
        Line(0, "received", ledger.received),
        Line(0, "quarantined", ledger.total_quarantined),
        *(Line(2, verdict, rows) for verdict, rows in verdicts[:4]),
        *([Line(2, f"{len(verdicts) - 4} other verdicts", sum(n for _, n in verdicts[4:]))] if verdicts[4:] else []),
        Line(0, "ok", ledger.ok),
        *([Line(2, "requeued from quarantine", requeued)] if requeued else []),
        Line(1, "kept", ledger.kept),
        Line(1, "duplicates", ledger.duplicates),
        Line(1, "late", ledger.late),
        *late,
        *([Line(1, "held back in a backlog", held)] if (held := ledger.rows(RecordKind.HELD)) else []),
        Line(1, "unaccounted", ledger.rows(RecordKind.UNACCOUNTED)),
    ]


def _timelines(rows: Sequence[Row]) -> Timelines:
    """Records by hour of event time. Good events say how far it reaches; broken records may have any time."""
    kind_of = {kind: name for name, kinds in _DRAWN.items() for kind in kinds}
    timed = [
        (kind_of[RecordKind(row.kind)], EPOCH + row.hour * _HOUR, row.rows)
        for row in rows
        if row.account == RECORDS and row.hour is not None and RecordKind(row.kind) in kind_of
    ]
    good = [time for kind, time, _ in timed if kind != "quarantined"]
    if not good:
        return Timelines()
    first, last = min(good), max(good)
    interval = max(interval_between(first, last), _HOUR)
    counts: Counter[tuple[datetime, str]] = Counter()
    for kind, time, number in timed:
        if first <= time <= last:
            counts[start_of(time, interval), kind] += number
    return Timelines(
        tuple(Bar(None, kind, start, count) for (start, kind), count in sorted(counts.items()) if count), interval, last
    )
