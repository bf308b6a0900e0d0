"""The fate of records that came too late for silver, from what repairs record.

::

    awaiting ──a repair has looked at its version of bronze──┬─ not in silver/late_events ▶ duplicate of an old event
                                                             ├─ beyond repair.horizon ────▶ expired
                                                             ├─ it waits in a table ──────▶ pending ─┐
                                                             ├─ what it changes is final ─▶ frozen ◀─┤
                                                             └─ otherwise ────────────────▶ repaired ◀┘

Repaired: gold is as if the event had been on time. Frozen: ``gold/restatements`` names it as the cause of a change that
was not applied. All copies of a late event share its fate; another event that had its id before or after does not.
"""

import pyarrow as pa

from spark_jobs.contract.tables import LATE_EVENTS, RESTATEMENTS, Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import commits
from spark_jobs.ledger.merging import merged_files
from spark_jobs.ledger.model import RECORDS, Ledger, RecordKind
from spark_jobs.ledger.read_files import TEXT, TIME, Columns, Files, newest_version, read_files, read_parquet
from spark_jobs.ledger.workbench import LedgerDatabase, nearness
from spark_jobs.places import REPAIR, REPAIRS
from spark_jobs.restatements.plan import Cause, ChangeOutcome, RepairDone, RepairPlan, done_key, events_key, plan_key

_KEY: Columns = {"event_type": TEXT, "event_id": TEXT}
_EVENT: Columns = {**_KEY, "event_time": TIME}
_NAMED_SCHEMA = (
    "hash BIGINT, event_us BIGINT, received_us BIGINT, is_late BOOLEAN, is_expired BOOLEAN, is_frozen BOOLEAN"
)
_MERGED = (
    "SELECT hash, event_us, received_us, bool_or(is_late) AS is_late, bool_or(is_expired) AS is_expired, "
    "bool_or(is_frozen) AS is_frozen FROM merging GROUP BY ALL ORDER BY hash"
)


def explain_late_records(desk: LedgerDatabase, lake: Lake, ledger: Ledger) -> Ledger:
    """Gives the records in the table ``late`` the fate that repairs found for them, and counts the others.

    Returns:
        ``ledger`` with what is counted of repairs.
    """
    # Before the repairs: what these versions hold was planned by then.
    versions = {table: newest_version(lake, table) for table in (LATE_EVENTS, RESTATEMENTS)}
    last = _last_repair(lake)
    if last is not None:
        plan, done = last
        # A history that is counted in steps comes to records that the last repair had looked at long before.
        looked_at = f"is_pending OR version <= {plan.bronze_version}"
        if plan.number > ledger.repair or desk.one(f"SELECT count(*) FROM late WHERE {looked_at}"):
            named = _read_named(desk, lake, ledger, versions)
            _waiting(desk, lake, plan, done)
            _look(desk, looked_at)
            ledger = ledger.model_copy(
                update={
                    "repair": plan.number,
                    "late_events": versions[LATE_EVENTS],
                    "restatements": versions[RESTATEMENTS],
                    "found_late": named,
                }
            )
    for kind, is_pending in ((RecordKind.LATE_AWAITING, "NOT is_pending"), (RecordKind.LATE_PENDING, "is_pending")):
        desk.run(
            f"INSERT INTO state SELECT '{RECORDS}', '{kind.value}', NULL, hour_of(event_us), source, count(*) "
            f"FROM late WHERE {is_pending} GROUP BY ALL"
        )
    return ledger


def _look(desk: LedgerDatabase, looked_at: str) -> None:
    """Counts the late records that a repair has looked at; those that wait stay in ``late``."""
    # A frozen change names its cause by the time when that was received.
    desk.run(
        f"""
        CREATE TABLE looked AS
        WITH event AS (
          SELECT l.hash, l.event_us, bool_or(e.is_expired) AS is_expired,
            bool_or(c.is_frozen AND coalesce(e.received_us = c.received_us, true)) AS is_frozen
          FROM (SELECT DISTINCT hash, event_us FROM late) l JOIN named e USING (hash) JOIN named c USING (hash)
          WHERE e.is_late AND are_near(l.event_us, e.event_us) GROUP BY ALL
        ),
        waiter AS (FROM ({nearness("late", "waiting")}) WHERE is_near)
        SELECT l.*, e.hash IS NOT NULL AS is_event, is_expired, is_frozen, coalesce(is_near, false) AS waits
        FROM late l LEFT JOIN event e USING (hash, event_us) LEFT JOIN waiter USING (hash, event_us)
        WHERE {looked_at}
        """
    )
    fates = {
        RecordKind.DUPLICATE: "NOT is_event",
        RecordKind.LATE_EXPIRED: "is_event AND is_expired",
        RecordKind.LATE_FROZEN: "is_event AND NOT is_expired AND NOT waits AND is_frozen",
        RecordKind.LATE_REPAIRED: "is_event AND NOT is_expired AND NOT waits AND NOT is_frozen",
    }
    for kind, condition in fates.items():
        desk.count(RECORDS, kind, f"FROM looked WHERE {condition}")
    desk.run(f"DELETE FROM late WHERE {looked_at}")
    desk.run(
        "INSERT INTO late SELECT hash, event_us, source, version, true FROM looked "
        "WHERE is_event AND NOT is_expired AND waits"
    )


def _read_named(desk: LedgerDatabase, lake: Lake, ledger: Ledger, versions: dict[Table, int]) -> tuple[str, ...]:
    """Creates the table ``named`` of events that repairs name: as late, or as the cause of a change not applied.

    Returns:
        The files that hold it.
    """
    desk.run(f"CREATE TABLE named ({_NAMED_SCHEMA})")
    for key in ledger.found_late:
        desk.fill("named", key)
    late = _added(
        lake,
        LATE_EVENTS,
        ledger.late_events,
        versions[LATE_EVENTS],
        {**_EVENT, "ingest_time": TIME, "is_expired": pa.bool_()},
    )
    restated = _added(
        lake,
        RESTATEMENTS,
        ledger.restatements,
        versions[RESTATEMENTS],
        {**_KEY, "received_at": TIME, "outcome": TEXT, "cause": TEXT},
    )
    with desk.seeing(late_rows=late, restated_rows=restated):
        # A row that a mark would change, and that is too old, says nothing of what became of a late event.
        desk.run(
            "CREATE TABLE new_named AS SELECT key_of(event_type, event_id) AS hash, epoch_us(event_time) AS event_us, "
            "epoch_us(ingest_time) AS received_us, true AS is_late, is_expired, false AS is_frozen FROM late_rows "
            "UNION ALL SELECT DISTINCT key_of(event_type, event_id), NULL, epoch_us(received_at), false, false, true "
            f"FROM restated_rows WHERE outcome = '{ChangeOutcome.FROZEN}' AND cause <> '{Cause.INVALID_TRAFFIC}'"
        )
    desk.run("INSERT INTO named FROM new_named")
    if not desk.one("SELECT count(*) FROM new_named"):
        return ledger.found_late
    keys = (*ledger.found_late, desk.store("named", "FROM new_named ORDER BY hash"))
    return merged_files(desk, "named-merged", keys, _NAMED_SCHEMA, _MERGED)


def _added(lake: Lake, table: Table, counted: int, newest: int, columns: Columns) -> pa.Table:
    """The rows that repairs added to ``table`` after version ``counted``."""
    found = commits(lake, table, counted + 1, newest)
    files: Files = [(file, {}) for change in found if change.is_by(REPAIR) for file in change.added]
    return read_files(lake, files, columns, {})


def _waiting(desk: LedgerDatabase, lake: Lake, plan: RepairPlan, done: RepairDone) -> None:
    """Creates the table ``waiting`` of the events that wait, in whichever table, for a later repair."""
    desk.run("CREATE TABLE waiting (hash BIGINT, event_us BIGINT)")
    for name, part in plan.tables.items():
        if not part.pending and name not in done.failed:
            continue
        for file in lake.files.walk(events_key(plan.folder, name)):
            if not file.name.endswith(".parquet"):
                continue
            rows = read_parquet(lake, file.key, {**_EVENT, "waits": pa.bool_()})
            # A table that somebody had changed is planned again, with all its events.
            with desk.seeing(held=rows):
                desk.run(
                    "INSERT INTO waiting SELECT key_of(event_type, event_id), epoch_us(event_time) FROM held "
                    f"WHERE waits OR {str(name in done.failed).lower()}"
                )


def _last_repair(lake: Lake) -> tuple[RepairPlan, RepairDone] | None:
    """The last repair; None without one, or if it is at work."""
    for number in reversed(lake.numbers(REPAIRS)):
        text = lake.files.read(plan_key(number))
        if text is None:
            continue  # killed before it had planned
        plan = RepairPlan.model_validate_json(text)
        if plan.bronze_version < 0:
            continue  # it changed rows, and looked at no late record
        done = lake.files.read(done_key(number))
        return (plan, RepairDone.model_validate_json(done)) if done else None
    return None
