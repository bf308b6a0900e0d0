"""A batch is in a table exactly once, even if another process has written it or writes it at the same time."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest
from delta.exceptions import ConcurrentTransactionException
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contract.tables import SESSIONS
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from spark_jobs.spark import transaction
from spark_jobs.spark.delta_internals import Transaction, has_internals
from spark_jobs.spark.write_delta import append_rows
from tests.expectations.good_rows import frame, good_rows
from tests.support.lakes import read_table


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return frame(spark, SESSIONS.name, good_rows(SESSIONS.name)).coalesce(1)


def _batch(number: int, writer: str = "query") -> CommitNote:
    return CommitNote(writer=writer, batch=number, query=SESSIONIZE, watermark_ms=number, reached=[number])


def _by_another_process(rows: DataFrame, lake: Lake, note: CommitNote, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process does not know what this one has appended."""
    with monkeypatch.context() as there:
        there.setattr(transaction, "_KNOWN", {})
        append_rows(rows, lake, SESSIONS, note)


def _actions(lake: Lake, version: int) -> dict[str, dict[str, object]]:
    lines = (lake.files.read(commit_key(SESSIONS, version)) or b"").splitlines()
    return {name: action for line in lines for name, action in json.loads(line).items()}


def test_a_commit_says_the_same_however_it_was_made(rows: DataFrame, lake: Lake, spark: SparkSession) -> None:
    assert has_internals(spark), "the second and the third append are to be made by Delta's own transaction"
    for number in range(3):
        append_rows(rows, lake, SESSIONS, _batch(number))
    created, appended, later = (_actions(lake, version) for version in range(3))
    assert created.keys() - appended.keys() == {"protocol", "metaData"}, "only the first commit says what the table is"
    for one, number in ((appended, 1), (later, 2)):
        assert one["txn"]["appId"] == "query"
        assert one["txn"]["version"] == number
        same = ("operation", "operationParameters", "isolationLevel", "isBlindAppend", "engineInfo")
        assert {name: one["commitInfo"][name] for name in same} == {name: created["commitInfo"][name] for name in same}
        assert one["commitInfo"]["operationMetrics"].keys() == created["commitInfo"]["operationMetrics"].keys()  # type: ignore[attr-defined]
        assert one["add"]["partitionValues"].keys() == created["add"]["partitionValues"].keys()  # type: ignore[attr-defined]
        assert one["add"]["stats"] == created["add"]["stats"]
    assert last_note(lake, SESSIONIZE) == _batch(2)
    assert len(read_table(lake, SESSIONS)) == 3 * rows.count()


def test_a_batch_is_not_appended_again_whoever_appended_it(
    rows: DataFrame, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_rows(rows, lake, SESSIONS, _batch(0))
    append_rows(rows, lake, SESSIONS, _batch(0))
    _by_another_process(rows, lake, _batch(7, writer="heartbeat"), monkeypatch)
    _by_another_process(rows, lake, _batch(1), monkeypatch)
    append_rows(rows, lake, SESSIONS, _batch(1))
    append_rows(rows, lake, SESSIONS, _batch(0))
    assert len(read_table(lake, SESSIONS)) == 3 * rows.count()
    append_rows(rows, lake, SESSIONS, _batch(2))
    assert len(read_table(lake, SESSIONS)) == 4 * rows.count()


@pytest.mark.parametrize("writer", ["query", "another query"])
def test_only_a_batch_that_another_process_commits_meanwhile_is_refused(
    writer: str, rows: DataFrame, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        append_rows(rows, lake, SESSIONS, _batch(number))
    is_done = transaction._is_done

    def and_meanwhile(*arguments: object) -> bool:
        monkeypatch.undo()
        answer = is_done(*arguments)  # type: ignore[arg-type]
        _by_another_process(rows, lake, _batch(2, writer), monkeypatch)
        return answer

    monkeypatch.setattr(transaction, "_is_done", and_meanwhile)
    if writer == "query":
        with pytest.raises(ConcurrentTransactionException):
            append_rows(rows, lake, SESSIONS, _batch(2))
        append_rows(rows, lake, SESSIONS, _batch(2))
        assert len(read_table(lake, SESSIONS)) == 3 * rows.count(), "the other one's rows alone"
    else:
        append_rows(rows, lake, SESSIONS, _batch(2))
        assert len(read_table(lake, SESSIONS)) == 4 * rows.count()


def test_a_recreated_table_is_not_mistaken_for_the_old_one(rows: DataFrame, lake: Lake) -> None:
    for number in range(3):
        append_rows(rows, lake, SESSIONS, _batch(number))
    lake.files.delete_folder(SESSIONS.path)
    append_rows(rows, lake, SESSIONS, _batch(3))
    assert len(read_table(lake, SESSIONS)) == rows.count()
    assert "delta.enableChangeDataFeed" in _actions(lake, 0)["metaData"]["configuration"]  # type: ignore[operator]


def _checkpoints(lake: Lake) -> list[str]:
    return [name for name in lake.files.names(f"{SESSIONS.path}/_delta_log") if name.endswith(".checkpoint.parquet")]


class _Later:
    """Writes no checkpoint, and says which ones are due."""

    def __init__(self) -> None:
        self.submitted: list[Callable[[], None]] = []

    def submit(self, checkpoint: Callable[[], None]) -> "Future[None]":
        self.submitted.append(checkpoint)
        return Future()


def test_a_log_waits_for_one_checkpoint_at_a_time(rows: DataFrame, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    later = _Later()
    monkeypatch.setattr(transaction, "_CHECKPOINTS", later)
    monkeypatch.setattr(Transaction, "is_log_due", lambda *_: True)
    for number in range(4):
        append_rows(rows, lake, SESSIONS, _batch(number))
    assert len(later.submitted) == 1


def test_a_checkpoint_of_the_log_is_written_after_the_commit_and_not_within_it(
    rows: DataFrame, lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = _Later()
    monkeypatch.setattr(transaction, "_CHECKPOINTS", later)
    append_rows(rows, lake, SESSIONS, _batch(0))
    spark.sql(f"ALTER TABLE delta.`{lake.table(SESSIONS)}` SET TBLPROPERTIES ('delta.checkpointInterval' = '3')")
    for number in range(1, 5):
        append_rows(rows, lake, SESSIONS, _batch(number))
    assert lake.newest_commit(SESSIONS.path) == 5
    assert len(later.submitted) == 1, "commit 3, of batch 2"
    assert _checkpoints(lake) == []
    later.submitted[0]()
    assert _checkpoints(lake) == [f"{5:020}.checkpoint.parquet"], "of the table as it is by then"
    append_rows(rows, lake, SESSIONS, _batch(5))
    assert len(read_table(lake, SESSIONS)) == 6 * rows.count()


def test_checkpoints_of_a_large_log_are_further_apart(
    rows: DataFrame, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Transaction, "is_log_due", lambda *_: True)
    append_rows(rows, lake, SESSIONS, _batch(0))
    append_rows(rows, lake, SESSIONS, _batch(1))
    transaction._CHECKPOINTS.submit(lambda: None).result(30)  # the one before has ended
    pointer = json.loads(lake.files.read(f"{SESSIONS.path}/_delta_log/_last_checkpoint") or b"")
    assert pointer["version"] == 1
    # A checkpoint of this size is worth three commits, and the second is not the third.
    monkeypatch.setattr(transaction, "_CHECKPOINT_BYTES", -(-pointer["sizeInBytes"] // 3))
    for number in range(2, 6):
        append_rows(rows, lake, SESSIONS, _batch(number))
        transaction._CHECKPOINTS.submit(lambda: None).result(30)
    assert _checkpoints(lake) == [f"{version:020}.checkpoint.parquet" for version in (1, 4)]


@pytest.mark.parametrize("pointer", [b"{", b"[]", b'{"version": 1}', b""])
def test_a_pointer_to_the_last_checkpoint_that_says_nothing_stops_none(lake: Lake, pointer: bytes) -> None:
    lake.files.write(f"{SESSIONS.path}/_delta_log/_last_checkpoint", pointer)
    assert transaction._is_worth_a_checkpoint(lake, SESSIONS, 50)


def test_a_checkpoint_of_the_log_that_fails_does_not_fail_the_batch(
    rows: DataFrame, lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_self: object) -> None:
        raise RuntimeError("the session has ended")

    monkeypatch.setattr(Transaction, "is_log_due", lambda *_: True)
    monkeypatch.setattr(Transaction, "checkpoint_log", fail)
    with caplog.at_level("INFO"):
        for number in range(2):
            append_rows(rows, lake, SESSIONS, _batch(number))
        transaction._CHECKPOINTS.submit(lambda: None).result(30)  # the one before has ended
    assert "the checkpoint of a table's log was not written: the session has ended" in caplog.text
    assert len(read_table(lake, SESSIONS)) == 2 * rows.count()
