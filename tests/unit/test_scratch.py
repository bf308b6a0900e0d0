"""A process that is gone leaves no folder on the disk for long, and nothing else is removed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.spark.scratch import make_scratch, name_owners


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'disk'},/elsewhere")
    return tmp_path / "disk"


def _left_by_a_dead_process(base: Path) -> Path:
    make = "from spark_jobs.spark.scratch import make_scratch; print(make_scratch())"
    done = subprocess.run([sys.executable, "-c", make], capture_output=True, text=True, check=True, timeout=60)
    left = Path(done.stdout.strip())
    assert left.parent == base
    (left / "state").mkdir()
    (left / "state" / "000010.sst").write_text("a working copy")
    return left


def test_what_a_dead_process_left_goes_with_the_next_start(base: Path) -> None:
    left = _left_by_a_dead_process(base)
    own = make_scratch()
    assert own.is_dir()
    assert not left.exists()
    assert make_scratch() != own
    assert own.is_dir(), "its process lives"


def test_it_stays_while_one_of_its_processes_lives(base: Path) -> None:
    left = _left_by_a_dead_process(base)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as java:
        name_owners(left, [2**22 - 1, java.pid])
        make_scratch()
        assert (left / "state" / "000010.sst").exists()
        java.communicate(b"\n")
    make_scratch()
    assert not left.exists()


def test_a_number_that_was_used_again_is_another_process(base: Path) -> None:
    left = _left_by_a_dead_process(base)
    owners = json.loads((left / "owners.json").read_text())
    (left / "owners.json").write_text(json.dumps({**owners, "processes": {str(os.getpid()): "1"}}))
    make_scratch()
    assert not left.exists()


@pytest.mark.parametrize(
    "owners",
    [None, "{half a fi", "[]", "{}", json.dumps({"here": "another machine", "processes": {}}), '{"here": ""}'],
)
def test_in_doubt_it_stays(base: Path, owners: str | None) -> None:
    left = _left_by_a_dead_process(base)
    (left / "owners.json").unlink()
    if owners is not None:
        (left / "owners.json").write_text(owners)
    make_scratch()
    assert (left / "state" / "000010.sst").exists()


def test_nothing_else_is_removed_and_no_link_is_followed(base: Path, tmp_path: Path) -> None:
    left = _left_by_a_dead_process(base)
    precious = tmp_path / "precious"
    left.rename(precious)
    (base / "adloom-scratch-link").symlink_to(precious)
    (base / "spark-1234").mkdir()
    make_scratch()
    assert (precious / "state" / "000010.sst").exists()
    assert (base / "spark-1234").is_dir()
