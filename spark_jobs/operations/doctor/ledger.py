"""Whether every record is accounted for, where a ledger was kept."""

from collections.abc import Iterator

from spark_jobs.ledger.ledger_files import last_ledger
from spark_jobs.ledger.model import RecordKind
from spark_jobs.operations.doctor.description import Check, Finding, Subject, fine, wrong


def _look(subject: Subject) -> Iterator[Finding]:
    ledger = last_ledger(subject.lake)
    if ledger is None:
        yield fine("no ledger is kept; `adloom ledger` begins one")
    elif ledger.balances:
        yield fine(
            f"the ledger of {ledger.taken_at:%Y-%m-%dT%H:%MZ} balances: {ledger.rows(RecordKind.RECEIVED):,} records"
        )
    else:
        yield wrong("the ledger does not balance", "`adloom ledger` shows where; docs/runbook.md has the steps")


CHECK = Check(7, "ledger", _look)
