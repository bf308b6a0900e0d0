"""A driver is killed before and after each write that it makes to the store, once: `make test-crash-points`.

POINTS says at how many of them, drawn with a seed; all takes a night.
"""

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from tests.stack.flow import adloom
from tests.stack.minio import Minio
from tests.support.deadly_proxy import DeadlyProxy
from tests.support.drivers import ADLOOM
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lateness import PATIENT_ENVIRONMENT

pytestmark = pytest.mark.slow

_LONGEST_S = 400
_ONE_EACH = {"ADLOOM_INGEST__MAX_BYTES_PER_BATCH": "1", **PATIENT_ENVIRONMENT}


def _counts(path: str) -> bool:
    """Reports and locks change no row, and come at any time."""
    return "/lake" in path and "/_progress/" not in path


def _run(lake: Lake, source: Path, proxy: DeadlyProxy) -> int:
    """A run to its end or to its death; returns its exit code."""
    command = [*ADLOOM, "run", "--source", str(source), "--lake", lake.root, "--drain"]
    environment = {**os.environ, **_ONE_EACH, "ADLOOM_S3__ENDPOINT": f"http://127.0.0.1:{proxy.port}"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    proxy.kill = lambda: os.killpg(process.pid, signal.SIGKILL)
    with proxy.running():
        _, errors = process.communicate(timeout=_LONGEST_S)
    assert process.returncode in {0, -signal.SIGKILL}, errors.decode()[-2000:]
    return process.returncode


def test_a_kill_at_a_write_changes_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, minio = generate_source(tmp_path / "source", events=600, seed=8, files=2), Minio(tmp_path / "minio")
    for name, value in minio.settings().items():
        monkeypatch.setenv(name, value)
    minio.start()
    try:
        settings = S3Settings(endpoint=minio.endpoint)
        first = open_lake("s3a://crash/lake0", settings)
        adloom("init", "--lake", first.root)
        proxy = DeadlyProxy(minio.port, _counts)
        assert _run(first, source, proxy) == 0
        writes = len(proxy.paths)
        points = [(number, is_done) for number in range(1, writes + 1) for is_done in (False, True)]
        wanted = os.environ.get("POINTS", "20")
        chosen = points if wanted == "all" else random.Random(8).sample(points, min(int(wanted), len(points)))
        print(f"{len(chosen)} of {len(points)} points: before and after each of {writes} writes")
        for place, (number, is_done) in enumerate(chosen, start=1):
            lake = open_lake(f"s3a://crash/lake{place}", settings)
            adloom("init", "--lake", lake.root)
            deadly = DeadlyProxy(minio.port, _counts, number, is_done)
            died = _run(lake, source, deadly) != 0
            print(
                f"{'after' if is_done else 'before'} write {number}: {deadly.paths[number - 1 : number]}, died: {died}"
            )
            assert _run(lake, source, DeadlyProxy(minio.port, _counts)) == 0
            assert_lake_equals_oracle(lake, source)
    finally:
        minio.stop()
