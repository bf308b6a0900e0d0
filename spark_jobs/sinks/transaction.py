"""Appending to a Delta table exactly once, without a look at all of the table's log for each batch.

``DataFrameWriter`` with ``txnAppId`` asks the state of the table which batch its writer committed last, and Spark sums
up the log for that, in a job of three stages for every commit: half of the CPU time of a small batch. What it is good
for can be had for nothing:

- *done already*: a process that has appended knows its last batch, so only commits that came since are to be read;
- *done meanwhile*: Delta refuses a commit if another one named the same writer after the transaction began.

So the first append of a writer in a process goes by ``DataFrameWriter``, and those after it by Delta's own transaction,
which has no other door than its Scala classes (delta-spark 4.4, ``WriteIntoDelta.run``).
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, DataFrameWriter

from spark_jobs.contracts.commits import CommitNote, note_in
from spark_jobs.contracts.lake import Lake, commit_key
from spark_jobs.contracts.tables import Table


@dataclass(frozen=True)
class _Known:
    """That up to a version a writer's last batch is one that it has appended, or found, in this process."""

    version: int
    batch: int


_KNOWN: dict[tuple[str, str], _Known] = {}
"""By table and writer."""


def append_once(plain: DataFrame, writer: DataFrameWriter, lake: Lake, table: Table, note: CommitNote) -> None:
    """Appends ``plain`` to ``table``, unless the writer of ``note`` has already committed its batch or a later one.

    Args:
        plain: the rows, with the columns of ``table``.
        writer: of these rows, appending to a Delta table; begins the table where it does not exist.
        lake: where the table lies.
        table: which.
        note: who writes, and which batch; the commit bears it as its user metadata.

    Raises:
        ConcurrentTransactionException: another process has committed as the same writer meanwhile.
    """
    key = lake.table(table), note.writer
    # An append that fails leaves nothing known: it may have been committed all the same.
    known = _KNOWN.pop(key, None)
    version = None if known is None else _go_on(plain, lake, table, note, known)
    if version is None:
        version = _begin(writer, lake, table, note)
    _KNOWN[key] = _Known(version, max(note.batch, known.batch if known else note.batch))


def _begin(writer: DataFrameWriter, lake: Lake, table: Table, note: CommitNote) -> int:
    """Appends as Spark's users do. Returns a version before the commit: what comes after it is to be looked at."""
    newest = lake.newest_commit(table.path)
    once = writer.option("txnAppId", note.writer).option("txnVersion", note.batch)
    once.option("userMetadata", _text(note)).save(lake.table(table))
    return -1 if newest is None else newest


def _go_on(rows: DataFrame, lake: Lake, table: Table, note: CommitNote, known: _Known) -> int | None:
    """Appends by Delta's own transaction. Returns the version reached; None if this is another table by now."""
    session = rows.sparkSession
    java, jvm = session._jsparkSession, session._jvm  # noqa: SLF001 no public door
    assert jvm is not None  # noqa: S101 there are rows
    delta, scala, nothing = jvm.org.apache.spark.sql.delta, jvm.PythonUtils, jvm.scala.Option.empty()
    log = delta.DeltaLog.forTable(java, lake.table(table))
    transaction = log.startTransaction(nothing, nothing)
    begun_at = int(transaction.readVersion())
    if begun_at < known.version:
        return None
    if _is_done(lake, table, note, known, begun_at):
        return begun_at
    transaction.readTxn().addOne(note.writer)
    append, some = jvm.org.apache.spark.sql.SaveMode.Append, jvm.scala.Option.apply
    options = delta.DeltaOptions(scala.toScalaMap({"userMetadata": _text(note)}), java.sessionState().conf())
    parts, no_properties = scala.toSeq(list(table.partition_by)), scala.toScalaMap({})
    data = rows._jdf  # noqa: SLF001
    into = delta.commands.WriteIntoDelta(log, append, options, parts, no_properties, data, nothing, nothing, False)
    written = into.writeAndReturnCommitData(transaction, java, nothing, False).actions()
    batch = delta.actions.SetTransaction(note.writer, note.batch, some(jvm.System.currentTimeMillis()))
    flags = [nothing] * 5
    operation = getattr(delta, "DeltaOperations$Write")(append, some(parts), nothing, some(_text(note)), *flags)
    return int(transaction.commit(written.prepended(batch), operation))


def _text(note: CommitNote) -> str:
    return note.model_dump_json(exclude_defaults=True)


def _is_done(lake: Lake, table: Table, note: CommitNote, known: _Known, until: int) -> bool:
    """Whether this batch of this writer, or a later one, is known or in a commit after those known up to ``until``."""
    if note.batch <= known.batch:
        return True
    for version in range(known.version + 1, until + 1):
        other = note_in(lake.files.read(commit_key(table, version)) or b"")
        if other and other.writer == note.writer and other.batch >= note.batch:
            return True
    return False
