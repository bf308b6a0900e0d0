"""The rows that a reset appends to a table: the new settings require them, and the old ones had not emitted them."""

import uuid
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.tables import Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.spark.write_delta import append_rows

_RESET = "reset "
PAIR = ("impression_id", "click_id")
"""The key of a ``clicked`` row of ``gold/attributions``."""


def note_of_reset(note: CommitNote) -> CommitNote:
    """The note of a reset's commit after the batch of ``note``: the same progress, but a writer of its own.

    If the reset is killed after it has written, the old checkpoint no longer agrees with the table, and no query starts
    from it.
    """
    return note.model_copy(update={"writer": f"{_RESET}{uuid.uuid4()}", "batch": 0})


def is_of_reset(note: CommitNote) -> bool:
    """Whether a reset made the commit of ``note``."""
    return note.writer.startswith(_RESET)


def append_missing(
    rows: DataFrame, there: DataFrame, lake: Lake, table: Table, note: CommitNote, *, key: Sequence[str]
) -> None:
    """Appends the ``rows`` (the columns of ``table``) whose ``key`` is not ``there``, in at most one commit."""
    missing = rows.join(there.select(*key), on=list(key), how="left_anti").select(*rows.columns)
    append_some(missing, lake, table, note)


def append_some(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
    """Appends ``rows`` to ``table``; without rows, nothing is committed."""
    kept = rows.persist()
    try:
        if kept.agg(F.count("*").alias("rows")).collect()[0]["rows"]:
            append_rows(kept, lake, table, note)
    finally:
        kept.unpersist()
