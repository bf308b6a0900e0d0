"""Starts `adloom run` as a process of its own and kills it with SIGKILL, Java and all."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.lateness import PATIENT_ENVIRONMENT

ADLOOM = (sys.executable, "-c", "from spark_jobs.cli import main; main()")
"""The command `adloom` as a program of this Python."""
CRASHING = (sys.executable, "-c", "from tests.support.crashing import main; main()")
"""The same, doomed: see :mod:`tests.support.crashing`."""
_LONGEST_RUN_S = 300
_POLL_S = 0.05


@dataclass(frozen=True)
class Driver:
    """A run in a process group of its own."""

    process: subprocess.Popen[str]

    def kill(self) -> None:
        """SIGKILL to the driver's Python and Java at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def finish(self) -> None:
        """Waits for the run to end well."""
        output, _ = self.process.communicate(timeout=_LONGEST_RUN_S)
        assert self.process.returncode == 0, output


def start_run(source: Path, lake: Path, *, crash_after: str | None = None) -> Driver:
    """`adloom run --drain`, a batch for each file, far from UTC; ``crash_after``: see :mod:`tests.support.crashing`."""
    one_each = {"ADLOOM_INGEST__MAX_BYTES_PER_BATCH": "1", **PATIENT_ENVIRONMENT}
    environment = {**os.environ, **one_each, "TZ": "Asia/Tokyo"}
    program = ADLOOM
    if crash_after:
        program, environment["CRASH_AFTER"] = CRASHING, crash_after
    command = [*program, "run", "--source", str(source), "--lake", str(lake), "--drain"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, env=environment
    )
    return Driver(process)


def kill_repeatedly(source: Path, lake: Path, *, kills: int, longest_work_s: float, seed: int) -> int:
    """Runs ``source`` into ``lake``, killing the driver ``kills`` times, then to the end.

    Each driver is killed up to ``longest_work_s`` seconds, drawn with ``seed``, after it first wrote to a checkpoint.

    Returns:
        How many drivers were killed at work: fewer than ``kills`` if one came to the end before its time.
    """
    moments = random.Random(seed)
    for killed in range(kills):
        driver = start_run(source, lake)
        before = _files(lake / "_checkpoints")
        _wait_until(lambda before=before: _files(lake / "_checkpoints") != before, driver)  # type: ignore[misc]
        deadline = time.monotonic() + moments.uniform(0, longest_work_s)
        while time.monotonic() < deadline and driver.process.poll() is None:
            time.sleep(_POLL_S)
        if driver.process.poll() is not None:
            driver.finish()
            return killed
        driver.kill()
    start_run(source, lake).finish()
    return kills


def _wait_until(happened: Callable[[], bool], driver: Driver) -> None:
    deadline = time.monotonic() + _LONGEST_RUN_S
    while not happened() and driver.process.poll() is None:
        assert time.monotonic() < deadline, "the driver wrote nothing"
        time.sleep(_POLL_S)


def _files(folder: Path) -> frozenset[str]:
    return frozenset(str(file) for file in folder.glob("*/*/v*/offsets/*"))
