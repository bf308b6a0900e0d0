"""Appends to a Delta table exactly once, without reading the whole log of the table for each batch.

``DataFrameWriter`` with ``txnAppId`` asks for the state of the table, to learn which batch its writer committed last.
Spark computes that state from the log, in a job of three stages for every commit: half of the CPU time of a small
batch. What it is needed for costs next to nothing otherwise:

- *the batch is already there*: a process that has appended knows its last batch, so it reads newer commits only;
- *another process commits it meanwhile*: Delta refuses a commit if another one named the same writer after the
  transaction began.

So the first append of a writer in a process goes through ``DataFrameWriter``, and later ones through Delta's own
transaction. That has no public API: see :mod:`spark_jobs.spark.delta_internals`, which also checks that the Delta at
hand has it. With another Delta, every append goes through ``DataFrameWriter``.

Every 50th commit Delta writes a checkpoint of the table's log, within the commit: two seconds in which the rows of a
live batch wait. Here a thread of its own writes it after the commit, one table after the other. It lists every file of
the table, 139 bytes each, so those of a large table are further apart::

    files of the table     a checkpoint     one every          kept in 30 days, at a commit every 10 s
    10,000                   1.4 MB            50 commits        7 GB
    1,000,000                139 MB           550 commits       66 GB (720 GB if every 50 commits)
"""

import json
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from delta.exceptions import MetadataChangedException
from pyspark.sql import DataFrame, DataFrameWriter

from spark_jobs.contract.tables import Table
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote, note_in
from spark_jobs.spark.delta_internals import Transaction, has_internals


@dataclass(frozen=True)
class _Known:
    """Up to ``version`` of a table, ``batch`` is the last one of a writer: appended or found by this process."""

    version: int
    batch: int


_KNOWN: dict[tuple[str, str], _Known] = {}
"""By table and writer."""
_CHECKPOINT_BYTES = 256 * 1024
"""How many bytes of checkpoints a table's log gets per commit at most, where the next is more than 50 commits away."""
_CHECKPOINTS = ThreadPoolExecutor(1, "checkpoints of logs")
_CHECKPOINT_OF: "dict[str, Future[None]]" = {}
"""By table, the last checkpoint of its log; the next one waits for it, so that none pile up."""
_log = logging.getLogger(__name__)


def append_once(plain: DataFrame, writer: DataFrameWriter, lake: Lake, table: Table, note: CommitNote) -> None:
    """Appends ``plain`` to ``table``, unless the writer of ``note`` has already committed its batch or a later one.

    Args:
        plain: the rows, with the columns of ``table``.
        writer: of these rows, appending to a Delta table; creates the table if it does not exist.
        lake: where the table lies.
        table: which.
        note: who writes, and which batch; the commit carries it as its user metadata.

    Raises:
        ConcurrentTransactionException: another process has committed as the same writer in the meantime.
    """
    key = lake.table(table), note.writer
    # An append that fails leaves nothing known: it may have been committed all the same.
    known = _KNOWN.pop(key, None) if has_internals(plain.sparkSession) else None
    try:
        version = None if known is None else _append_by_transaction(plain, lake, table, note, known)
        if version is None:
            version = _append_by_writer(writer, lake, table, note)
    except MetadataChangedException:  # `adloom maintain` has changed its properties, and nothing was appended
        version = _append_by_writer(writer, lake, table, note)
    _KNOWN[key] = _Known(version, max(note.batch, known.batch if known else note.batch))


def _append_by_writer(writer: DataFrameWriter, lake: Lake, table: Table, note: CommitNote) -> int:
    """Appends through the public API. Returns a version before the commit: what comes after it is still unread."""
    newest = lake.newest_commit(table.path)
    once = writer.option("txnAppId", note.writer).option("txnVersion", note.batch)
    once.option("userMetadata", note.as_metadata()).save(lake.table(table))
    return -1 if newest is None else newest


def _append_by_transaction(rows: DataFrame, lake: Lake, table: Table, note: CommitNote, known: _Known) -> int | None:
    """Appends through Delta's own transaction.

    Returns:
        The version reached; None if nothing was appended, because the table was recreated meanwhile.
    """
    transaction = Transaction(rows.sparkSession, lake.table(table), writer=note.writer)
    if transaction.version < known.version:
        return None
    if _is_done(lake, table, note, known, transaction.version):
        return transaction.version
    version = transaction.append(rows, table.partition_by, batch=note.batch, metadata=note.as_metadata())
    before = _CHECKPOINT_OF.get(lake.table(table))
    is_free = before is None or before.done()
    if is_free and transaction.is_log_due(version) and _is_worth_a_checkpoint(lake, table, version):
        coming = _CHECKPOINT_OF[lake.table(table)] = _CHECKPOINTS.submit(transaction.checkpoint_log)
        coming.add_done_callback(_report)
    return version


def _is_worth_a_checkpoint(lake: Lake, table: Table, version: int) -> bool:
    """Whether enough commits follow the last checkpoint of the log for another one of its size to be worth writing."""
    pointer = lake.files.read(f"{table.path}/_delta_log/_last_checkpoint")
    try:
        last = json.loads(pointer or b"{}")
        return (version - int(last["version"])) * _CHECKPOINT_BYTES >= int(last["sizeInBytes"])
    except (ValueError, KeyError, TypeError):
        return True  # no checkpoint yet, or one of unknown size


def _report(checkpoint: "Future[None]") -> None:
    if error := checkpoint.exception():
        # A session that ends meanwhile is no reason to worry: another process writes the next one.
        _log.info("the checkpoint of a table's log was not written: %s", error)


def _is_done(lake: Lake, table: Table, note: CommitNote, known: _Known, until: int) -> bool:
    """Whether the batch of ``note``, or a later one, is known, or in a commit after the known ones up to ``until``."""
    if note.batch <= known.batch:
        return True
    for version in range(known.version + 1, until + 1):
        other = note_in(lake.files.read(commit_key(table, version)) or b"")
        if other and other.writer == note.writer and other.batch >= note.batch:
            return True
    return False
