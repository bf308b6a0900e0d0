"""One row of numbers that shows whether the tables agree with the ledger and with each other."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contract.events import ATTRIBUTION_STATUSES, CLICK, HEARTBEAT, IMPRESSION, OK, SESSION_ENDINGS
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.ledger.cut import ALARMS, LiveLedger, RecordKind
from spark_jobs.ledger.run.balance import batches_reached
from spark_jobs.ledger.run.ledger import Ledger
from spark_jobs.places import LEDGER, LEDGER_COUNTED_UP_TO

COMPARED = (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS, SESSIONS)
"""The tables that every event passes through or ends in."""
Numbers = dict[str, int | None]
"""Numbers by name; times in milliseconds since 1970."""


@dataclass(frozen=True)
class LakeCounts:
    """The numbers; each is null when unknown: there is no ledger, or a table is empty or missing.

    Names ending in ``_off`` are differences that should be 0. Times are in milliseconds.
    """

    bronze_rows: int
    silver_events: int
    attributions: int
    sessions: int
    new_rows: int | None
    ledger_received: int | None
    received_off: int | None
    ok_off: int | None
    unaccounted: int | None
    surplus: int | None
    bronze_rows_off: int | None
    bronze_ok_off: int | None
    bronze_requeued_off: int | None
    silver_events_off: int | None
    attributions_off: int | None
    sessions_off: int | None
    unattributed_off: int | None
    unsessioned_off: int | None
    silver_behind_ms: int | None
    silver_events_behind_ms: int | None
    attributions_behind_ms: int | None
    sessions_behind_ms: int | None
    credits_off: int | None = None
    """How many times the credits of a conversion and model do not add up to its value."""

    def as_frame(self, spark: SparkSession) -> DataFrame:
        """The numbers as a DataFrame of one row."""
        names = [field.name for field in fields(self)]
        schema = ", ".join(f"{name} BIGINT" for name in names)
        return spark.createDataFrame([tuple(getattr(self, name) for name in names)], schema)


def read_ledger(lake: Lake) -> Ledger | None:
    """The ledger of the latest run; None if no run has finished.

    Raises:
        LakeError: the file is damaged or of another version.
    """
    text = lake.files.read(LEDGER)
    if text is None:
        return None
    try:
        return Ledger(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise LakeError(
            f"ledger {lake.shown(LEDGER)} cannot be read ({error}); run the pipeline again to rewrite it"
        ) from error


def counts_present_rows(lake: Lake) -> bool:
    """Whether the ledger is up to date: no query has written a batch since. Rows written by others do not count."""
    text = lake.files.read(LEDGER_COUNTED_UP_TO)
    return text is None or json.loads(text) == batches_reached(lake)


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
    live: LiveLedger | None = None,
    credits_off: int | None = None,
) -> LakeCounts:
    """Compares the numbers of all tables (by name, from ``measure``) with each other and with ``ledger``.

    ``new_rows`` is the number of rows added to bronze since the last validation; None at the first. An outdated ledger
    does not cover later rows, so its numbers are compared only with each other; if there is a ``live`` ledger, its
    numbers are instead. ``credits_off`` is taken as it is.
    """
    is_live = live is not None and (ledger is None or not is_current)
    bronze, silver, attributions, sessions = (
        measured[table.name] for table in (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS, SESSIONS)
    )
    return LakeCounts(
        bronze_rows=bronze["rows"] or 0,
        silver_events=silver["events"] or 0,
        attributions=attributions["rows"] or 0,
        sessions=sessions["rows"] or 0,
        new_rows=new_rows,
        **(_of_live(live) if live is not None and is_live else _of_ledger(ledger)),
        **_against_ledger(ledger if is_current else None, bronze, silver, attributions, sessions),
        silver_behind_ms=_behind(bronze["newest_receipt"], silver["newest_receipt"]),
        silver_events_behind_ms=_behind(bronze["newest_event"], silver["newest_event"]),
        attributions_behind_ms=_behind(bronze["newest_event"], attributions["newest_event"]),
        sessions_behind_ms=_behind(bronze["newest_event"], sessions["newest_event"]),
        credits_off=credits_off,
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
    "impressions_and_clicks": f"count_if(event_type IN ('{IMPRESSION}', '{CLICK}'))",
    "newest_receipt": f"unix_millis(max(ingest_time) FILTER (WHERE event_type <> '{HEARTBEAT}'))",
    "newest_event": f"unix_millis(max(event_time) FILTER (WHERE event_type <> '{HEARTBEAT}'))",
}
_ATTRIBUTIONS: Measures = {
    "rows": "count(*)",
    "impressions": "count(DISTINCT CASE WHEN impression_time IS NOT NULL THEN impression_id END)",
    "clicks": "count(click_id)",
    "newest_event": "unix_millis(greatest(max(impression_time), max(click_time)))",
    **{status: f"count_if(status = '{status}')" for status in ATTRIBUTION_STATUSES},
}
_SESSIONS: Measures = {
    "rows": "count(*)",
    "events": "sum(event_count)",
    "newest_event": "unix_millis(max(session_end))",
    **{ending: f"count_if(ended_by = '{ending}')" for ending in SESSION_ENDINGS},
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
    numbers = (
        ledger.received,
        ledger.received - ledger.ok - ledger.total_quarantined,
        ledger.ok - ledger.kept - ledger.duplicates - ledger.late - ledger.unaccounted,
        ledger.unaccounted,
        ledger.surplus,
    )
    return dict(zip(_LEDGER_NUMBERS, numbers, strict=True))


def _of_live(live: LiveLedger) -> Numbers:
    everywhere = Counter(dict.fromkeys(ALARMS, 0))
    for one in live.alarms:
        everywhere[one.kind] += one.rows
    numbers = (
        live.rows(RecordKind.RECEIVED),
        live.received_off,
        live.ok_off,
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
    if ledger is None:
        return dict.fromkeys(_TABLE_NUMBERS)
    events = silver["events"] or 0
    attributed = (attributions["impressions"] or 0) + (attributions["clicks"] or 0)
    sessioned = sessions["events"] or 0
    numbers = (
        (bronze["rows"] or 0) - ledger.received,
        (bronze["ok"] or 0) - ledger.ok,
        (bronze["requeued"] or 0) - ledger.requeued,
        events - ledger.kept - ledger.surplus,
        _difference(attributions, ledger.attribution, ATTRIBUTION_STATUSES),
        _difference(sessions, ledger.sessions, SESSION_ENDINGS),
        (silver["impressions_and_clicks"] or 0) - attributed - ledger.attribution_late - ledger.attribution_open,
        events
        + ledger.session_initial
        - ledger.session_userless
        - ledger.conversions
        - sessioned
        - ledger.session_late
        - ledger.session_open,
    )
    return dict(zip(_TABLE_NUMBERS, numbers, strict=True))


def _difference(found: Numbers, expected: dict[str, int], keys: tuple[str, ...]) -> int:
    """The total by which the counts of ``keys`` differ; one too many and one too few add up to two."""
    return sum(abs((found[key] or 0) - expected.get(key, 0)) for key in keys)


def _behind(ahead: int | None, behind: int | None) -> int | None:
    return None if ahead is None or behind is None else ahead - behind


_LEDGER_NUMBERS = (
    "ledger_received",
    "received_off",
    "ok_off",
    "unaccounted",
    "surplus",
)
_TABLE_NUMBERS = (
    "bronze_rows_off",
    "bronze_ok_off",
    "bronze_requeued_off",
    "silver_events_off",
    "attributions_off",
    "sessions_off",
    "unattributed_off",
    "unsessioned_off",
)
