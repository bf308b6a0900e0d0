"""What is read of a Delta table's log without Spark: its latest version, and the notes of its commits."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.contract.tables import SESSIONS
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import BatchPlan, CommitNote, read_plan
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.table_files import TableFile, live_files
from spark_jobs.queries.output import TableOutput
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE

_LOG = f"{SESSIONS.path}/_delta_log"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


def _commit(lake: Lake, version: int, note: CommitNote | None = None) -> None:
    info = {"operation": "WRITE", "userMetadata": note.model_dump_json() if note else None}
    lake.files.write(commit_key(SESSIONS, version), json.dumps({"commitInfo": info}, separators=(",", ":")).encode())


def test_a_first_commit_that_was_broken_off_is_no_table(lake: Lake) -> None:
    lake.files.write(f"{_LOG}/.{0:020}.json.tmp", b"")
    assert lake.newest_commit(SESSIONS.path) is None
    assert not lake.has(SESSIONS)


@pytest.mark.parametrize("last_checkpoint", [b'{"version":3,"size":1}', b'{"version":4}', b"{", b'{"size":1}', b"7"])
def test_the_latest_version_is_found_whatever_the_last_checkpoint_says(lake: Lake, last_checkpoint: bytes) -> None:
    for version in range(2, 5):
        _commit(lake, version)
    lake.files.write(f"{_LOG}/{4:020}.checkpoint.parquet", b"")
    lake.files.write(f"{_LOG}/_last_checkpoint", last_checkpoint)
    assert lake.newest_commit(SESSIONS.path) == 4


@pytest.mark.parametrize("writer", ["a later query", "w"])
def test_a_first_batch_is_looked_for_no_further_than_the_last_note_of_its_query(
    writer: str, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a reset no commit is by the new writer: all of a long log would be read to find that out."""
    for version in range(50):
        _commit(lake, version, CommitNote(writer="w", batch=version, query=SESSIONIZE, reached=[version]))
    _commit(lake, 50, CommitNote(writer="heartbeat", batch=0))
    read: list[str] = []
    plain = lake.files.read
    monkeypatch.setattr(lake.files, "read", lambda key: read.append(key) or plain(key))  # type: ignore[func-returns-value]
    output = TableOutput(lake, SESSIONS)
    assert output.has(CommitNote(writer=writer, batch=0, query=SESSIONIZE)) is (writer == "w")
    assert len([key for key in read if key.startswith(_LOG)]) < 10


def test_names_behind_another(lake: Lake) -> None:
    for name in ("a", "b", "b/inner", "c"):
        lake.files.write(f"folder/{name}.txt", b"")
    assert lake.files.names("folder", after="a.txt") == ["b", "b.txt", "c.txt"]
    assert lake.files.names("folder", after="c.txt") == []


def test_a_plan_gives_the_ends_of_the_sources_that_have_one() -> None:
    text = b'v1\n{"batchWatermarkMs":5,"batchTimestampMs":9}\n{"a":1}\n-\n"x"'
    assert read_plan(text) == BatchPlan(watermark_ms=5, reached=[{"a": 1}, "x"], at_ms=9)


@pytest.mark.parametrize(
    "text", [b"", b"v1", b"v1\n{}", b"v1\n[]\n", b'v1\n{"batchWatermarkMs":5}\n{"a":', b"v1\n\xff"]
)
def test_a_damaged_plan_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match="not the plan of a batch"):
        read_plan(text)


def _add(name: str, rows: int) -> dict[str, object]:
    stats = json.dumps({"numRecords": rows})
    return {
        "path": f"event_date=2026-03-01/{name}%20.parquet",
        "partitionValues": {"event_date": "2026-03-01"},
        "stats": stats,
    }


def _file(name: str, rows: int) -> TableFile:
    return TableFile(f"{SESSIONS.path}/event_date=2026-03-01/{name} .parquet", rows, {"event_date": "2026-03-01"})


def _write_checkpoint(lake: Lake, version: int, *adds: dict[str, object]) -> None:
    kind = pa.struct(
        [("path", pa.string()), ("partitionValues", pa.map_(pa.string(), pa.string())), ("stats", pa.string())]
    )
    rows = [None, *({**add, "partitionValues": list(dict(add["partitionValues"]).items())} for add in adds)]  # type: ignore[call-overload]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"add": pa.array(rows, kind)}), sink)
    lake.files.write(f"{_LOG}/{version:020}.checkpoint.parquet", sink.getvalue().to_pybytes())
    lake.files.write(f"{_LOG}/_last_checkpoint", json.dumps({"version": version}).encode())


def _actions(lake: Lake, version: int, *actions: dict[str, object]) -> None:
    lake.files.write(commit_key(SESSIONS, version), "\n".join(map(json.dumps, actions)).encode())


def test_the_files_of_a_table_are_those_of_its_last_checkpoint_and_of_the_commits_since(lake: Lake) -> None:
    _write_checkpoint(lake, 7, _add("a", 1), _add("b", 2))
    _actions(lake, 8, {"remove": {"path": _add("a", 1)["path"]}}, {"add": _add("c", 3)})
    assert live_files(lake, SESSIONS, 8) == [_file("b", 2), _file("c", 3)]
    assert live_files(lake, SESSIONS, 7) == [_file("a", 1), _file("b", 2)]


def test_a_log_with_a_gap_gives_no_files(lake: Lake) -> None:
    _actions(lake, 0, {"add": _add("a", 1)})
    _actions(lake, 2, {"add": _add("c", 3)})
    with pytest.raises(LakeError, match="version 1 is missing between 0 and 2"):
        live_files(lake, SESSIONS, 2)
