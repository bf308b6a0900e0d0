"""The accounts of the queries that follow each event to a row of gold: ``attribute`` and ``sessionize``.

::

    events of silver that the query has read
      ├─ in a row that it wrote ─────────────────────────────▶ emitted
      ├─ the watermark has not passed all that it can affect ▶ pending
      ├─ behind the watermark when it was read ──────────────▶ late
      └─ neither ────────────────────────────────────────────▶ unaccounted: a row is lost

Events of silver that the query has not read yet are pending too. An event in a row that no query can have read is
surplus.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from spark_jobs.config.choices import JoinType
from spark_jobs.config.durations import ROUNDING, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import CLICK, EVENT_TYPES, IMPRESSION, VISIT_TYPES
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import Commit
from spark_jobs.lake.table_files import TableFile
from spark_jobs.ledger.model import QueryPosition, RecordKind
from spark_jobs.ledger.read_files import TEXT, TIME, Batch, Columns, read_files
from spark_jobs.ledger.records import differences
from spark_jobs.ledger.workbench import LedgerDatabase
from spark_jobs.places import REPAIR
from spark_jobs.queries.attribute import query as attribute
from spark_jobs.queries.sessionize import query as sessionize

OPEN_SCHEMA = 'hash BIGINT, event_us BIGINT, "user" BIGINT, version BIGINT, is_behind BOOLEAN, is_done BOOLEAN'
_ROUNDING_US = microseconds(ROUNDING)
_OF_ATTRIBUTIONS = " UNION ALL ".join(
    f"SELECT '{kind}' AS event_type, {kind}_id AS event_id, {kind}_time AS event_time FROM rows "
    f"WHERE {kind}_time IS NOT NULL"
    for kind in (IMPRESSION, CLICK)
)
_OF_SESSIONS = "SELECT unnest(events, recursive := true) FROM rows"
_EVENTS = pa.list_(pa.struct([("event_time", pa.timestamp("us", "UTC")), ("event_type", TEXT), ("event_id", TEXT)]))


@dataclass(frozen=True)
class Followed:
    """A query whose rows name the events that they come from.

    Attributes:
        name: of the query.
        columns: those of its table that name events.
        kinds: the event types that are emitted with or without a counterpart; others are none of its business.
        reach: how far the watermark must pass an event until its row is there.
        grace: how far it must pass an event until that is late.
        horizon: late events this far behind the watermark are counted for good.
        mentions: the events that ``rows`` name (``event_type``, ``event_id``, ``event_time``), in SQL.
        needs_user: events without a user are left out.
        repeats: an event may be in several rows.
        is_chained: the watermark must pass the last of a user's events that follow each other within ``reach``.
        longest: such chains are cut at its multiples since 1970; zero: none is.
    """

    name: str
    columns: Columns
    kinds: tuple[str, ...]
    reach: timedelta
    grace: timedelta
    horizon: timedelta
    mentions: str
    needs_user: bool = False
    repeats: bool = False
    is_chained: bool = False
    longest: timedelta = timedelta()


def followed(settings: Settings) -> tuple[Followed, ...]:
    """The queries that are followed event by event."""
    join, horizon = settings.attribute.join, settings.repair.horizon
    kinds = {
        JoinType.FULL_OUTER: (IMPRESSION, CLICK),
        JoinType.LEFT_OUTER: (IMPRESSION,),
        JoinType.RIGHT_OUTER: (CLICK,),
        JoinType.INNER: (),
    }[join]
    sides = {"impression_id": TEXT, "impression_time": TIME, "click_id": TEXT, "click_time": TIME}
    return (
        Followed(
            attribute.NAME,
            sides,
            kinds,
            settings.attribute.window,
            attribute.QUERY.extra_delay(settings),
            horizon,
            _OF_ATTRIBUTIONS,
            repeats=True,
        ),
        Followed(
            sessionize.NAME,
            {"events": _EVENTS},
            VISIT_TYPES,
            settings.sessionize.gap,
            sessionize.QUERY.extra_delay(settings),
            horizon,
            _OF_SESSIONS,
            needs_user=True,
            is_chained=True,
            longest=settings.sessionize.longest,
        ),
    )


class Follower:
    """Follows one query through one step: its open events are in the table ``open_<name>``."""

    def __init__(self, desk: LedgerDatabase, lake: Lake, query: Followed, since_us: int | None) -> None:
        self._desk, self._lake, self._query = desk, lake, query
        self.table = f"open_{query.name}"
        # An event from before the ledger began may have been read before, and is not known here.
        self._is_since = "true" if since_us is None else f"event_us > {since_us}"
        codes = [EVENT_TYPES.index(kind) for kind in query.kinds]
        self._is_own = f"kind IN ({', '.join(map(str, codes))})" if codes else "false"

    def take(
        self, found: Sequence[Commit], batches: Sequence[Batch], before: QueryPosition, now: QueryPosition
    ) -> None:
        """Brings the account from position ``before`` to ``now``; ``event`` is the table of silver's events."""
        self._read(batches, before)
        self._write(found)
        self._count_foreign(found)
        self._judge(now)

    def begin_with(self, events: pa.Table) -> None:
        """Takes in the events of the initial state (``event_type``, ``event_id``, ``event_time``, ``user_id``)."""
        with self._desk.seeing(given=events):
            self._desk.run(
                f"INSERT INTO {self.table} SELECT key_of(event_type, event_id), epoch_us(event_time), "
                "key_of('', user_id), -1, false, false FROM given"
            )
            given = "SELECT epoch_us(event_time) AS event_us FROM given"
            self._desk.count(self._query.name, RecordKind.INITIAL, given, source="NULL")

    def _read(self, batches: Sequence[Batch], before: QueryPosition) -> None:
        desk, name = self._desk, self._query.name
        watermarks, first = [], before.silver + 1
        for batch in batches:
            watermarks += [(version, batch.watermark_ms * 1000) for version in range(first, batch.reached + 1)]
            first = max(first, batch.reached + 1)
        desk.run(
            "CREATE OR REPLACE TABLE watermarks AS SELECT unnest($versions) AS version, unnest($late) AS late_us",
            versions=[version for version, _ in watermarks],
            late=[late_us for _, late_us in watermarks],
        )
        desk.run(
            f'CREATE OR REPLACE TABLE fresh AS SELECT hash, event_us, "user", version, '
            f"event_us + {microseconds(self._query.grace)} <= late_us AS is_behind, false AS is_done "
            f"FROM event JOIN watermarks USING (version) WHERE {self._is_own}"
        )
        if self._query.needs_user:
            desk.count(name, RecordKind.USERLESS, 'FROM fresh WHERE "user" IS NULL', source="NULL")
            desk.run('DELETE FROM fresh WHERE "user" IS NULL')
        desk.count(name, RecordKind.READ, "FROM fresh", source="NULL")
        desk.run(f"INSERT INTO {self.table} FROM fresh")

    def _write(self, found: Sequence[Commit]) -> None:
        desk = self._desk
        files = [file for change in found if change.is_of(self._query.name) for file in change.added]
        self._mentions("emitted", files)
        strange = f"SELECT e.* FROM emitted e ANTI JOIN {self.table} USING (hash, event_us) WHERE {self._is_since}"
        if self._query.repeats:
            strange = f"SELECT DISTINCT * FROM ({strange})"
        elif desk.one("SELECT count(*) - count(DISTINCT (hash, event_us)) FROM emitted"):
            strange = f"({strange}) UNION ALL (FROM emitted EXCEPT ALL SELECT DISTINCT * FROM emitted)"
        desk.count(self._query.name, RecordKind.SURPLUS, strange, source="NULL")
        desk.run(
            f"UPDATE {self.table} SET is_done = true WHERE (hash, event_us) IN (SELECT hash, event_us FROM emitted)"
        )

    def _mentions(self, name: str, files: Sequence[TableFile]) -> None:
        rows = read_files(self._lake, [(file, {}) for file in files], self._query.columns, {})
        kinds = ", ".join(f"'{kind}'" for kind in self._query.kinds) or "''"
        with self._desk.seeing(rows=rows):
            self._desk.run(
                f"CREATE OR REPLACE TABLE {name} AS SELECT key_of(event_type, event_id) AS hash, "
                f"epoch_us(event_time) AS event_us FROM ({self._query.mentions}) WHERE event_type IN ({kinds})"
            )

    def _count_foreign(self, found: Sequence[Commit]) -> None:
        """Counts the events whose rows others took away, or put there."""
        for change in found:
            if change.is_empty or change.is_of(self._query.name) or change.is_by(REPAIR):
                continue
            sides = [
                read_files(self._lake, [(file, {}) for file in files], self._query.columns, {})
                for files in (change.removed, change.added)
            ]
            lost, gained = differences(self._desk, *sides, events=self._query.mentions)
            self._desk.count(self._query.name, RecordKind.UNACCOUNTED, lost, source="NULL")
            self._desk.count(self._query.name, RecordKind.SURPLUS, gained, source="NULL")

    def _judge(self, now: QueryPosition) -> None:
        """Counts what is open, and forgets what is settled."""
        desk, name, reach = self._desk, self._query.name, microseconds(self._query.reach)
        # An impression may be in more rows, as long as the watermark has not passed it.
        kept_until = f"event_us + {reach + _ROUNDING_US} < {now.previous_ms * 1000}" if self._query.repeats else "true"
        desk.run(f"DELETE FROM {self.table} WHERE is_done AND {kept_until}")
        overdue = f"version <= {now.before} AND event_us + {reach + _ROUNDING_US} < {now.watermark_ms * 1000}"
        is_overdue = f"({overdue})"
        if self._query.is_chained:
            self._chain(reach, overdue)
            is_overdue = f"({overdue} AND end_us + {reach + _ROUNDING_US} < {now.watermark_ms * 1000})"
            rows = f"{self.table} LEFT JOIN chain USING (hash, event_us)"
        else:
            rows = self.table
        desk.run(
            f"CREATE OR REPLACE TABLE judged AS SELECT hash, event_us, CASE WHEN NOT {is_overdue} "
            f"THEN '{RecordKind.PENDING}' WHEN is_behind THEN '{RecordKind.LATE}' ELSE '{RecordKind.UNACCOUNTED}' END "
            f"AS fate FROM {rows} WHERE NOT is_done"
        )
        oldest = now.watermark_ms * 1000 - microseconds(self._query.horizon)
        old = f"fate = '{RecordKind.LATE}' AND event_us < {oldest}"
        desk.count(name, RecordKind.LATE, f"FROM judged WHERE {old}", source="NULL")
        desk.run(f"DELETE FROM {self.table} WHERE (hash, event_us) IN (SELECT hash, event_us FROM judged WHERE {old})")
        unread = f"SELECT hour, '{RecordKind.PENDING.value}' AS fate, rows FROM unread WHERE account = '{name}' "
        unread += f"AND {self._is_own}"
        if self._query.needs_user:
            unread += " AND has_user"
        desk.run(
            f"INSERT INTO state SELECT '{name}', fate, NULL, hour, NULL, sum(rows) FROM (SELECT hour_of(event_us) AS "
            f"hour, fate, 1 AS rows FROM judged WHERE NOT ({old}) UNION ALL {unread}) GROUP BY ALL"
        )

    def _chain(self, reach: int, overdue: str) -> None:
        """For each open event the last of its user's that follow it without a silence longer than ``reach``.

        Only of users with an event that is ``overdue``: hardly anybody has one.
        """
        length = microseconds(self._query.longest)
        of_stretch = f'"user", event_us // {length}' if length else '"user"'
        self._desk.run(
            f"""
            CREATE OR REPLACE TABLE chain AS
            WITH steps AS (
              SELECT hash, "user", event_us,
                event_us - lag(event_us) OVER (PARTITION BY {of_stretch} ORDER BY event_us) > {reach} AS is_first
              FROM {self.table}
              WHERE NOT is_done AND "user" IN (SELECT "user" FROM {self.table} WHERE NOT is_done AND {overdue})
            ),
            chains AS (
              SELECT *, count(*) FILTER (is_first) OVER (PARTITION BY {of_stretch} ORDER BY event_us) AS chain
              FROM steps
            )
            SELECT hash, event_us, max(event_us) OVER (PARTITION BY {of_stretch}, chain) AS end_us FROM chains
            """
        )
