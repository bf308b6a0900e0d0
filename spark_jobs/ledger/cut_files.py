"""The cuts of the ledger in the lake: the last one, the next one, and what nobody needs any more."""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.ledger.cut import LEDGER_FORMAT, LEDGERS, LiveLedger, cut_key

ACCOUNT = "account"
"""Name of the file with the account by hour and source."""
_KEPT = 2
"""Cuts that are kept: whoever reads one may still be at it when the next is there."""


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
    """The numbers of the cuts, ascending."""
    names = (name.removesuffix(".json") for name in lake.files.names(LEDGERS) if name.endswith(".json"))
    return sorted(int(name) for name in names if name.isdigit())


def last_cut(lake: Lake) -> LiveLedger | None:
    """The last cut; None without one, or if a version that counted in another way wrote it."""
    for number in reversed(numbers(lake)):
        text = lake.files.read(cut_key(number))
        if text is None:
            continue  # deleted since it was listed: there is a newer one
        try:
            found = LiveLedger.model_validate_json(text)
        except ValidationError:
            return None
        return found if found.format == LEDGER_FORMAT else None
    return None


def save_cut(lake: Lake, cut: LiveLedger) -> None:
    """Makes ``cut`` the last one, and deletes what older ones left.

    Raises:
        LakeError: another process has taken this cut meanwhile.
    """
    if not lake.files.create(cut_key(cut.number), cut.model_dump_json(indent=1).encode()):
        raise LakeError(
            f"another process has taken cut {cut.number} of the ledger of {lake.shown()} meanwhile: this one had lost "
            "its lock. The other one counts; run the command again"
        )
    lake.files.delete(list(_unneeded(lake, cut)))


def rows_of(lake: Lake, cut: LiveLedger) -> list[Row]:
    """The account of ``cut`` by hour and source; empty if newer cuts have replaced it."""
    data = lake.files.read(cut.files[ACCOUNT]) if ACCOUNT in cut.files else None
    if data is None:
        return []
    table = pq.read_table(pa.BufferReader(data))
    return [Row(**row) for row in table.to_pylist()]


def _unneeded(lake: Lake, cut: LiveLedger) -> Iterator[str]:
    kept = {cut_key(cut.number)} | cut.keys
    for number in numbers(lake)[-_KEPT:-1]:
        text = lake.files.read(cut_key(number))
        kept.add(cut_key(number))
        try:
            kept |= LiveLedger.model_validate_json(text or b"").keys
        except ValidationError:
            continue  # of another format: nobody goes on from it
    return (file.key for file in lake.files.walk(LEDGERS) if file.key not in kept)
