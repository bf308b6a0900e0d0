"""Requeues that are killed at any moment: `make test-kill`."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.places import REQUEUE, REQUEUED, lock_key
from tests.support.crashing import MOMENTS
from tests.support.drivers import ADLOOM, CRASHING, Driver
from tests.support.foreign import SOURCE, write_foreign
from tests.support.lakes import read_ledger, read_table, rows_by_name
from tests.support.oracle import Expected, assert_same_rows, expected_tables
from tests.support.quarantines import WRONG_TYPES
from tests.support.source_files import read_files

pytestmark = pytest.mark.slow
_KILLS = int(os.environ.get("KILLS", "20"))
_LONGEST_S = 300
_PATIENT = {"ADLOOM_ATTRIBUTE__IMPRESSION_WATERMARK": "3h", "ADLOOM_SESSIONIZE__WATERMARK": "3h"}


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Expected]:
    """A folder with a lake whose clicks are all in quarantine, its source and its settings; and what is due."""
    folder = tmp_path_factory.mktemp("day")
    own = folder / "own"
    generate(GeneratorSpec(events=20_000, seed=31, files=3, late=0, malformed=0, hours=2), own)
    write_foreign(folder / "source", [[json.loads(record) for record in file] for file in read_files(own)])
    (folder / "then.toml").write_text(_toml({**SOURCE, "event_type": WRONG_TYPES}))
    (folder / "now.toml").write_text(_toml(SOURCE))
    _start(folder, folder / "lake", "run", "--source", str(folder / "source"), config="then").finish()
    return folder, expected_tables(own, Settings(), datetime.now(UTC))


def test_a_requeue_killed_at_any_moment_and_run_again_requeues_each_record_once(
    day: tuple[Path, Expected], tmp_path: Path
) -> None:
    folder, expected = day
    moments, outcomes = random.Random(32), Counter[str]()
    work_s = _time_at_work(folder, _copy(folder, tmp_path / "measured"))
    for number in range(_KILLS):
        lake = _copy(folder, tmp_path / f"lake-{number}")
        requeue = _start(folder, lake.path, "requeue")
        _kill_at_work(requeue, lake, moments.uniform(0, work_s))
        added = [row for row in rows_by_name(lake, BRONZE_EVENTS) if row["requeued_from"]]
        outcomes["all" if added else "begun" if lake.files.read(REQUEUED) else "none"] += 1
        _start(folder, lake.path, "requeue").finish()
        _assert_requeued_once(lake, expected)
        if number < _KILLS - 1:
            shutil.rmtree(lake.path)
    print(f"killed before the commit began, while it ran, and after it: {dict(outcomes)}")
    _assert_gold(folder, lake, expected)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_requeue_killed_around_its_commit_and_run_again_requeues_each_record_once(
    moment: str, day: tuple[Path, Expected], tmp_path: Path
) -> None:
    folder, expected = day
    lake = _copy(folder, tmp_path / "lake")
    doomed = _start(folder, lake.path, "requeue", crash_after=f"{moment}:bronze:requeue")
    output, _ = doomed.process.communicate(timeout=_LONGEST_S)
    assert doomed.process.returncode == -signal.SIGKILL, output
    _start(folder, lake.path, "requeue").finish()
    _assert_requeued_once(lake, expected)


def _toml(source: Mapping[str, object]) -> str:
    # Strings, and tables of strings, are written alike in JSON and TOML, but for the sign between key and value.
    def value(given: object) -> str:
        if isinstance(given, dict):
            return "{ " + ", ".join(f"{key} = {value(one)}" for key, one in given.items()) + " }"
        return json.dumps(given)

    return "[source.ads]\n" + "".join(f"{key} = {value(given)}\n" for key, given in source.items())


def _copy(folder: Path, place: Path) -> Lake:
    lake = open_lake(str(shutil.copytree(folder / "lake", place)))
    # That of the run. When it is there again, the requeue is at work.
    (lake.path / lock_key(REQUEUE)).unlink()
    return lake


def _start(folder: Path, lake: Path, *command: str, config: str = "now", crash_after: str | None = None) -> Driver:
    environment = {**os.environ, **_PATIENT, **({"CRASH_AFTER": crash_after} if crash_after else {})}
    program = CRASHING if crash_after else ADLOOM
    words = [*program, *command, "--lake", str(lake), "--config", str(folder / f"{config}.toml")]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, env=environment
    )
    return Driver(process)


def _time_at_work(folder: Path, lake: Lake) -> float:
    """The seconds from the lock of a requeue to its end: no more and no less on this machine is worth a kill."""
    driver = _start(folder, lake.path, "requeue")
    _wait_for_lock(driver, lake)
    begun = time.monotonic()
    driver.finish()
    return time.monotonic() - begun


def _wait_for_lock(driver: Driver, lake: Lake) -> None:
    deadline = time.monotonic() + _LONGEST_S
    while lake.files.read(lock_key(REQUEUE)) is None and driver.process.poll() is None:
        assert time.monotonic() < deadline, "the requeue never began"
        time.sleep(0.02)


def _kill_at_work(driver: Driver, lake: Lake, after_s: float) -> None:
    """Kills ``driver`` so long after it took its lock, unless it has ended by then."""
    _wait_for_lock(driver, lake)
    deadline = time.monotonic() + after_s
    while time.monotonic() < deadline and driver.process.poll() is None:
        time.sleep(0.02)
    if driver.process.poll() is None:
        driver.kill()
    else:
        driver.finish()


def _assert_requeued_once(lake: Lake, expected: Expected) -> None:
    """Each click of the source is in bronze once as received, and once requeued."""
    rows = rows_by_name(lake, BRONZE_EVENTS)
    received = Counter(row["raw"] for row in rows if row["verdict"] != "ok")
    assert received == Counter(row["raw"] for row in rows if row["requeued_from"])
    assert received.total() == sum(row[2] == "click" for row in expected.bronze)


def _assert_gold(folder: Path, lake: Lake, expected: Expected) -> None:
    _start(folder, lake.path, "run", "--source", str(folder / "source"), "--drain").finish()
    for table in (SILVER_EVENTS, ATTRIBUTIONS, SESSIONS):
        assert_same_rows(read_table(lake, table), expected.rows(table), table)
    assert read_ledger(lake).requeued == sum(row[2] == "click" for row in expected.bronze)
