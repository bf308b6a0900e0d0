"""The account of records: which were kept, which are copies, which came too late.

::

    bronze (versions that deduplicate has read since the last update)
      ├─ verdict not ok ────────────────────────────▶ quarantined
      └─ ok ─┬─ after the frontier ─────────────────▶ held back: silver has not read it yet
             ├─ in silver, same time and batch ─────▶ kept
             ├─ the same event is in silver ────────▶ duplicate, proved
             ├─ behind the watermark of its batch ─┬▶ late: see spark_jobs.ledger.late_records
             ├─ another event of its id is there ──┘
             └─ neither ────────────────────────────▶ unaccounted: a row is lost

:mod:`spark_jobs.queries.identity` defines what the same event is. Spark compares no times: it remembers an id until its
watermark is ``deduplicate.watermark`` past the event, and until then drops another event of that id as if it were a
copy. That event counts as late, however new it is, because a repair brings it in like all that silver lacks.
"""

from collections.abc import Sequence

import pyarrow as pa

from spark_jobs.contract.events import EVENT_TYPES, HEARTBEAT, OK
from spark_jobs.contract.record_places import FURTHER
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import Commit
from spark_jobs.lake.table_files import TableFile
from spark_jobs.ledger.model import RECORDS, Ledger, RecordKind
from spark_jobs.ledger.read_files import NUMBER, TEXT, TIME, Batch, Columns, late_us_of, read_files
from spark_jobs.ledger.workbench import LedgerDatabase, nearness
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE

REQUEUE = "requeue"
_BRONZE: Columns = {
    "event_type": TEXT,
    "event_id": TEXT,
    "event_time": TIME,
    "ingest_time": TIME,
    "verdict": TEXT,
    "source_name": TEXT,
    "source": TEXT,
    "requeued_from": TIME,
}
_SILVER: Columns = {"event_id": TEXT, "event_time": TIME, "ingest_time": TIME, "user_id": TEXT}
_CONSTANTS: Columns = {"version": NUMBER, "late_us": NUMBER}
_BLOCK = "#bytes="
"""In the ``source`` of JSON lines: many have the same one, so only their text distinguishes them."""
KEPT_SCHEMA = 'hash BIGINT, event_us BIGINT, version BIGINT, kind TINYINT, "user" BIGINT'
LATE_SCHEMA = "hash BIGINT, event_us BIGINT, source VARCHAR, version BIGINT, is_pending BOOLEAN"
HELD = "held"
HELD_SCHEMA = "hash BIGINT, event_us BIGINT, ingest_us BIGINT, source VARCHAR, version BIGINT, late_us BIGINT"
QUARANTINE_SCHEMA = "origin BIGINT, ingest_us BIGINT, event_us BIGINT, source VARCHAR, verdict VARCHAR"


def take_records(desk: LedgerDatabase, lake: Lake, bronze: Sequence[Commit], batches: Sequence[Batch]) -> None:
    """Creates the table ``record`` from the commits of bronze, and counts what was received and quarantined."""
    files: dict[bool, list[tuple[TableFile, dict[str, int]]]] = {False: [], True: []}
    for change in bronze:
        if change.is_of(INGEST) or change.is_by(REQUEUE):
            constants = {"version": change.version, "late_us": late_us_of(change.version, batches)}
            files[_needs_raw(change)] += [(file, constants) for file in change.added]
    placed, in_blocks = (
        read_files(lake, files[is_block], {**_BRONZE, **({"raw": TEXT} if is_block else {})}, _CONSTANTS)
        for is_block in (False, True)
    )
    with desk.seeing(placed=placed, in_blocks=in_blocks):
        desk.run(
            f"""
            CREATE TABLE record AS
            WITH bronze_rows AS (FROM in_blocks UNION ALL BY NAME FROM placed)
            SELECT epoch_us(event_time) AS event_us, epoch_us(ingest_time) AS ingest_us, source_name AS source, verdict,
              version, late_us, epoch_us(requeued_from) AS requeued_us,
              regexp_matches(bronze_rows.source, '{FURTHER}') AS is_further,
              CASE WHEN verdict = '{OK}' THEN key_of(event_type, event_id) END AS hash,
              CASE WHEN verdict <> '{OK}' OR requeued_from IS NOT NULL THEN
                key_of(CASE WHEN contains(bronze_rows.source, '{_BLOCK}') THEN raw ELSE '' END, bronze_rows.source) END
                AS origin
            FROM bronze_rows
            """
        )
    desk.count(RECORDS, RecordKind.RECEIVED, "FROM record WHERE requeued_us IS NULL")
    desk.count(RECORDS, RecordKind.FURTHER, "FROM record WHERE requeued_us IS NULL AND is_further")
    desk.count(RECORDS, RecordKind.OK, f"FROM record WHERE verdict = '{OK}'")
    desk.run(
        f"CREATE TABLE quarantined AS SELECT origin, ingest_us, event_us, source, verdict FROM record "
        f"WHERE verdict <> '{OK}'"
    )
    _count_quarantined(desk, "quarantined", 1)
    _count_foreign(desk, lake, BRONZE_EVENTS.name, bronze)


def _needs_raw(change: Commit) -> bool:
    """Whether the rows of a commit may have been read in blocks of a file."""
    reached = change.note.reached if change.note else []
    return change.is_by(REQUEUE) or any("logOffset" in str(end) for end in reached)


def take_requeued(desk: LedgerDatabase, ledger: Ledger) -> None:
    """Moves requeued records out of quarantine, to the hour and source that they have now."""
    if not desk.one("SELECT count(*) FROM record WHERE requeued_us IS NOT NULL"):
        return
    desk.run(f"CREATE TABLE in_quarantine ({QUARANTINE_SCHEMA})")
    for key in ledger.quarantine:
        desk.fill("in_quarantine", key)
    desk.run("INSERT INTO in_quarantine FROM quarantined")
    # Of equal records in one block, each is requeued once.
    for name, rows, time in (
        ("before", "in_quarantine", "ingest_us"),
        ("since", "record WHERE requeued_us IS NOT NULL", "requeued_us"),
    ):
        desk.run(
            f"CREATE TABLE {name} AS SELECT *, {time} AS received_us, "
            f"row_number() OVER (PARTITION BY origin, {time}) AS place FROM {rows}"
        )
    desk.run(
        "CREATE TABLE judged_anew AS SELECT q.*, r.event_us AS now_us, r.source AS now_source FROM before q "
        "JOIN since r USING (origin, received_us, place)"
    )
    _count_quarantined(desk, "judged_anew", -1)
    desk.count(RECORDS, RecordKind.RECEIVED, "FROM judged_anew", sign=-1)
    desk.count(RECORDS, RecordKind.RECEIVED, "SELECT now_us AS event_us, now_source AS source FROM judged_anew")
    desk.count(RECORDS, RecordKind.REQUEUED, "SELECT now_us AS event_us, now_source AS source FROM judged_anew")
    # A record that has become a list of events: the others were not there before.
    for kind in (RecordKind.RECEIVED, RecordKind.FURTHER):
        desk.count(RECORDS, kind, "FROM since ANTI JOIN before USING (origin, received_us, place)")


def take_kept(desk: LedgerDatabase, lake: Lake, silver: Sequence[Commit]) -> None:
    """Creates the table ``kept`` from the commits of silver: its events, each with its batch."""
    added = [
        (file, {"version": change.version, "event_type": file.partition["event_type"]})
        for change in silver
        if change.is_of(DEDUPLICATE)
        for file in change.added
        if file.partition["event_type"] != HEARTBEAT
    ]
    rows = read_files(lake, added, _SILVER, {"version": NUMBER, "event_type": TEXT})
    kinds = " ".join(f"WHEN '{name}' THEN {number}" for number, name in enumerate(EVENT_TYPES))
    with desk.seeing(silver_rows=rows):
        desk.run(
            f"""
            CREATE TABLE kept AS
            SELECT key_of(event_type, event_id) AS hash, epoch_us(event_time) AS event_us,
              epoch_us(ingest_time) AS ingest_us, version,
              (CASE event_type {kinds} END)::TINYINT AS kind, key_of('', user_id) AS "user"
            FROM silver_rows
            """
        )


def hold_back(desk: LedgerDatabase, settled: int, frontier_us: int | None) -> None:
    """Creates the table ``fit`` of good records that silver has read, and leaves the others in ``held``.

    Args:
        desk: with ``record``, and in ``held`` those of before.
        settled: the last version of bronze that silver has read to the last row.
        frontier_us: of later ones it has read the rows up to this event time; None: all.
    """
    columns = "hash, event_us, ingest_us, source, version, late_us"
    is_held = "false" if frontier_us is None else f"version > {settled} AND event_us > {frontier_us}"
    desk.run(f"INSERT INTO {HELD} SELECT {columns} FROM record WHERE verdict = '{OK}'")
    desk.run(f"CREATE TABLE fit AS FROM {HELD} WHERE NOT ({is_held})")
    desk.run(f"DELETE FROM {HELD} WHERE NOT ({is_held})")
    desk.run(
        f"INSERT INTO state SELECT '{RECORDS}', '{RecordKind.HELD.value}', NULL, hour_of(event_us), source, count(*) "
        f"FROM {HELD} GROUP BY ALL"
    )


def settle(desk: LedgerDatabase, ledger: Ledger) -> None:
    """Gives each record in ``fit`` its fate. ``late`` is the table of records whose fate is not known yet."""
    by, by_event = "USING (hash, event_us, ingest_us)", "hash, event_us"
    desk.run(f"CREATE TABLE matched AS SELECT f.* FROM fit f SEMI JOIN kept {by}")
    desk.run(f"CREATE TABLE rest AS SELECT f.* FROM fit f ANTI JOIN kept {by}")
    _count_copies_in_one_batch(desk)
    desk.run(f"CREATE TABLE known AS {nearness('rest', 'kept')}")
    if desk.one("SELECT count(*) FROM rest"):
        for part in ledger.parts:
            with desk.seeing(stored=desk.stored(part.key, ["hash", "event_us"])):
                desk.run(f"INSERT INTO known {nearness('rest', 'stored')}")
    desk.run(
        "CREATE TABLE lacking AS SELECT r.*, k.is_near FROM rest r LEFT JOIN "
        f"(SELECT {by_event}, bool_or(is_near) AS is_near FROM known GROUP BY ALL) k USING ({by_event})"
    )
    desk.count(RECORDS, RecordKind.DUPLICATE, "FROM lacking WHERE is_near")
    since_us = -1 if ledger.since_us is None else ledger.since_us
    strange = "FROM lacking WHERE is_near IS NULL AND event_us >"
    desk.count(RECORDS, RecordKind.UNPROVED, f"{strange} late_us AND event_us <= {since_us}")
    desk.count(RECORDS, RecordKind.UNACCOUNTED, f"{strange} greatest(late_us, {since_us})")
    # The first copy came too late, a later one of another time did not: the event was kept.
    desk.run(f"CREATE TABLE turned AS SELECT {by_event} FROM ({nearness('late', 'kept')}) WHERE is_near")
    desk.count(RECORDS, RecordKind.DUPLICATE, f"FROM late SEMI JOIN turned USING ({by_event})")
    desk.run(f"DELETE FROM late WHERE ({by_event}) IN (FROM turned)")
    desk.run(
        "INSERT INTO late SELECT hash, event_us, source, version, false FROM lacking "
        "WHERE NOT is_near OR (is_near IS NULL AND event_us <= late_us)"
    )


def count_foreign_silver(desk: LedgerDatabase, lake: Lake, silver: Sequence[Commit]) -> None:
    """Counts events that others than ``deduplicate`` took from silver, or put there."""
    for change in silver:
        if change.is_empty or change.is_of(DEDUPLICATE):
            continue
        sides = [
            read_files(
                lake,
                [(file, {"event_type": file.partition["event_type"]}) for file in files],
                {"event_id": TEXT, "event_time": TIME},
                {"event_type": TEXT},
            )
            for files in (change.removed, change.added)
        ]
        lost, gained = differences(desk, *sides)
        desk.count(RECORDS, RecordKind.KEPT, lost, source="NULL", sign=-1)
        desk.count(RECORDS, RecordKind.UNACCOUNTED, lost, source="NULL")
        desk.count(RECORDS, RecordKind.SURPLUS, gained, source="NULL")


def differences(
    desk: LedgerDatabase, removed: pa.Table, added: pa.Table, *, events: str = "FROM rows"
) -> tuple[str, str]:
    """Queries for the events that only one of two tables has.

    ``events`` gives their ``event_type``, ``event_id`` and ``event_time``, in SQL over ``rows``.
    """
    for name, rows in (("rows_out", removed), ("rows_in", added)):
        with desk.seeing(rows=rows):
            desk.run(
                f"CREATE OR REPLACE TABLE {name} AS SELECT key_of(event_type, event_id) AS hash, "
                f"epoch_us(event_time) AS event_us FROM ({events}) WHERE event_type <> '{HEARTBEAT}'"
            )
    return "FROM rows_out EXCEPT ALL FROM rows_in", "FROM rows_in EXCEPT ALL FROM rows_out"


def _count_copies_in_one_batch(desk: LedgerDatabase) -> None:
    """Of equal copies in one batch one was kept; their sources do not say which: the first by name is."""
    desk.run(
        """
        CREATE TABLE copies AS
        SELECT event_us, source FROM (
          SELECT *, row_number() OVER (PARTITION BY hash, event_us, ingest_us ORDER BY source) AS place
          FROM matched SEMI JOIN (SELECT hash FROM matched GROUP BY hash HAVING count(*) > 1) USING (hash)
        ) WHERE place > 1
        """
    )
    desk.count(RECORDS, RecordKind.KEPT, "FROM matched")
    desk.count(RECORDS, RecordKind.KEPT, "FROM copies", sign=-1)
    desk.count(RECORDS, RecordKind.DUPLICATE, "FROM copies")
    counts = "(SELECT count(*) FROM kept) - (SELECT count(*) FROM matched) + (SELECT count(*) FROM copies)"
    desk.run(f"INSERT INTO tally SELECT '{RECORDS}', '{RecordKind.SURPLUS.value}', NULL, NULL, NULL, {counts}")


def _count_quarantined(desk: LedgerDatabase, rows: str, sign: int) -> None:
    desk.run(
        f"INSERT INTO tally SELECT '{RECORDS}', '{RecordKind.QUARANTINED.value}', verdict, hour_of(event_us), source, "
        f"{sign} * count(*) FROM {rows} GROUP BY ALL"
    )


def _count_foreign(desk: LedgerDatabase, lake: Lake, table: str, found: Sequence[Commit]) -> None:
    """Counts the rows of bronze that others removed and added, without asking which."""
    for change in found:
        if change.is_empty or change.is_of(INGEST) or change.is_by(REQUEUE):
            continue
        removed, added = (sum(_rows(lake, file) for file in files) for files in (change.removed, change.added))
        kind = RecordKind.REMOVED if removed > added else RecordKind.ADDED
        desk.run(
            f"INSERT INTO tally VALUES ('{table}', '{kind.value}', NULL, NULL, NULL, $rows)", rows=abs(removed - added)
        )


def _rows(lake: Lake, file: TableFile) -> int:
    if file.rows is not None:
        return file.rows
    return int(read_files(lake, [(file, {})], {"verdict": TEXT}, {}).num_rows)
