"""The ledger of a lake: computed from its tables, written next to them, and checked."""

from collections import Counter
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contracts.errors import LedgerError
from spark_jobs.contracts.events import OK
from spark_jobs.contracts.files import json_bytes
from spark_jobs.contracts.ledger import Ledger
from spark_jobs.contracts.places import LEDGER, LEDGER_REACHED
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import ATTRIBUTIONS, BRONZE_EVENTS, LATE_EVENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.jobs.initial import has_taken, read_taken
from spark_jobs.lake.commits import batches_reached
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import sessionize
from spark_jobs.sources.delta import read_table
from spark_jobs.transforms import accounts
from spark_jobs.transforms.accounts import LakeTables
from spark_jobs.transforms.batches import REQUEUED, Group, newest_before


def balance(spark: SparkSession, settings: Settings, lake: Lake, *, drained: bool) -> Ledger:
    """The ledger of ``lake``, written to its file.

    Args:
        spark: the session.
        settings: those the lake was written with.
        lake: all its tables must exist.
        drained: whether nothing may be open.

    Raises:
        LedgerError: a row is not accounted for, or one is accounted for that was never received.
    """
    ledger = take(spark, settings, lake)
    if drained:
        # Each open row is missing from one table of gold: count it as lost, whatever the reason.
        missing = ledger.unaccounted + ledger.attribution_open + ledger.session_open
        ledger = replace(ledger, unaccounted=missing)
    lake.files.write(LEDGER, json_bytes(ledger.as_json()))
    lake.files.write(LEDGER_REACHED, json_bytes(batches_reached(lake)))
    if ledger.received != ledger.ok + ledger.total_quarantined:
        raise LedgerError(
            f"the accounts of {lake.root} do not balance: of {ledger.received} records {ledger.ok} are ok, "
            f"{ledger.requeued} of them requeued, and {ledger.total_quarantined} in quarantine: a record was requeued "
            "twice, or a row of bronze is gone; do not count money from these tables: keep them for inspection and run "
            "again into a new lake"
        )
    if (
        ledger.unaccounted
        or ledger.surplus
        or ledger.ok != ledger.kept + ledger.duplicates + ledger.late + ledger.unaccounted
    ):
        raise LedgerError(
            f"the accounts of {lake.root} do not balance: of {ledger.ok} good records {ledger.kept} were kept, "
            f"{ledger.duplicates} are duplicates, {ledger.late} late; {ledger.unaccounted} are unaccounted for and "
            f"{ledger.surplus} rows too many (see {lake.place(LEDGER)}); do not count money from these tables: "
            "keep them for inspection and run again into a new lake"
        )
    return ledger


def take(spark: SparkSession, settings: Settings, lake: Lake) -> Ledger:
    """The ledger of ``lake`` as its tables are now.

    Raises:
        LakeError: a table is missing.
    """
    tables = LakeTables(
        bronze=read_table(spark, lake, BRONZE_EVENTS),
        silver=read_table(spark, lake, SILVER_EVENTS),
        attributions=read_table(spark, lake, ATTRIBUTIONS),
        sessions=read_table(spark, lake, SESSIONS),
        initial=read_taken(spark, lake, sessionize.QUERY) if has_taken(lake, sessionize.QUERY) else None,
        late_events=read_table(spark, lake, LATE_EVENTS) if lake.has(LATE_EVENTS) else None,
    )
    groups = [Group(**row.asDict()) for row in accounts.groups(tables).collect()]
    bounds = {table: _bounds(spark, groups, table) for table in ("bronze", "silver")}
    keys = accounts.key_accounts(tables, bounds["bronze"], bounds["silver"], settings)
    (sums,) = accounts.totals(keys).collect()
    verdicts = _by_label(groups, "bronze")
    ok, requeued = verdicts.pop(OK, 0), verdicts.pop(REQUEUED, 0)
    return Ledger(
        received=ok + sum(verdicts.values()),
        quarantined=accounts.still_quarantined(tables.bronze) if requeued else verdicts,
        ok=ok + requeued,
        requeued=requeued,
        attribution=_by_label(groups, "attributions"),
        sessions=_by_label(groups, "sessions"),
        **sums.asDict(),
    )


def _bounds(spark: SparkSession, groups: list[Group], table: str) -> DataFrame:
    records = [group for group in groups if group.table == "bronze"]
    requeues = {group.ingest_us for group in records if group.label == REQUEUED}
    planned = {group.ingest_us for group in records if group.label != REQUEUED}
    # Only what is ok moves event time.
    batches = [group for group in groups if group.table == table and group.label in ("", OK, REQUEUED)]
    found = newest_before(batches, requeues, planned)
    return spark.createDataFrame(found, "ingest_us BIGINT, newest_before_us BIGINT")


def _by_label(groups: list[Group], table: str) -> dict[str, int]:
    rows: Counter[str] = Counter()
    for group in groups:
        if group.table == table:
            rows[group.label] += group.rows
    return dict(sorted(rows.items()))
