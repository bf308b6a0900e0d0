"""One row of numbers that shows whether the tables agree with the ledger and with each other."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contract.events import CLICK, CONVERSION, HEARTBEAT, IMPRESSION, OK
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.errors import LakeError
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import commits
from spark_jobs.ledger.model import ALARMS, Ledger, RecordKind
from spark_jobs.places import REQUEUE
from spark_jobs.queries.attribute.query import NAME as ATTRIBUTE
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE

COMPARED = (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS, SESSIONS)
"""The tables that every event passes through or ends in."""
Numbers = dict[str, int | None]
"""Numbers by name; times in milliseconds since 1970."""


@dataclass(frozen=True)
class LakeCounts:
    """The numbers; each is null when unknown: there is no ledger, or a table is empty or missing.

    Names ending in ``_difference`` are differences that should be 0. Times are in milliseconds.
    """

    bronze_rows: int
    silver_events: int
    attributions: int
    sessions: int
    new_rows: int | None
    ledger_received: int | None
    received_difference: int | None
    ok_difference: int | None
    unaccounted: int | None
    surplus: int | None
    bronze_rows_difference: int | None
    bronze_ok_difference: int | None
    bronze_requeued_difference: int | None
    silver_events_difference: int | None
    unattributed_difference: int | None
    unsessioned_difference: int | None
    silver_behind_ms: int | None
    silver_events_behind_ms: int | None
    attributions_behind_ms: int | None
    sessions_behind_ms: int | None
    credits_difference: int | None = None
    """How many times the credits of a conversion and model do not add up to its value."""

    def as_frame(self, spark: SparkSession) -> DataFrame:
        """The numbers as a DataFrame of one row."""
        names = [field.name for field in fields(self)]
        schema = ", ".join(f"{name} BIGINT" for name in names)
        return spark.createDataFrame([tuple(getattr(self, name) for name in names)], schema)


def covers_present(lake: Lake, ledger: Ledger) -> bool:
    """Whether ``ledger`` counts all batches that are in the tables now.

    Rows that are in no batch do not matter: those are what a ledger is to find.
    """
    versions = {INGEST: ledger.bronze, DEDUPLICATE: ledger.silver}
    versions |= {name: position.version for name, position in ledger.positions.items()}
    if any(last_note(lake, name) != last_note(lake, name, until=version) for name, version in versions.items()):
        return False
    newest = lake.newest_commit(BRONZE_EVENTS.path)
    try:
        newer = commits(lake, BRONZE_EVENTS, ledger.bronze + 1, -1 if newest is None else newest)
        return not any(commit.is_by(REQUEUE) for commit in newer)
    except LakeError:
        return False  # nobody knows any more


def measure(table: Table, rows: DataFrame | None) -> Numbers:
    """The numbers of one table, computed from all its ``rows`` in one Spark job; all null if the table is missing."""
    measures = _MEASURES[table.name]
    if rows is None:
        return dict.fromkeys(measures)
    row = rows.agg(*(F.expr(sql).alias(name) for name, sql in measures.items())).first()
    return dict.fromkeys(measures) if row is None else row.asDict()


def compare(
    measured: Mapping[str, Numbers],
    ledger: Ledger | None,
    new_rows: int | None,
    *,
    is_current: bool = True,
    credits_difference: int | None = None,
) -> LakeCounts:
    """Compares the numbers of all tables (by name, from ``measure``) with each other and with the ledger.

    ``new_rows`` is the number of rows added to bronze since the last validation; None at the first. If the ledger
    is not current, later rows are missing in it, so its numbers are compared only with each other.
    ``credits_difference`` is taken as it is.
    """
    bronze, silver, attributions, sessions = (
        measured[table.name] for table in (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS, SESSIONS)
    )
    return LakeCounts(
        bronze_rows=bronze["rows"] or 0,
        silver_events=silver["events"] or 0,
        attributions=attributions["rows"] or 0,
        sessions=sessions["rows"] or 0,
        new_rows=new_rows,
        **_of_ledger(ledger),
        **_against_ledger(ledger if is_current else None, bronze, silver, attributions, sessions),
        silver_behind_ms=_behind(bronze["newest_receipt"], silver["newest_receipt"]),
        silver_events_behind_ms=_behind(bronze["newest_event"], silver["newest_event"]),
        attributions_behind_ms=_behind(bronze["newest_event"], attributions["newest_event"]),
        sessions_behind_ms=_behind(bronze["newest_event"], sessions["newest_event"]),
        credits_difference=credits_difference,
    )


Measures = Mapping[str, str]

_AS_RECEIVED = f"verdict = '{OK}' AND requeued_from IS NULL"
_BRONZE: Measures = {
    "rows": "count_if(requeued_from IS NULL)",
    "requeued": "count_if(requeued_from IS NOT NULL)",
    "ok": f"count_if(verdict = '{OK}')",
    # What is requeued may be late, or a repeat, and so be no reason to expect anything new in silver.
    "newest_receipt": f"unix_millis(max(ingest_time) FILTER (WHERE {_AS_RECEIVED}))",
    "newest_event": f"unix_millis(max(event_time) FILTER (WHERE {_AS_RECEIVED}))",
}
_SILVER: Measures = {
    "events": f"count_if(event_type <> '{HEARTBEAT}')",
    "conversions": f"count_if(event_type = '{CONVERSION}')",
    "impressions_and_clicks": f"count_if(event_type IN ('{IMPRESSION}', '{CLICK}'))",
    "newest_receipt": f"unix_millis(max(ingest_time) FILTER (WHERE event_type <> '{HEARTBEAT}'))",
    "newest_event": f"unix_millis(max(event_time) FILTER (WHERE event_type <> '{HEARTBEAT}'))",
}
_ATTRIBUTIONS: Measures = {
    "rows": "count(*)",
    "impressions": "count(DISTINCT CASE WHEN impression_time IS NOT NULL THEN impression_id END)",
    "clicks": "count(click_id)",
    "newest_event": "unix_millis(greatest(max(impression_time), max(click_time)))",
}
_SESSIONS: Measures = {
    "rows": "count(*)",
    "events": "sum(event_count)",
    "newest_event": "unix_millis(max(session_end))",
}


_MEASURES = {
    BRONZE_EVENTS.name: _BRONZE,
    SILVER_EVENTS.name: _SILVER,
    ATTRIBUTIONS.name: _ATTRIBUTIONS,
    SESSIONS.name: _SESSIONS,
}


def _of_ledger(ledger: Ledger | None) -> Numbers:
    if ledger is None:
        return dict.fromkeys(_LEDGER_NUMBERS)
    everywhere = Counter(dict.fromkeys(ALARMS, 0))
    for one in ledger.alarms:
        everywhere[one.kind] += one.rows
    numbers = (
        ledger.received,
        ledger.received_difference,
        ledger.ok_difference,
        everywhere[RecordKind.UNACCOUNTED] + everywhere[RecordKind.REMOVED],
        everywhere[RecordKind.SURPLUS] + everywhere[RecordKind.ADDED],
    )
    return dict(zip(_LEDGER_NUMBERS, numbers, strict=True))


def _against_ledger(
    ledger: Ledger | None,
    bronze: Numbers,
    silver: Numbers,
    attributions: Numbers,
    sessions: Numbers,
) -> Numbers:
    if ledger is None or ledger.since_us is not None:
        return dict.fromkeys(_TABLE_NUMBERS)
    numbers: Numbers = {
        "bronze_rows_difference": (bronze["rows"] or 0) - ledger.received,
        "bronze_ok_difference": (bronze["ok"] or 0) - ledger.ok,
        "bronze_requeued_difference": (bronze["requeued"] or 0) - ledger.requeued,
        "silver_events_difference": (silver["events"] or 0) - ledger.kept - ledger.rows(RecordKind.SURPLUS),
    }
    if ledger.repair:  # gold has events that silver lacks, and lacks copies that silver has
        return {**dict.fromkeys(_TABLE_NUMBERS), **numbers}
    attributed = (attributions["impressions"] or 0) + (attributions["clicks"] or 0)
    visits = (silver["events"] or 0) - (silver["conversions"] or 0)
    return numbers | {
        "unattributed_difference": (silver["impressions_and_clicks"] or 0)
        - attributed
        - _not_emitted(ledger, ATTRIBUTE),
        "unsessioned_difference": visits
        + ledger.rows(RecordKind.INITIAL, account=SESSIONIZE)
        - ledger.rows(RecordKind.USERLESS, account=SESSIONIZE)
        - (sessions["events"] or 0)
        - _not_emitted(ledger, SESSIONIZE),
    }


def _not_emitted(ledger: Ledger, query: str) -> int:
    return ledger.rows(RecordKind.LATE, RecordKind.PENDING, account=query)


def _behind(ahead: int | None, behind: int | None) -> int | None:
    return None if ahead is None or behind is None else ahead - behind


_LEDGER_NUMBERS = (
    "ledger_received",
    "received_difference",
    "ok_difference",
    "unaccounted",
    "surplus",
)
_TABLE_NUMBERS = (
    "bronze_rows_difference",
    "bronze_ok_difference",
    "bronze_requeued_difference",
    "silver_events_difference",
    "unattributed_difference",
    "unsessioned_difference",
)
