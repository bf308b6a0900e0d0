"""The bound of each table and each folder of a lake, for ``docs/tables.md``."""

from typing import Final

from spark_jobs import places
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    BRONZE_EVENTS,
    CAMPAIGN_STATS,
    CREDITS,
    DAYS,
    LATE_EVENTS,
    LEFT_OUT,
    MARKS,
    MOVING_AVERAGES,
    NET_CREDITS,
    NET_PATHS,
    PATHS,
    RESTATEMENTS,
    SESSIONS,
    SILVER_EVENTS,
    USER_STATUS,
)
from spark_jobs.days.status import QUIET_DAYS
from spark_jobs.operations.releases import RELEASES_KEPT
from spark_jobs.restatements.plans import KEPT
from spark_jobs.traffic_rules.reached import RULES

TABLES: Final = {
    BRONZE_EVENTS.path: "one row per record received, valid or not",
    SILVER_EVENTS.path: "one row per event, and per heartbeat: one a minute in silence",
    ATTRIBUTIONS.path: "at most one row per impression and per click",
    SESSIONS.path: "at most one row per event, conversions aside",
    CAMPAIGN_STATS.path: "one row per campaign and window with impressions or clicks",
    MOVING_AVERAGES.path: "one row per value, and one each time that a key falls silent",
    USER_STATUS.path: "at most two rows per event",
    PATHS.path: "one row per conversion",
    CREDITS.path: "one row per conversion, touch and model",
    LEFT_OUT.path: "at most one row per conversion",
    NET_PATHS.path: f"as `{PATHS.path}`",
    NET_CREDITS.path: f"as `{CREDITS.path}`",
    RESTATEMENTS.path: "one row per row that was changed after it was written, each time",
    LATE_EVENTS.path: "one row per event that came too late",
    MARKS.path: "one row per event and rule, each time that a mark is set or revoked",
    DAYS.path: f"one row per table and date: those with events, and of the last {QUIET_DAYS} days the others",
}
"""By path of a table."""
FOLDERS: Final = {
    places.BATCHES: "one file per table, each of fewer than 2,000 entries",
    places.CHECKPOINTS: "open state, that is, events within the watermarks and windows. For a folder source also the "
    "names of the files that are in it, and of those read since the job started: 11 MB per 100,000 "
    "([your events](events.md#formats)). Replaced versions go with `adloom checkpoints clean`",
    places.CONTRACTS: "one small file per version of the contract",
    places.CREDIT_RUNS: f"the newest {KEPT:,} plans, a small file each, and what the next run goes on from",
    "_feeds": "two small files",
    places.INITIAL: "one table per query with an initial state, written once",
    places.PROGRESS: "a few files per job and per query, of at most a day; Spark's log, up to 80 MB; the last two "
    "states of the ledger, which hold open events and one entry per late event",
    places.RELEASES: f"the newest {RELEASES_KEPT} releases, and those that a job runs or can be rolled back to. Each "
    "machine has as many unpacked in `~/.cache/adloom/releases`, and those that its drivers run",
    places.REPAIRS: f"the newest {KEPT:,} plans, and what the next one of each kind goes on from. Their rows, with the "
    "events that were late, go after `tables.file_retention`, but for those that the next one of each kind reads",
    places.REPORTS: "the last 20 validations; one report per window that was replayed; rows that fail validation, once "
    "per version of their table",
    RULES: "one file per set of rules that was in use, and per list in it",
    places.SCHEMAS: "one file per writer schema",
}
"""By folder below the root of a lake."""
