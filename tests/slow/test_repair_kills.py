"""Repairs, replays and runs of credit that are killed at any moment: `make test-kill`."""

import os
import random
import shutil
import subprocess
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import GROSS_CREDIT_TABLES, LATE_EVENTS, RESTATEMENTS, Table
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CREDIT, CREDIT_RUNS, REPAIR, lock_key
from spark_jobs.restatements.plan import done_key, plan_key
from tests.support.drivers import ADLOOM, Driver
from tests.support.lakes import GOLD, read_table
from tests.support.oracle import Expected, assert_same_rows, expected_tables

pytestmark = pytest.mark.slow
_KILLS = int(os.environ.get("KILLS", "20"))
_LONGEST_S = 300
_ONE_EACH = {
    "ADLOOM_INGEST__MAX_BYTES_PER_BATCH": "1",
    "ADLOOM_INGEST__FILE_ORDER": "modification_time",
}
_REPAIR = ("repair",)
_CREDIT = ("credit",)
_REPLAY = ("replay", "--from", "2025-01-05T00:00:00Z", "--to", "2025-01-08T00:00:00Z", "--apply")


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Expected]:
    """A folder with a drained lake that has late events; and what is due after its repair."""
    folder = tmp_path_factory.mktemp("day")
    generate(GeneratorSpec(events=5000, seed=33, files=6, late=0.05, conversions=1), folder / "source")
    _start(folder / "lake", "run", "--source", str(folder / "source"), "--drain", "--measure").finish()
    return folder, expected_tables(folder / "source", Settings(), datetime.now(UTC))


@pytest.mark.parametrize("command", [_REPAIR, _REPLAY], ids=["repair", "replay"])
def test_a_correction_killed_at_any_moment_and_run_again_corrects_everything_once(
    command: tuple[str, ...], day: tuple[Path, Expected], tmp_path: Path
) -> None:
    folder, expected = day
    moments, outcomes = random.Random(34), Counter[str]()
    whole = _copy(folder, tmp_path / "measured")
    work_s = _time_at_work(whole, command)
    told = _told(whole)
    late = sorted(row[:2] for row in read_table(whole, LATE_EVENTS))
    for number in range(_KILLS):
        lake = _copy(folder, tmp_path / f"lake-{number}")
        doomed = _start(lake.path, *command)
        _kill_at_work(doomed, lake, moments.uniform(0, work_s))
        outcomes[_reached(lake, plan_key(1), done_key(1))] += 1
        _start(lake.path, *command).finish()
        for table in GOLD:
            assert_same_rows(read_table(lake, table), expected.rows(table), table)
        assert sorted(row[:2] for row in read_table(lake, LATE_EVENTS)) == late
        assert _told(lake) == told
        shutil.rmtree(lake.path)
    print(f"killed before the plan, with a plan, and when done: {dict(outcomes)}")


def test_credit_killed_at_any_moment_and_run_again_is_written_and_told_once(
    day: tuple[Path, Expected], tmp_path: Path
) -> None:
    """What is killed changes rows that were written before a repair."""
    folder, moments, outcomes = tmp_path / "credited", random.Random(35), Counter[str]()
    repaired = _copy(day[0], folder / "lake")
    for command in (_CREDIT, _REPAIR):
        _start(repaired.path, *command).finish()
    whole = _copy(folder, tmp_path / "measured")
    work_s = _time_at_work(whole, _CREDIT)
    due = [_rows(whole, table) for table in GROSS_CREDIT_TABLES]
    assert due != [_rows(repaired, table) for table in GROSS_CREDIT_TABLES], "nothing was late: the test shows nothing"
    for number in range(_KILLS):
        lake = _copy(folder, tmp_path / f"lake-{number}")
        doomed = _start(lake.path, *_CREDIT)
        _kill_at_work(doomed, lake, moments.uniform(0, work_s), CREDIT)
        outcomes[_reached(lake, plan_key(2, CREDIT_RUNS), done_key(2, CREDIT_RUNS))] += 1
        _start(lake.path, *_CREDIT).finish()
        assert [_rows(lake, table) for table in GROSS_CREDIT_TABLES] == due
        assert _told(lake) == _told(whole)
        shutil.rmtree(lake.path)
    print(f"killed before the plan, with a plan, and when done: {dict(outcomes)}")


def _rows(lake: Lake, table: Table) -> Counter[str]:
    return Counter(map(repr, read_table(lake, table)))


def _reached(lake: Lake, plan: str, done: str) -> str:
    if lake.files.read(plan) is None:
        return "nothing"
    return "plan" if lake.files.read(done) is None else "done"


def _told(lake: Lake) -> Counter[str]:
    """The restatements, without when they were decided."""
    decided = RESTATEMENTS.column_names.index("decided_at")
    return Counter(repr((*row[:decided], *row[decided + 1 :])) for row in read_table(lake, RESTATEMENTS))


def _copy(folder: Path, place: Path) -> Lake:
    return open_lake(str(shutil.copytree(folder / "lake", place)))


def _start(lake: Path, *command: str) -> Driver:
    words = [*ADLOOM, *command, "--lake", str(lake)]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, **_ONE_EACH},
    )
    return Driver(process)


def _time_at_work(lake: Lake, command: tuple[str, ...]) -> float:
    """The seconds from the lock of ``command`` to its end."""
    driver = _start(lake.path, *command)
    _wait_for_lock(driver, lake, CREDIT if command == _CREDIT else REPAIR)
    begun = time.monotonic()
    driver.finish()
    return time.monotonic() - begun


def _wait_for_lock(driver: Driver, lake: Lake, lock: str) -> None:
    deadline = time.monotonic() + _LONGEST_S
    while lake.files.read(lock_key(lock)) is None and driver.process.poll() is None:
        assert time.monotonic() < deadline, "it never began"
        time.sleep(0.02)


def _kill_at_work(driver: Driver, lake: Lake, after_s: float, lock: str = REPAIR) -> None:
    """Kills ``driver`` so long after it took its lock, unless it has ended by then."""
    _wait_for_lock(driver, lake, lock)
    deadline = time.monotonic() + after_s
    while time.monotonic() < deadline and driver.process.poll() is None:
        time.sleep(0.02)
    if driver.process.poll() is None:
        driver.kill()
    else:
        driver.finish()
