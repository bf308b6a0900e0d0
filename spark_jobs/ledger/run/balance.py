"""The ledger of a lake: computed from its tables, written next to them, and checked."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from spark_jobs.config.settings import Settings
from spark_jobs.errors import LedgerError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.store.files import json_bytes
from spark_jobs.ledger.run import count
from spark_jobs.ledger.run.ledger import Ledger
from spark_jobs.places import LEDGER, LEDGER_COUNTED_UP_TO, REPAIR, REPAIRS, REQUEUE, REQUEUED
from spark_jobs.queries.initial_state import has_taken
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.registry import QUERIES
from spark_jobs.queries.sessionize import query as sessionize


def balance(settings: Settings, lake: Lake, *, drained: bool) -> Ledger:
    """The ledger of ``lake``, written to its file.

    Args:
        settings: those the lake was written with.
        lake: all its tables must exist.
        drained: whether nothing may be open.

    Raises:
        LedgerError: a row is not accounted for, or one is accounted for that was never received.
    """
    ledger = count_run(settings, lake)
    if drained:
        # Each open row is missing from one table of gold: count it as lost, whatever the reason.
        missing = ledger.unaccounted + ledger.attribution_open + ledger.session_open
        ledger = replace(ledger, unaccounted=missing)
    lake.files.write(LEDGER, json_bytes(ledger.as_json()))
    lake.files.write(LEDGER_COUNTED_UP_TO, json_bytes(batches_reached(lake)))
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
            f"{ledger.surplus} rows too many (see {lake.shown(LEDGER)}); do not count money from these tables: "
            "keep them for inspection and run again into a new lake"
        )
    return ledger


def count_run(settings: Settings, lake: Lake) -> Ledger:
    """The ledger of ``lake`` as its tables are now.

    Raises:
        LakeError: a table is missing.
    """
    with TemporaryDirectory(prefix="adloom-ledger-") as folder:
        return count.count_whole_lake(settings, lake, Path(folder), has_initial=has_taken(lake, sessionize.QUERY))


def batches_reached(lake: Lake) -> dict[str, str]:
    """By query, the last batch in its table, as text to compare; queries that have written nothing are left out.

    If records were requeued, ``requeue`` says when, because these rows are a part of no query's batch; if tables were
    repaired, ``repair`` is the number of the last repair.
    """
    found = {query.name: last_note(lake, query.name) for query in QUERIES}
    reached = {query: f"{note.writer} {note.batch}" for query, note in found.items() if note}
    requeued = lake.files.read(REQUEUED)
    if requeued is not None:
        reached[REQUEUE] = requeued.decode().strip()
    if repairs := lake.numbers(REPAIRS):
        reached[REPAIR] = str(repairs[-1])
    return reached
