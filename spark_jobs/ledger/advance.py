"""Updates the ledger: from where it stands to what the tables hold now.

A state of the ledger is complete once its JSON file is there; the files that it names are written before. So a process
that is killed leaves the state of before, or the new one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from spark_jobs.config.choices import DeduplicateMode
from spark_jobs.config.durations import microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, CAMPAIGN_STATS, SILVER_EVENTS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import Commit, commits
from spark_jobs.ledger import records
from spark_jobs.ledger.followed_queries import OPEN_SCHEMA, Follower, followed
from spark_jobs.ledger.late_records import explain_late_records
from spark_jobs.ledger.ledger_files import ACCOUNT, last_ledger, numbers, save_ledger
from spark_jobs.ledger.merging import merged_files, merged_parts
from spark_jobs.ledger.model import Ledger, Part, QueryPosition
from spark_jobs.ledger.read_files import Batch, batches_in, initial_events, newest_version
from spark_jobs.ledger.summed_queries import WINDOWS_SCHEMA, prove_windows, take_measured
from spark_jobs.ledger.unread import UNREAD, count_unread, is_wanted
from spark_jobs.ledger.workbench import LedgerDatabase
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.jobs import OPTIONAL_JOBS
from spark_jobs.queries.places import checkpoint_versions
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import readers_of
from spark_jobs.queries.sessionize import query as sessionize

ROWS_AT_ONCE = 2_000_000
"""Rows of silver that one step takes at most, so that a long history is counted in steps that fit into memory."""
_FORGETS_IN = 64
"""``deduplicate`` forgets ids in steps, each such a part of its delay."""
_SUMS = (
    "SELECT account, kind, verdict, hour, source, sum(rows)::BIGINT AS rows FROM {} GROUP BY ALL HAVING sum(rows) <> 0"
)


def advance(
    settings: Settings,
    lake: Lake,
    now: Callable[[], datetime],
    *,
    restart: bool = False,
    rows_at_once: int = ROWS_AT_ONCE,
    check_lock: Callable[[], None] = lambda: None,
) -> Iterator[Ledger]:
    """Brings the ledger of ``lake`` up to what its tables hold now, step by step. Jobs may be running.

    Args:
        settings: those of the live jobs.
        lake: the lake; only its log and files are read, without Spark.
        now: the time.
        restart: count everything from the start, whatever it says now.
        rows_at_once: how many rows of silver a step takes at most.
        check_lock: called before a state is written.

    Yields:
        The ledger after each step, once it is written; the last one covers all.

    Raises:
        LakeError: the log of a table does not reach back to where the ledger stopped, or a file is gone.
    """
    last = None if restart else last_ledger(lake)
    while True:
        number = max(numbers(lake), default=0) + 1
        step = _Step(settings, lake, last or Ledger(number=0, taken_at=now()), number, rows_at_once)
        with closing(step):
            ledger = step.take(now())
        check_lock()
        save_ledger(lake, ledger)
        yield ledger
        if not step.has_more:
            return
        last = ledger


@dataclass(frozen=True)
class _Taken:
    """The commits of a query since the last update, and its position."""

    found: Sequence[Commit]
    batches: Sequence[Batch]
    before: QueryPosition
    now: QueryPosition


class _Step:
    def __init__(self, settings: Settings, lake: Lake, last: Ledger, number: int, rows_at_once: int) -> None:
        self._settings, self._lake, self._last = settings, lake, last
        own = settings.deduplicate
        self._delay = None if own.mode is DeduplicateMode.FOREVER else own.watermark
        self._number = number
        self._silver, self.has_more = self._next_of_silver(rows_at_once)
        self.silver_version = self._silver[-1].version if self._silver else last.silver
        self._batches = batches_in(DEDUPLICATE, self._silver)
        self._desk = LedgerDatabase(lake, number, self._delay)

    def close(self) -> None:
        self._desk.close()

    def take(self, at: datetime) -> Ledger:
        last, desk = self._last, self._desk
        if "tally" in last.files:
            desk.fill("tally", last.files["tally"])
        desk.load("late", last.files.get("late"), records.LATE_SCHEMA)
        desk.load(records.HELD, last.files.get(records.HELD), records.HELD_SCHEMA)
        bronze = max([last.bronze, *(batch.reached for batch in self._batches)])
        self._count_arrivals(bronze)
        parts = self._with_new_part()
        taken = self._positions()
        self._load_events(taken)
        files = self._count_queries(taken)
        ledger = explain_late_records(desk, self._lake, last)
        newest = self._newest_batch
        watermark_ms = newest.watermark_ms
        positions = {name: one.now for name, one in taken.items()}
        return ledger.model_copy(
            update={
                "number": self._number,
                "taken_at": at,
                "bronze": bronze,
                "silver": self.silver_version,
                "settled": newest.settled,
                "frontier_us": newest.frontier_us,
                "watermark_ms": watermark_ms,
                "positions": positions,
                "parts": tuple(part for part in parts if self._is_needed(part, watermark_ms, positions)),
                "quarantine": self._with_quarantine(),
                "files": files | self._stored(),
                "figures": desk.figures(),
            }
        )

    def _next_of_silver(self, rows_at_once: int) -> tuple[list[Commit], bool]:
        """The commits of silver to count, up to the end of a batch; and whether there are more."""
        newest = newest_version(self._lake, SILVER_EVENTS)
        found, rows = [], 0
        for change in commits(self._lake, SILVER_EVENTS, self._last.silver + 1, newest):
            found.append(change)
            rows += sum(file.rows or 0 for file in change.added)
            if rows >= rows_at_once and change.is_of(DEDUPLICATE):
                break
        return found, bool(found) and found[-1].version < newest

    def _count_arrivals(self, bronze: int) -> None:
        desk, lake = self._desk, self._lake
        found = list(commits(lake, BRONZE_EVENTS, self._last.bronze + 1, bronze))
        records.take_records(desk, lake, found, self._batches)
        records.take_requeued(desk, self._last)
        records.take_kept(desk, lake, self._silver)
        records.hold_back(desk, self._newest_batch.settled, self._newest_batch.frontier_us)
        records.settle(desk, self._last)
        records.count_foreign_silver(desk, lake, self._silver)

    @property
    def _newest_batch(self) -> Batch:
        """The last batch of ``deduplicate`` that is counted."""
        last = self._last
        before = Batch(last.silver, last.bronze, last.watermark_ms, last.settled, last.frontier_us)
        return self._batches[-1] if self._batches else before

    def _with_new_part(self) -> tuple[Part, ...]:
        """The parts of the ledger of before, and one for what is new in silver."""
        desk = self._desk
        if not desk.one("SELECT count(*) FROM kept"):
            return self._last.parts
        newest_us = desk.one("SELECT max(event_us) FROM kept")
        key = desk.store("kept", 'SELECT hash, event_us, version, kind, "user" FROM kept ORDER BY version')
        until_us = None if self._delay is None else newest_us + microseconds(self._delay + self._delay / _FORGETS_IN)
        part = Part(
            key=key, first=self._last.silver + 1, last=self.silver_version, newest_us=newest_us, until_us=until_us
        )
        return merged_parts(desk, (*self._last.parts, part), self._last.watermark_ms * 1000)

    def _positions(self) -> dict[str, _Taken]:
        """By name, the queries that are counted, each up to the last batch that read no more than is counted here."""
        taken = {}
        for query in readers_of(SILVER_EVENTS):
            before = self._last.positions.get(query.name)
            if before is None and not self._is_followed_event_by_event(query) and self._forgot_the_start():
                continue  # a job that is started later: what it reads first is not remembered here
            if self._lake.has(query.writes):
                found = self._position(query, before or QueryPosition())
                # The tables of an optional job are there even if nobody runs it.
                if (
                    found.now.silver >= 0
                    or query.job not in OPTIONAL_JOBS
                    or checkpoint_versions(self._lake, query.name)
                ):
                    taken[query.name] = found
        return taken

    def _position(self, query: Query, before: QueryPosition) -> _Taken:
        found = []
        for change in commits(self._lake, query.writes, before.version + 1, newest_version(self._lake, query.writes)):
            if any(batch.reached > self.silver_version for batch in batches_in(query.name, [change])):
                break
            found.append(change)
        batches = batches_in(query.name, found)
        now = before.model_copy(update={"version": found[-1].version if found else before.version})
        for batch in batches:
            # One that reaches no further ran under a watermark of its own all the same.
            now = QueryPosition(
                version=now.version,
                silver=max(now.silver, batch.reached),
                before=now.silver,
                watermark_ms=batch.watermark_ms,
                previous_ms=now.watermark_ms,
            )
        return _Taken(found, batches, before, now)

    def _load_events(self, taken: dict[str, _Taken]) -> None:
        """Creates the table ``event``: what queries have read since the last update, or have open."""
        self._desk.run('CREATE TABLE event AS SELECT hash, event_us, version, kind, "user" FROM kept')
        for part in self._last.parts:
            if any(is_wanted(self._last, name, one.before, one.now, part) for name, one in taken.items()):
                self._desk.fill("event", part.key)

    def _count_queries(self, taken: dict[str, _Taken]) -> dict[str, str]:
        """Counts what became of events in each query; returns the files that it goes on from."""
        desk, lake, files = self._desk, self._lake, {}
        moves = [(name, one.before, one.now) for name, one in taken.items()]
        files[UNREAD] = count_unread(desk, self._last, moves)
        for one in followed(self._settings):
            if one.name not in taken:
                continue
            follower, part = Follower(desk, lake, one, self._last.since_us), taken[one.name]
            desk.load(follower.table, self._last.files.get(follower.table), OPEN_SCHEMA)
            if one.name == sessionize.NAME and part.before.silver < 0 <= part.now.silver:
                follower.begin_with(initial_events(lake, one.name))
            follower.take(part.found, part.batches, part.before, part.now)
            files[follower.table] = desk.store(follower.table, f"FROM {follower.table}")
        for query in readers_of(SILVER_EVENTS):
            if query.name in taken and not self._is_followed_event_by_event(query):
                part = taken[query.name]
                take_measured(desk, query, self._settings, part.batches, part.before, part.now)
                if query.writes == CAMPAIGN_STATS:
                    desk.load("windows", self._last.files.get("windows"), WINDOWS_SCHEMA)
                    prove_windows(desk, lake, self._settings, part.found, part.now, self._last.since_us)
                    files["windows"] = desk.store("windows", "FROM windows")
        return files

    def _is_followed_event_by_event(self, query: Query) -> bool:
        return any(query.name == one.name for one in followed(self._settings))

    def _forgot_the_start(self) -> bool:
        return self._last.silver >= 0 and (not self._last.parts or self._last.parts[0].first > 0)

    def _is_needed(self, part: Part, watermark_ms: int, positions: dict[str, QueryPosition]) -> bool:
        read = min(positions.get(one.name, QueryPosition()).silver for one in followed(self._settings))
        read = min([read, *(position.silver for position in positions.values())])
        return part.until_us is None or part.until_us > watermark_ms * 1000 or part.last > read

    def _with_quarantine(self) -> tuple[str, ...]:
        if not self._desk.one("SELECT count(*) FROM quarantined"):
            return self._last.quarantine
        keys = (*self._last.quarantine, self._desk.store("quarantine", "FROM quarantined"))
        return merged_files(self._desk, "quarantine-merged", keys, records.QUARANTINE_SCHEMA, "FROM merging")

    def _stored(self) -> dict[str, str]:
        return {
            "tally": self._desk.store("tally", _SUMS.format("tally")),
            "late": self._desk.store("late", "FROM late"),
            records.HELD: self._desk.store(records.HELD, f"FROM {records.HELD}"),
            ACCOUNT: self._desk.store(ACCOUNT, _SUMS.format("(FROM tally UNION ALL FROM state)") + " ORDER BY ALL"),
        }
