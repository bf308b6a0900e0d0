"""The ledger of a whole lake: where each event went, key by key, from the tables alone. No Spark.

Nothing here relies on what a query reports about itself: a killed query reports nothing, and a lost row is missing
from the report too. A row that is not in the next table counts as late only if it can have been late: if rows received
before it were so much newer that the watermark may have passed it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa

from spark_jobs.config.choices import DeduplicateMode
from spark_jobs.config.durations import microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import HEARTBEAT, INVALID_UTF8, OK, RECORD_TOO_LARGE
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, LATE_EVENTS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.table_files import TableFile, live_files
from spark_jobs.ledger.followed_queries import followed
from spark_jobs.ledger.initial_events import initial_events
from spark_jobs.ledger.read_files import NUMBER, TEXT, TIME, Columns, read_parquet
from spark_jobs.ledger.run.batches import REQUEUED, Group, newest_before
from spark_jobs.ledger.run.bits import bits, if_late, totals_of
from spark_jobs.ledger.run.ledger import Ledger
from spark_jobs.queries.sessionize import query as sessionize

_KEYS_AT_ONCE = 4_000_000
"""Rows whose keys are compared in one go; more are divided by their keys, so that the counts fit into memory."""
_MEMORY = "2GB"
_EVENT: Columns = {"event_type": TEXT, "event_id": TEXT}
_BRONZE: Columns = {**_EVENT, "event_time": TIME, "ingest_time": TIME, "verdict": TEXT, "requeued_from": TIME}
_RAW: Columns = {"raw": TEXT, "source": TEXT, "ingest_time": TIME, "verdict": TEXT, "requeued_from": TIME}
_SILVER: Columns = {"event_id": TEXT, "event_time": TIME, "ingest_time": TIME, "user_id": TEXT}
_LATE: Columns = {**_EVENT, "is_expired": pa.bool_()}
_KEY, _BATCH = "hash(event_type, event_id)", "epoch_us(ingest_time), epoch_us(event_time)"
_GROUPS = 'SELECT "table", label, ingest_us, max(newest_us), sum(n)::BIGINT FROM groups GROUP BY ALL'
_STILL_QUARANTINED = f"""
WITH told AS (
    SELECT raw, source, ingest_us, verdict, count(*) AS n,
        verdict IN ('{INVALID_UTF8}', '{RECORD_TOO_LARGE}') AND contains(source, '#bytes=') AS may_not_fit
    FROM refused GROUP BY ALL
), again AS (
    SELECT raw, source, ingest_us, count(*) AS times FROM anew GROUP BY ALL
), each AS (
    SELECT *, sum(n) OVER (PARTITION BY raw, source, ingest_us) AS same
    FROM told LEFT JOIN again USING (raw, source, ingest_us)
)
-- Rows that are equal were requeued together, but for those whose bytes are no text: these stay.
SELECT verdict, sum(CASE WHEN times IS NULL THEN n WHEN may_not_fit THEN greatest(same - times, 0) ELSE 0 END) AS still
FROM each GROUP BY verdict HAVING still > 0 ORDER BY verdict
"""
_TABLES = """
CREATE TABLE groups ("table" VARCHAR, label VARCHAR, ingest_us BIGINT, newest_us BIGINT, n BIGINT);
CREATE TABLE bounds ("table" VARCHAR, ingest_us BIGINT, before_us BIGINT);
CREATE TABLE received (key UBIGINT, ingest_us BIGINT, event_us BIGINT);
CREATE TABLE kept (key UBIGINT, ingest_us BIGINT, event_us BIGINT, marks SMALLINT);
CREATE TABLE others (key UBIGINT, marks SMALLINT);
"""


def count_whole_lake(settings: Settings, lake: Lake, folder: Path, *, has_initial: bool) -> Ledger:
    """The ledger of ``lake`` as its tables are now.

    If two events share a hash of type and id, their counts add up, as they do in the totals.

    Args:
        settings: those the lake was written with: its watermarks decide what can have been late.
        lake: the lake.
        folder: takes what does not fit into memory.
        has_initial: whether ``sessionize`` began with events of its own.

    Raises:
        LakeError: a table, or a file of one, is missing.
    """
    with closing(_Account(settings, lake, folder)) as account:
        return account.take(has_initial=has_initial)


class _Account:
    """A DuckDB with what the tables say of each event: its key, and a mark for each table that has it."""

    def __init__(self, settings: Settings, lake: Lake, folder: Path) -> None:
        self._settings, self._lake = settings, lake
        self._sql = duckdb.connect()
        self._sql.execute(f"SET memory_limit = '{_MEMORY}'")
        self._sql.execute("SET temp_directory = ?", [str(folder)])
        # No row is asked for in the order in which it came.
        self._sql.execute("SET preserve_insertion_order = false")
        self._sql.execute(_TABLES)

    def close(self) -> None:
        self._sql.close()

    def take(self, *, has_initial: bool) -> Ledger:
        self._load()
        if has_initial:
            self._add_keys(initial_events(self._lake, sessionize.NAME), "FROM rows", bits("initial"))
        groups = [Group(*row) for row in self._sql.execute(_GROUPS).fetchall()]
        self._bound(groups)
        verdicts = _by_label(groups, BRONZE_EVENTS)
        ok, requeued = verdicts.pop(OK, 0), verdicts.pop(REQUEUED, 0)
        return Ledger(
            received=ok + sum(verdicts.values()),
            quarantined=self._still_quarantined() if requeued else verdicts,
            ok=ok + requeued,
            requeued=requeued,
            attribution=_by_label(groups, ATTRIBUTIONS),
            sessions=_by_label(groups, SESSIONS),
            **self._totals(),
        )

    def _load(self) -> None:
        label = f"CASE WHEN requeued_from IS NULL THEN verdict ELSE '{REQUEUED}' END"
        for _, rows in self._rows(BRONZE_EVENTS, _BRONZE):
            self._group(BRONZE_EVENTS, rows, label)
            self._add("received", rows, f"SELECT {_KEY}, {_BATCH} FROM rows WHERE verdict = '{OK}'")
        joined, chained = followed(self._settings)
        for file, rows in self._rows(SILVER_EVENTS, _SILVER):
            event_type = file.partition["event_type"]
            self._group(SILVER_EVENTS, rows, "''")
            if event_type != HEARTBEAT:
                marks = str(bits("kept", *(["joinable"] if event_type in joined.kinds else [])))
                if event_type in chained.kinds:
                    marks += f" + CASE WHEN user_id IS NULL THEN {bits('userless')} ELSE 0 END"
                else:
                    marks += f" + {bits('sessionless')}"
                key = f"hash('{event_type}', event_id)"
                self._add("kept", rows, f"SELECT {key}, {_BATCH}, {marks} FROM rows")
        for _, rows in self._rows(ATTRIBUTIONS, {"status": TEXT, **joined.columns}):
            self._group(ATTRIBUTIONS, rows, "status", has_batches=False)
            self._add_keys(rows, joined.mentions, bits("attributed"))
        for _, rows in self._rows(SESSIONS, {"ended_by": TEXT, **chained.columns}):
            self._group(SESSIONS, rows, "ended_by", has_batches=False)
            self._add_keys(rows, chained.mentions, bits("sessioned"))
        if self._lake.has(LATE_EVENTS):
            marks = f"CASE WHEN is_expired THEN {bits('late_expired')} ELSE {bits('late_found')} END"
            for _, rows in self._rows(LATE_EVENTS, _LATE):
                self._add_keys(rows, "FROM rows", marks)

    def _rows(self, table: Table, columns: Columns) -> Iterator[tuple[TableFile, pa.Table]]:
        """The files of a table with their rows, one file at a time."""
        newest = self._lake.newest_commit(table.path)
        if newest is None:
            raise LakeError(
                f"lake {self._lake.root} has no table {table.name} ({table.path}) yet; run `adloom run` on it first"
            )
        for file in live_files(self._lake, table, newest):
            if file.rows != 0:
                yield file, read_parquet(self._lake, file.key, columns)

    def _add(self, table: str, rows: pa.Table, query: str) -> None:
        self._sql.register("rows", rows)
        self._sql.execute(f"INSERT INTO {table} {query}")
        self._sql.unregister("rows")

    def _add_keys(self, rows: pa.Table, events: str, marks: int | str) -> None:
        self._add("others", rows, f"SELECT {_KEY}, {marks} FROM ({events})")

    def _group(self, table: Table, rows: pa.Table, label: str, *, has_batches: bool = True) -> None:
        batch, newest = ("epoch_us(ingest_time)", "max(epoch_us(event_time))") if has_batches else ("0", "0")
        counts = f"SELECT '{table.name}', {label}, {batch}, coalesce({newest}, 0), count(*) FROM rows GROUP BY 2, 3"
        self._add("groups", rows, counts)

    def _bound(self, groups: Sequence[Group]) -> None:
        """Notes for each batch the newest event that can lie before it."""
        records = [group for group in groups if group.table == BRONZE_EVENTS.name]
        requeues = {group.ingest_us for group in records if group.label == REQUEUED}
        planned = {group.ingest_us for group in records if group.label != REQUEUED}
        for table in (BRONZE_EVENTS, SILVER_EVENTS):
            # Only what is ok moves event time.
            batches = [one for one in groups if one.table == table.name and one.label in ("", OK, REQUEUED)]
            found = newest_before(batches, requeues, planned)
            columns = zip(*found, strict=True) if found else ((), ())
            rows = pa.table([pa.array(column, NUMBER) for column in columns], names=["ingest_us", "before_us"])
            self._add("bounds", rows, f"SELECT '{table.name}', * FROM rows")

    def _totals(self) -> dict[str, int]:
        (rows,) = self._sql.execute(
            "SELECT (SELECT count(*) FROM received) + (SELECT count(*) FROM kept) + (SELECT count(*) FROM others)"
        ).fetchall()
        parts, sums = rows[0] // _KEYS_AT_ONCE + 1, Counter[str]()
        for part in range(parts):
            found = self._sql.execute(totals_of(self._marked(f"key % {parts} = {part}")))
            names = [one[0] for one in found.description or ()]
            sums.update({name: int(value or 0) for name, value in zip(names, found.fetchall()[0], strict=True)})
        return dict(sums)

    def _marked(self, chosen: str) -> str:
        """What each row says of its event."""
        attribute, sessions = self._settings.attribute, self._settings.sessionize
        late_us = {
            "join_late": microseconds(max(attribute.impression_watermark, attribute.click_watermark)),
            "session_late": microseconds(sessions.watermark + sessions.gap),
        }
        own = self._settings.deduplicate
        late = "0" if own.mode is DeduplicateMode.FOREVER else if_late({"late": microseconds(own.watermark)})
        return (
            f"SELECT key, {bits('received')} + {late} AS marks FROM {_with_bounds('received', BRONZE_EVENTS, chosen)} "
            f"UNION ALL SELECT key, marks + {if_late(late_us)} FROM {_with_bounds('kept', SILVER_EVENTS, chosen)} "
            f"UNION ALL SELECT key, marks FROM others WHERE {chosen}"
        )

    def _still_quarantined(self) -> dict[str, int]:
        """By verdict, the records that are in quarantine still: see :mod:`spark_jobs.ingest.quarantine`."""
        self._sql.execute("CREATE TABLE refused (raw VARCHAR, source VARCHAR, ingest_us BIGINT, verdict VARCHAR)")
        self._sql.execute("CREATE TABLE anew (raw VARCHAR, source VARCHAR, ingest_us BIGINT)")
        for _, rows in self._rows(BRONZE_EVENTS, _RAW):
            refused = f"SELECT md5(raw), source, epoch_us(ingest_time), verdict FROM rows WHERE verdict <> '{OK}'"
            self._add("refused", rows, refused)
            anew = "SELECT md5(raw), source, epoch_us(requeued_from) FROM rows WHERE requeued_from IS NOT NULL"
            self._add("anew", rows, anew)
        return {verdict: int(rows) for verdict, rows in self._sql.execute(_STILL_QUARANTINED).fetchall()}


def _with_bounds(rows: str, table: Table, chosen: str) -> str:
    bounds = f"(SELECT ingest_us, before_us FROM bounds WHERE \"table\" = '{table.name}')"
    return f"(SELECT * FROM {rows} LEFT JOIN {bounds} USING (ingest_us) WHERE {chosen})"


def _by_label(groups: Sequence[Group], table: Table) -> dict[str, int]:
    rows = Counter[str]()
    for group in groups:
        if group.table == table.name:
            rows[group.label] += group.rows
    return dict(sorted(rows.items()))
