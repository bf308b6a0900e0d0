"""The states of the ledger in the lake: the last one, the next one, and what nobody needs any more."""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.ledger.model import LEDGER_FORMAT, LEDGERS, Ledger, ledger_key

ACCOUNT = "account"
"""Name of the file with the account by hour and source."""
_KEPT = 2
"""States that are kept: whoever reads one may still be at it when the next is there."""


class Row(NamedTuple):
    """How many rows of an account are of one kind.

    ``hour`` counts hours of event time since 1970, None for records without one; ``source`` is None where a record
    belongs to none, and in the accounts of queries.
    """

    account: str
    kind: str
    verdict: str | None
    hour: int | None
    source: str | None
    rows: int


def numbers(lake: Lake) -> list[int]:
    """The numbers of the states, ascending."""
    names = (name.removesuffix(".json") for name in lake.files.names(LEDGERS) if name.endswith(".json"))
    return sorted(int(name) for name in names if name.isdigit())


def last_ledger(lake: Lake) -> Ledger | None:
    """The ledger as last updated; None without one, or if a version that counted in another way wrote it."""
    for number in reversed(numbers(lake)):
        text = lake.files.read(ledger_key(number))
        if text is None:
            continue  # deleted since it was listed: there is a newer one
        try:
            found = Ledger.model_validate_json(text)
        except ValidationError:
            return None
        return found if found.format == LEDGER_FORMAT else None
    return None


def save_ledger(lake: Lake, ledger: Ledger) -> None:
    """Makes ``ledger`` the last one, and deletes what older ones left.

    Raises:
        LakeError: another process has updated it meanwhile.
    """
    if not lake.files.create(ledger_key(ledger.number), ledger.model_dump_json(indent=1).encode()):
        raise LakeError(
            f"another process has updated the ledger of {lake.shown()} meanwhile: this one had lost "
            "its lock. The other one counts; run the command again"
        )
    lake.files.delete(list(_unneeded(lake, ledger)))


def rows_of(lake: Lake, ledger: Ledger) -> list[Row]:
    """The account of ``ledger`` by hour and source; empty if newer states have replaced it."""
    data = lake.files.read(ledger.files[ACCOUNT]) if ACCOUNT in ledger.files else None
    if data is None:
        return []
    table = pq.read_table(pa.BufferReader(data))
    return [Row(**row) for row in table.to_pylist()]


def _unneeded(lake: Lake, ledger: Ledger) -> Iterator[str]:
    kept = {ledger_key(ledger.number)} | ledger.keys
    for number in numbers(lake)[-_KEPT:-1]:
        text = lake.files.read(ledger_key(number))
        kept.add(ledger_key(number))
        try:
            kept |= Ledger.model_validate_json(text or b"").keys
        except ValidationError:
            continue  # of another format: nobody goes on from it
    return (file.key for file in lake.files.walk(LEDGERS) if file.key not in kept)
