"""A disk that fills up under the state: a clear error, nothing lost, and the next run continues."""

import os
import subprocess
from pathlib import Path

import pytest

from spark_jobs.lake.open import open_lake
from tests.support.drivers import ADLOOM
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lateness import PATIENT_ENVIRONMENT

pytestmark = pytest.mark.slow

_ON_A_SMALL_DISK = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
_MOUNT = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"'
"""A disk private to this process: it needs no privileges, and disappears with the process."""

_SNAPSHOTS_AT_ONCE = (
    "--conf spark.sql.streaming.stateStore.minDeltasForSnapshot=1 "
    "--conf spark.sql.streaming.stateStore.maintenanceInterval=1s"
)


def _run(source: Path, lake: Path, *, on: list[str], scratch: Path) -> subprocess.CompletedProcess[str]:
    command = [*on, *ADLOOM, "run", "--source", str(source), "--lake", str(lake), "--drain"]
    environment = {
        **os.environ,
        "SPARK_LOCAL_DIRS": str(scratch),
        "ADLOOM_INGEST__MAX_BYTES_PER_BATCH": "1",
        **PATIENT_ENVIRONMENT,
        # RocksDB writes to the disk when a snapshot is made: else once a minute.
        "PYSPARK_SUBMIT_ARGS": f"{_SNAPSHOTS_AT_ONCE} pyspark-shell",
    }
    return subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, env=environment)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", [pytest.param("128k", id="at the start"), pytest.param("2m", id="half-way")])
def test_a_full_disk_under_the_state_is_named_and_loses_nothing(tmp_path: Path, size: str) -> None:
    source = generate_source(tmp_path / "source", events=20_000, seed=91, files=6)
    scratch, lake = tmp_path / "scratch", tmp_path / "lake"
    scratch.mkdir()
    full = _run(source, lake, on=[*_ON_A_SMALL_DISK, _MOUNT, "sh", size, str(scratch)], scratch=scratch)
    assert full.returncode == 1, full.stdout
    errors = [line for line in full.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, full.stderr
    assert "failed: a disk is full" in errors[0]
    assert "Traceback" not in full.stderr
    after = _run(source, lake, on=[], scratch=scratch)
    assert after.returncode == 0, after.stderr
    assert_lake_equals_oracle(open_lake(str(lake)), source)
