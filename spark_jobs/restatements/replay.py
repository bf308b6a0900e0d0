"""Replays: a past window of gold is recomputed from bronze, compared with the live tables, and applied on request.

::

    bronze ──all events of the window, as if they were late──▶ what they touch: as it is ⇄ as it should be
                                                                  │
                 same · late: a repair will bring it in · open: not due yet · unknown: nothing explains it
                                                                  │ --apply
                                         plan in _repairs/<number>, as a repair's ──▶ tables, gold/restatements

A replay treats every event of the window as late. It uses the same corrections as a repair, and applies changes in the
same way. It does not touch the progress of repairs, nor the events that wait for one.

**The truth is bronze**: the first copy of each event, see :mod:`spark_jobs.restatements.facts`. So a replay also
finds wrong rows of gold that come from a changed row of silver.

**The window** is of rows: those whose event time lies in it are counted. A group of rows that crosses its edge, such as
a session around midnight, is compared whole, and changed whole if it differs within the window.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from spark_jobs.config.durations import Window
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.errors import LakeError, SettingsError
from spark_jobs.lake.notes import frontier_of
from spark_jobs.queries.deduplicate.query import QUERY as DEDUPLICATE
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.registry import QUERIES
from spark_jobs.restatements.apply import OnStep, restate
from spark_jobs.restatements.compare import sums
from spark_jobs.restatements.pending import TableToCorrect, tables_to_correct
from spark_jobs.restatements.plan import PlanKind, RepairPlan, TablePlan, changes_key, draft_key
from spark_jobs.restatements.repair import GOLD
from spark_jobs.restatements.replay_compare import Compared, Comparing
from spark_jobs.restatements.replay_model import Replay, replay_key
from spark_jobs.restatements.replay_report import Differing, Judged, judge
from spark_jobs.spark.open_lake import OpenLake

_SHOWN = 10


@dataclass(frozen=True)
class Replayed:
    """The result of a replay: its report; the applied plan; by table, the first rows that differ."""

    report: Replay
    plan: RepairPlan | None = None
    first: dict[str, list[Differing]] = field(default_factory=dict)


def replay(
    lake: OpenLake,
    window: Window,
    *,
    tables: Sequence[str] = (),
    is_applied: bool = False,
    shown: int = _SHOWN,
    on_step: OnStep = lambda _line: None,
) -> Replayed:
    """Recomputes the rows of gold whose event time lies in ``window``, and reports how the live ones differ.

    Jobs may be running. A killed repair or replay is completed first.

    Args:
        lake: the lake.
        window: which rows.
        tables: names of tables of gold; empty: all that are corrected.
        is_applied: correct the rows that differ, whatever the cause.
        shown: how many differing rows of each table to return.
        on_step: called with a line of text at every step.

    Raises:
        SettingsError: a table is not corrected.
        LakeError: a backlog is being read; or see :func:`spark_jobs.restatements.apply.restate`.
        LakeInUseError: a repair or another replay is at work.
    """
    _check(tables)
    report = Replayed(Replay(begin=window.begin, end=window.end, decided_at=datetime.now(UTC), tables={}))

    def plan(number: int) -> RepairPlan | None:
        nonlocal report
        run = _Run(lake, window, tuple(tables), shown, on_step)
        report = run.compare()
        planned = run.plan(number) if is_applied else None
        run.forget()
        return planned

    planned = restate(lake, GOLD, plan, on_step=on_step)
    # of the last attempt
    found = report.report.model_copy(update={"number": planned.number if planned else None})
    lake.files.write(replay_key(window, tuple(tables)), found.model_dump_json(indent=2).encode())
    return Replayed(found, planned, report.first)


def _check(tables: Sequence[str]) -> None:
    known = [query.writes.name for query in QUERIES if query.is_correctable]
    for name in tables:
        if name not in known:
            raise SettingsError(f"no table {name!r} is recomputed; those that are: {', '.join(known)}")


def _check_backlog(lake: OpenLake) -> None:
    note = last_note(lake, DEDUPLICATE.name)
    frontier_us = frontier_of(note.reached[0]) if note else None
    if frontier_us is not None:
        raise LakeError(
            "job deduplicate is reading a backlog, and events wait in bronze for slower partitions, so gold cannot be "
            "compared with it yet; replay once the job has caught up (`adloom ledger` shows no records held back)"
        )


class _Run:
    """One attempt."""

    def __init__(self, lake: OpenLake, window: Window, tables: tuple[str, ...], shown: int, on_step: OnStep) -> None:
        self._lake, self._window = lake, window
        self._tables, self._shown, self._on_step = tables, shown, on_step
        self._at = datetime.now(UTC)
        self._found: list[tuple[Compared, Judged]] = []
        self._comparing: Comparing | None = None

    def compare(self) -> Replayed:
        """Compares the tables."""
        wanted = self._wanted()
        if wanted:
            _check_backlog(self._lake)
            self._comparing = Comparing(self._lake, self._window, self._at)
            for one in wanted:
                self._on_step(f"{one.query.writes.name}: recomputing from bronze")
                compared = self._comparing.compare(one)
                self._found.append((compared, judge(self._lake, self._window, compared, self._shown)))
        parts = {compared.one.query.writes.name: judged for compared, judged in self._found}
        report = Replay(
            begin=self._window.begin.astimezone(UTC),
            end=self._window.end.astimezone(UTC),
            decided_at=self._at,
            tables={name: part.table for name, part in parts.items()},
        )
        return Replayed(report, first={name: part.first for name, part in parts.items()})

    def _wanted(self) -> list[TableToCorrect]:
        if not self._lake.has(SILVER_EVENTS):
            return []
        found = tables_to_correct(self._lake)
        return [one for one in found if not self._tables or one.query.writes.name in self._tables]

    def plan(self, number: int) -> RepairPlan | None:
        """Keeps the planned changes, and returns the plan; None: nothing changes."""
        draft, tables = uuid4().hex, dict[str, TablePlan]()
        for compared, judged in self._found:
            counts = sums(judged.new)
            if not any(counts.values()):
                continue
            name, one = compared.one.query.writes.name, compared.one
            judged.new.write.parquet(self._lake.uri(changes_key(draft_key(number, draft), name)))
            tables[name] = TablePlan(
                version=one.version,
                silver_version=one.silver_version,
                watermark_ms=one.note.watermark_ms,
                events=0,
                pending=0,
                **counts,
            )
        if not tables:
            return None
        return RepairPlan(
            number=number,
            kind=PlanKind.REPLAY,
            draft=draft,
            decided_at=self._at,
            bronze_version=-1,
            late_events=0,
            expired=0,
            tables=tables,
        )

    def forget(self) -> None:
        """Frees the cached rows."""
        if self._comparing:
            self._comparing.forget()
