"""A checkpoint that does not go with its table is found out before it skips or repeats a batch."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import SESSIONS
from spark_jobs.errors import CheckpointError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.manifests import new_manifest, write_manifest
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_key, manifest_key, progress_key
from spark_jobs.streams.checkpoint_check import compare_with_table
from spark_jobs.streams.reports import QueryReport

_QUERY = "sessionize"
_LOG = f"{SESSIONS.path}/_delta_log"
_CHECKPOINT = checkpoint_key(_QUERY, 1)
_START = datetime(2025, 1, 6, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Batches 0 to 2 are in the table; Spark has noted the end of the first two, or of all."""
    lake = open_lake(str(tmp_path / "lake"))
    write_manifest(lake, new_manifest(_QUERY, Settings(), "files"), 1)
    lake.files.write(f"{_CHECKPOINT}/metadata", b'{"id":"w1"}')
    for batch in range(3):
        _plan(lake, batch)
        _commit(lake, batch)
        if batch < 2:
            _done(lake, batch)
    return lake


def _watermark(batch: int) -> int:
    return 0 if batch == 0 else int(_START.timestamp() * 1000) + batch * 60_000


def _offset(batch: int) -> dict[str, object]:
    return {"reservoirVersion": batch + 1, "index": -1}


def _plan(lake: Lake, batch: int, *, watermark: int | None = None) -> None:
    metadata = {"batchWatermarkMs": _watermark(batch) if watermark is None else watermark}
    text = f"v1\n{json.dumps(metadata)}\n{json.dumps(_offset(batch))}"
    lake.files.write(f"{_CHECKPOINT}/offsets/{batch}", text.encode())


def _done(lake: Lake, batch: int, *, next_ms: int | None = None) -> None:
    metadata = {"nextBatchWatermarkMs": _watermark(batch + 1) if next_ms is None else next_ms}
    lake.files.write(f"{_CHECKPOINT}/commits/{batch}", f"v1\n{json.dumps(metadata)}".encode())


def _commit(lake: Lake, batch: int, *, version: int | None = None, writer: str = "w1") -> None:
    note = CommitNote(
        writer=writer, batch=batch, query=_QUERY, watermark_ms=_watermark(batch), reached=[_offset(batch)]
    )
    action = {"commitInfo": {"operation": "WRITE", "userMetadata": note.model_dump_json(exclude_defaults=True)}}
    place = f"{_LOG}/{batch if version is None else version:020}.json"
    lake.files.write(place, json.dumps(action, separators=(",", ":")).encode() + b"\n{}\n")


def _compact(lake: Lake) -> None:
    lake.files.write(f"{_LOG}/{3:020}.json", b'{"commitInfo":{"operation":"OPTIMIZE"}}\n')


def _report(lake: Lake, newest: datetime) -> None:
    report = QueryReport(
        job="attribute",
        query=_QUERY,
        version="1",
        process_id=1,
        started_at=_START,
        updated_at=_START,
        batch_id=2,
        newest_event_time=newest,
    )
    lake.files.write(progress_key(_QUERY), report.model_dump_json().encode())


def _plan_next(lake: Lake, *, watermark: int | None = None) -> None:
    _done(lake, 2)
    _plan(lake, 3, watermark=watermark)


def _end_and_report(lake: Lake, *, next_ms: int | None = None, newest: datetime = _START) -> None:
    _done(lake, 2, next_ms=next_ms)
    _report(lake, newest)


def _restore_the_table(lake: Lake) -> None:
    _done(lake, 2)
    lake.files.delete([f"{_LOG}/{2:020}.json"])


def _reset(lake: Lake, follows: str, batch: int | None = None) -> None:
    manifest = new_manifest(_QUERY, Settings(), "files").model_copy(update={"follows": follows, "follows_batch": batch})
    write_manifest(lake, manifest, 2)
    lake.files.write(f"{checkpoint_key(_QUERY, 2)}/metadata", b'{"id":"w2"}')


def _reset_by_an_earlier_version(lake: Lake) -> None:
    _reset(lake, "w1")
    text = json.loads(lake.files.read(manifest_key(_QUERY, 2)) or b"")
    text.pop("follows_batch", None)
    lake.files.write(manifest_key(_QUERY, 2), json.dumps(text).encode())


_GOOD: dict[str, Callable[[Lake], None]] = {
    "killed between the commit of the table and its own": lambda _: None,
    "stopped between two batches": lambda lake: _done(lake, 2),
    "the next batch planned": _plan_next,
    "the table compacted since": _compact,
    "reset, nothing written yet": lambda lake: _reset(lake, "w1", 2),
    "reset by an earlier version": _reset_by_an_earlier_version,
    "a report of the newest event": lambda lake: _end_and_report(lake, newest=datetime(2025, 1, 7, tzinfo=UTC)),
}
_BAD: dict[str, tuple[Callable[[Lake], None], str]] = {
    "no metadata": (lambda lake: lake.files.delete([f"{_CHECKPOINT}/metadata"]), "metadata is missing or damaged"),
    "half a metadata": (lambda lake: lake.files.write(f"{_CHECKPOINT}/metadata", b'{"id'), "metadata is missing"),
    "another checkpoint": (
        lambda lake: lake.files.write(f"{_CHECKPOINT}/metadata", b'{"id":"w9"}'),
        "another checkpoint wrote the last batch",
    ),
    "reset after another": (lambda lake: _reset(lake, "w0", 2), "another checkpoint wrote the last batch"),
    "reset before the old one wrote once more": (
        lambda lake: _reset(lake, "w1", 1),
        "another checkpoint wrote the last batch",
    ),
    "no plan": (lambda lake: lake.files.delete([f"{_CHECKPOINT}/offsets/2"]), "offsets/2.*is missing"),
    "half a plan": (lambda lake: lake.files.write(f"{_CHECKPOINT}/offsets/2", b"v1\n{"), "offsets/2 is damaged"),
    "an empty plan": (lambda lake: lake.files.write(f"{_CHECKPOINT}/offsets/2", b""), "offsets/2 is damaged"),
    "another end": (
        lambda lake: lake.files.write(f"{_CHECKPOINT}/offsets/2", (lake.files.read(f"{_CHECKPOINT}/offsets/1") or b"")),
        "differ on the end or watermark",
    ),
    "another watermark": (lambda lake: _plan(lake, 2, watermark=1), "differ on the end or watermark"),
    "an old copy": (lambda lake: lake.files.delete([f"{_CHECKPOINT}/commits/1"]), "commits/1 is missing"),
    "a table from before": (_restore_the_table, "it has committed batch 2, and the table ends with batch 1"),
    "half an end": (lambda lake: lake.files.write(f"{_CHECKPOINT}/commits/2", b"v1\n{"), "damaged"),
    "an end with a time to come": (
        lambda lake: _end_and_report(lake, next_ms=4_000_000_000_000),
        "a watermark past every event",
    ),
    "a plan under another watermark": (
        lambda lake: _plan_next(lake, watermark=7),
        "have different watermarks",
    ),
}


@pytest.mark.parametrize("change", _GOOD.values(), ids=_GOOD.keys())
def test_a_checkpoint_that_goes_with_its_table_may_be_used(lake: Lake, change: Callable[[Lake], None]) -> None:
    change(lake)
    compare_with_table(lake, _QUERY)


@pytest.mark.parametrize(("change", "reason"), _BAD.values(), ids=_BAD.keys())
def test_one_that_does_not_is_refused(lake: Lake, change: Callable[[Lake], None], reason: str) -> None:
    change(lake)
    with pytest.raises(CheckpointError, match=f"{reason}.*adloom checkpoints reset sessionize"):
        compare_with_table(lake, _QUERY)


def test_a_query_whose_table_holds_nothing_of_it_may_begin(tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    compare_with_table(lake, _QUERY)
    assert last_note(lake, _QUERY) is None
