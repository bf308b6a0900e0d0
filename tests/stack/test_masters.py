"""A run on a cluster of its own processes gives what one in a single process gives."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from spark_jobs.runtime.lakes import open_lake
from tests.support.drivers import ADLOOM
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.servers import end, free_port, is_open, wait_until

pytestmark = [pytest.mark.stack, pytest.mark.slow]

_SPARK = Path(pyspark.__file__).parent


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A standalone master and a worker with two cores, from the Spark that pyspark ships."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    environment = {**os.environ, "SPARK_HOME": str(_SPARK), "SPARK_LOCAL_IP": "127.0.0.1"}
    deploy = "org.apache.spark.deploy"
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = (
        [f"{deploy}.master.Master", *here, "--port", str(port)],
        [f"{deploy}.worker.Worker", *here, "--cores", "2", "--memory", "2g", "-d", str(tmp_path / "work"), address],
    )
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            with (tmp_path / f"{command[0].rpartition('.')[2]}.log").open("wb") as log:
                start = [str(_SPARK / "bin" / "spark-class"), *command]
                processes.append(subprocess.Popen(start, stdout=log, stderr=log, env=environment))
            wait_until(lambda: is_open(port), 60, "the master does not listen")
        told = tmp_path / "Worker.log"
        wait_until(lambda: "registered with master" in told.read_text(), 60, "the worker did not find the master")
        yield address
    finally:
        for process in processes:
            end(process)


def test_a_run_on_a_standalone_cluster_equals_the_oracle(master: str, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=2000, seed=81)
    lake = open_lake(str(tmp_path / "lake"))
    environment = {**os.environ, "ADLOOM_SPARK__MASTER": master, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [*ADLOOM, "run", "--source", str(source), "--lake", str(lake.path), "--drain"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_lake_equals_oracle(lake, source)
