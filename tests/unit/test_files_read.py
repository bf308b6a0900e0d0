"""What Spark's source of files remembers: read bit by bit, and without the files that were moved away."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from spark_jobs.ingest.files_read import FilesRead, count_files, forget_moved_files
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake

_CHECKPOINT, _SOURCE = "_checkpoints/deduplicate/ingest/v1", "_checkpoints/deduplicate/ingest/v1/sources/0"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "in"
    place.mkdir()
    return place


def _entry(folder: Path, batch: int) -> str:
    """The note of the one file of a batch, in Spark's form."""
    return json.dumps({"path": f"file://{folder}/{batch}.jsonl", "timestamp": 1000 + batch, "batchId": batch})


def _note(lake: Lake, folder: Path, name: str, batches: Iterable[int]) -> None:
    lake.files.write(f"{_SOURCE}/{name}", "\n".join(["v1", *(_entry(folder, batch) for batch in batches)]).encode())


def _batches(lake: Lake, name: str) -> list[int]:
    _version, *lines = (lake.files.read(f"{_SOURCE}/{name}") or b"").decode().splitlines()
    return [json.loads(line)["batchId"] for line in lines]


def test_each_look_reads_what_was_noted_since_the_last_one(lake: Lake, folder: Path) -> None:
    read = FilesRead(lake, _CHECKPOINT)
    for batch in range(23):
        is_sum = batch % 10 == 9
        _note(lake, folder, f"{batch}.compact" if is_sum else str(batch), range(batch + 1) if is_sum else [batch])
        # A batch is noted before it is planned: its files are not read yet.
        found = read.until([{"logOffset": batch - 1}]) if batch else {}
        assert found == {f"{folder}/{one}.jsonl": 1000 + one for one in range(batch)}
        assert found == (FilesRead(lake, _CHECKPOINT).until([{"logOffset": batch - 1}]) if batch else {})
    lake.files.delete([f"{_SOURCE}/{batch}" for batch in range(10)])  # as Spark does once they are summed up
    assert count_files(lake, _CHECKPOINT) == 23
    assert len(read.until([{"logOffset": 22}])) == 23


def test_files_that_were_moved_away_are_forgotten(lake: Lake, folder: Path) -> None:
    for batch in (0, 5, 19, 20):
        (folder / f"{batch}.jsonl").touch()
    _note(lake, folder, "19.compact", range(20))
    _note(lake, folder, "20", [20])
    lake.files.write(f"{_SOURCE}/.19.compact.crc", b"of what it held before")
    assert forget_moved_files(lake, _CHECKPOINT) == 8
    # Those that Spark may have to read again after a start stay, wherever they are.
    assert _batches(lake, "19.compact") == [0, 5, *range(10, 20)]
    assert lake.files.read(f"{_SOURCE}/.19.compact.crc") is None
    assert forget_moved_files(lake, _CHECKPOINT) == 0
    assert count_files(lake, _CHECKPOINT) == 13


@pytest.mark.parametrize("is_there", [True, False], ids=["empty", "missing"])
def test_of_a_folder_that_may_be_a_disk_away_nothing_is_forgotten(lake: Lake, folder: Path, *, is_there: bool) -> None:
    _note(lake, folder, "19.compact", range(20))
    if not is_there:
        folder.rmdir()
    assert forget_moved_files(lake, _CHECKPOINT) == 0
    assert _batches(lake, "19.compact") == list(range(20))


def test_positions_in_kafka_are_left_alone(lake: Lake) -> None:
    lake.files.write(f"{_SOURCE}/0", b'v1\n{"events":{"0":17}}')
    assert forget_moved_files(lake, _CHECKPOINT) == 0
