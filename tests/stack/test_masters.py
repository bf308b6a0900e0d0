"""A run on a cluster of its own processes gives what one in a single process gives."""

import os
import subprocess
from pathlib import Path

import pytest

from spark_jobs.lake.open import open_lake
from tests.support.clusters import standalone_cluster
from tests.support.drivers import ADLOOM
from tests.support.equality import assert_lake_equals_oracle, generate_source

pytestmark = [pytest.mark.stack, pytest.mark.slow]


def test_a_run_on_a_standalone_cluster_equals_the_oracle(tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=2000, seed=81)
    lake = open_lake(str(tmp_path / "lake"))
    command = [*ADLOOM, "run", "--source", str(source), "--lake", str(lake.path), "--drain"]
    with standalone_cluster(tmp_path) as cluster:
        environment = {**os.environ, "ADLOOM_SPARK__MASTER": cluster.master, "SPARK_LOCAL_IP": "127.0.0.1"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_lake_equals_oracle(lake, source)
