"""Delta's own transaction, as in delta-spark 4.4: internal Scala classes, which another version may change.

No other module uses them, and none may use this one before :func:`has_internals` has confirmed that they are as
expected.
"""

import logging
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

_DELTA = "org.apache.spark.sql.delta"
_SESSION, _OPTION, _BOOLEAN, _LONG = "org.apache.spark.sql.SparkSession", "scala.Option", "boolean", "long"
_SEQ, _MAP, _TEXT = "scala.collection.immutable.Seq", "scala.collection.immutable.Map", "java.lang.String"
_DATASET = "org.apache.spark.sql.Dataset"
_SAVE_MODE = "org.apache.spark.sql.SaveMode"
_TRANSACTION, _WRITE = f"{_DELTA}.OptimisticTransaction", f"{_DELTA}.commands.WriteIntoDelta"
_METHODS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    (f"{_DELTA}.DeltaLog", "forTable", (_SESSION, _TEXT), f"{_DELTA}.DeltaLog"),
    (f"{_DELTA}.DeltaLog", "startTransaction", (_OPTION, _OPTION), _TRANSACTION),
    (
        f"{_DELTA}.DeltaLog",
        "createDataFrame",
        (f"{_DELTA}.SnapshotDescriptor", _SEQ, _BOOLEAN, _OPTION),
        _DATASET,
    ),
    (f"{_DELTA}.DeltaLog", "checkpointInterval", (f"{_DELTA}.actions.Metadata",), "int"),
    (f"{_DELTA}.DeltaLog", "checkpoint", (), ""),
    (_TRANSACTION, "metadata", (), f"{_DELTA}.actions.Metadata"),
    (_TRANSACTION, "postCommitHooks", (), "scala.collection.mutable.ArrayBuffer"),
    (_TRANSACTION, "readVersion", (), _LONG),
    (_TRANSACTION, "readTxn", (), "scala.collection.mutable.ArrayBuffer"),
    (_TRANSACTION, "commit", (_SEQ, f"{_DELTA}.DeltaOperations$Operation"), _LONG),
    (_TRANSACTION, "snapshot", (), f"{_DELTA}.Snapshot"),
    (_TRANSACTION, "writeFiles", (_DATASET, _OPTION, _SEQ), _SEQ),
    (f"{_DELTA}.Snapshot", "allFiles", (), _DATASET),
    (f"{_DELTA}.actions.AddFile", "remove", (), f"{_DELTA}.actions.RemoveFile"),
    (_WRITE, "writeAndReturnCommitData", (_TRANSACTION, _SESSION, _OPTION, _BOOLEAN), ""),
    (f"{_DELTA}.commands.DMLUtils$TaggedCommitData", "actions", (), _SEQ),
)
"""Class, method, types of its parameters, type of its result (empty: any)."""
_CONSTRUCTORS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (f"{_DELTA}.DeltaOptions", (_MAP, "org.apache.spark.sql.internal.SQLConf")),
    (
        _WRITE,
        (
            f"{_DELTA}.DeltaLog",
            _SAVE_MODE,
            f"{_DELTA}.DeltaOptions",
            _SEQ,
            _MAP,
            _DATASET,
            _OPTION,
            _OPTION,
            _BOOLEAN,
        ),
    ),
    (f"{_DELTA}.actions.SetTransaction", (_TEXT, _LONG, _OPTION)),
    (f"{_DELTA}.DeltaOperations$Write", (_SAVE_MODE, *[_OPTION] * 8)),
    (f"{_DELTA}.DeltaOperations$Update", (_OPTION,)),
)
_log = logging.getLogger(__name__)
_answers: dict[str, bool] = {}
"""By Spark application, the answer of :func:`has_internals`."""


def has_internals(session: SparkSession) -> bool:
    """Whether the Delta version of ``session`` has what :class:`Transaction` uses.

    Checked once per Spark application; if the answer is no, it is logged as a warning.
    """
    application = session.sparkContext.applicationId
    if application not in _answers:
        missing = _missing(session)
        _answers[application] = not missing
        if missing:
            _log.warning(
                "this Delta has no %s: batches are appended by its public writer, at about twice the CPU time for a "
                "small batch; adloom is tested with delta-spark 4.4",
                missing,
            )
    return _answers[application]


def _missing(session: SparkSession) -> str:
    """The first method or constructor that is not as expected; empty if all are."""
    jvm, gateway = session._jvm, session.sparkContext._gateway  # noqa: SLF001 no public API
    assert jvm is not None and gateway is not None  # noqa: PT018, S101 the session runs
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    primitives = {_BOOLEAN: jvm.java.lang.Boolean.TYPE, _LONG: jvm.java.lang.Long.TYPE}

    def find(name: str) -> Any:
        return primitives.get(name) or jvm.java.lang.Class.forName(name, False, loader)

    def types(names: Sequence[str]) -> Any:
        found = gateway.new_array(jvm.java.lang.Class, len(names))
        for place, name in enumerate(names):
            found[place] = find(name)
        return found

    for owner, method, parameters, result in _METHODS:
        try:
            returned = find(owner).getMethod(method, types(parameters)).getReturnType().getName()
        except Py4JError:
            return f"{owner}.{method}({', '.join(parameters)})"
        if result and returned != result:
            return f"{owner}.{method} that returns a {result}, but a {returned}"
    for owner, parameters in _CONSTRUCTORS:
        try:
            find(owner).getConstructor(types(parameters))
        except Py4JError:
            return f"{owner}({', '.join(parameters)})"
    return ""


class Transaction:
    """A transaction on a Delta table, which fails if another process commits as the same writer in the meantime.

    To be used only if :func:`has_internals` is true.

    Args:
        session: the session.
        table: URI of the table.
        writer: who writes: ``txnAppId`` of the public API.
    """

    def __init__(self, session: SparkSession, table: str, *, writer: str) -> None:
        jvm = session._jvm  # noqa: SLF001 no public API
        assert jvm is not None  # noqa: S101 the session runs
        self._session, self._jvm, self._java, self._writer = session, jvm, session._jsparkSession, writer  # noqa: SLF001
        self._delta, self._nothing = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty()
        self._log = self._delta.DeltaLog.forTable(self._java, table)
        self._transaction = self._log.startTransaction(self._nothing, self._nothing)
        self._transaction.readTxn().addOne(writer)
        self.version = int(self._transaction.readVersion())
        """Version of the table at the start of the transaction."""

    def append(self, rows: DataFrame, partition_by: Sequence[str], *, batch: int, metadata: str) -> int:
        """Appends ``rows`` and commits, as ``WriteIntoDelta.run`` does, but for the checkpoint of the log.

        That is left to :meth:`checkpoint_log`, because rows would wait for it.

        Args:
            rows: with the columns of the table.
            partition_by: its partition columns.
            batch: ``txnVersion`` of the public API.
            metadata: user metadata of the commit.

        Returns:
            The version of the commit.

        Raises:
            ConcurrentTransactionException: another process has committed as the same writer in the meantime.
        """
        jvm, delta, nothing, scala = self._jvm, self._delta, self._nothing, self._jvm.PythonUtils
        self._transaction.postCommitHooks().subtractOne(getattr(getattr(delta.hooks, "CheckpointHook$"), "MODULE$"))
        append, some = jvm.org.apache.spark.sql.SaveMode.Append, jvm.scala.Option.apply
        options = delta.DeltaOptions(scala.toScalaMap({"userMetadata": metadata}), self._java.sessionState().conf())
        parts, no_properties = scala.toSeq(list(partition_by)), scala.toScalaMap({})
        data = rows._jdf  # noqa: SLF001
        into = delta.commands.WriteIntoDelta(
            self._log, append, options, parts, no_properties, data, nothing, nothing, False
        )
        written = into.writeAndReturnCommitData(self._transaction, self._java, nothing, False).actions()
        flags = [nothing] * 5
        operation = getattr(delta, "DeltaOperations$Write")(append, some(parts), nothing, some(metadata), *flags)
        return int(self._transaction.commit(written.prepended(self._mark(batch)), operation))

    def is_log_due(self, version: int) -> bool:
        """Whether the log of the table is to get a checkpoint after the commit ``version``, by the table's property."""
        return version % int(self._log.checkpointInterval(self._transaction.metadata())) == 0

    def checkpoint_log(self) -> None:
        """Writes a checkpoint of the log of the table as it is now, and removes what the log no longer needs.

        Delta logs a failure as a warning: the log is complete without it, and the next checkpoint includes it.
        """
        self._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self._java)
        self._log.checkpoint()

    def read(self, files: Sequence[str]) -> DataFrame:
        """All rows of ``files``, given by name without their folder, and of no other file of the table."""
        chosen = self._jvm.PythonUtils.toSeq(self._files(files))
        rows = self._log.createDataFrame(self._transaction.snapshot(), chosen, False, self._nothing)
        return DataFrame(rows, self._session)

    def replace(self, files: Sequence[str], rows: DataFrame, *, batch: int) -> int:
        """Replaces files of the table by ``rows``, and commits.

        What others append meanwhile does not conflict: nothing but these files was read. If others removed one of
        them, the commit fails. The user metadata of the commit are those of the session.

        Args:
            files: their names, without their folder; there are no two of a name.
            rows: with the columns of the table.
            batch: ``txnVersion`` of the public API.

        Returns:
            The version of the commit.

        Raises:
            ConcurrentTransactionException: another process has committed as the same writer in the meantime.
            ConcurrentDeleteDeleteException: another process has removed one of the files.
        """
        data = rows._jdf  # noqa: SLF001
        actions = self._transaction.writeFiles(data, self._nothing, self._jvm.PythonUtils.toSeq([]))
        for file in self._files(files):
            actions = actions.prepended(file.remove())
        operation = getattr(self._delta, "DeltaOperations$Update")(self._nothing)
        return int(self._transaction.commit(actions.prepended(self._mark(batch)), operation))

    def _mark(self, batch: int) -> Any:
        """The action of the commit that says that the writer has written ``batch``."""
        now = self._jvm.scala.Option.apply(self._jvm.System.currentTimeMillis())
        return self._delta.actions.SetTransaction(self._writer, batch, now)

    def _files(self, names: Sequence[str]) -> list[Any]:
        """The files of the table called ``names``.

        Raises:
            RuntimeError: the table does not have one of them.
        """
        if not names:
            return []
        wanted = ", ".join(f"'{name}'" for name in names)
        found = self._transaction.snapshot().allFiles().filter(f"element_at(split(path, '/'), -1) IN ({wanted})")
        files = list(found.collectAsList())
        if len(files) != len(names):
            raise RuntimeError(f"of the files {wanted} the table has {len(files)} at version {self.version}")
        return files
