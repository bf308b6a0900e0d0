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
from spark_jobs.contracts.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.jobs.initial import has_taken, read_taken
from spark_jobs.lake.commits import batches_reached
from spark_jobs.lake.layout import Lake
from spark_jobs.queries import sessionize
from spark_jobs.sources.delta import read_table
from spark_jobs.transforms import accounts
from spark_jobs.transforms.accounts import LakeTables


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
    )
    groups = [accounts.Group(**row.asDict()) for row in accounts.groups(tables).collect()]
    bronze_bounds = _bounds(spark, [group for group in groups if group.table == "bronze" and group.label == OK])
    silver_bounds = _bounds(spark, [group for group in groups if group.table == "silver"])
    keys = accounts.key_accounts(tables, bronze_bounds, silver_bounds, settings)
    (sums,) = accounts.totals(keys).collect()
    verdicts = _by_label(groups, "bronze")
    return Ledger(
        received=sum(verdicts.values()),
        quarantined={verdict: count for verdict, count in verdicts.items() if verdict != OK},
        ok=verdicts.get(OK, 0),
        attribution=_by_label(groups, "attributions"),
        sessions=_by_label(groups, "sessions"),
        **sums.asDict(),
    )


def _bounds(spark: SparkSession, batches: list[accounts.Group]) -> DataFrame:
    return spark.createDataFrame(accounts.newest_before(batches), "ingest_us BIGINT, newest_before_us BIGINT")


def _by_label(groups: list[accounts.Group], table: str) -> dict[str, int]:
    rows: Counter[str] = Counter()
    for group in groups:
        if group.table == table:
            rows[group.label] += group.rows
    return dict(sorted(rows.items()))
