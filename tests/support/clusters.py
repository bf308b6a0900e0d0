"""A standalone Spark cluster of local processes, from the Spark in pyspark."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyspark

from tests.support.servers import end, free_port, is_open, wait_until

_SPARK = Path(pyspark.__file__).parent
_DEPLOY = "org.apache.spark.deploy"
_HERE = ("--host", "127.0.0.1", "--webui-port", "0")


@dataclass(frozen=True)
class Cluster:
    """``master`` is its address; ``pids`` are those of master and workers."""

    master: str
    pids: tuple[int, ...]


@contextmanager
def standalone_cluster(folder: Path, *, workers: int = 1, cores: int = 2, memory: str = "2g") -> Iterator[Cluster]:
    """A master and ``workers`` workers with ``cores`` cores and ``memory`` each; their logs go to ``folder``."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    environment = {**os.environ, "SPARK_HOME": str(_SPARK), "SPARK_LOCAL_IP": "127.0.0.1"}
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *command: str) -> Path:
        log_file = folder / f"{name}.log"
        with log_file.open("wb") as log:
            starting = [str(_SPARK / "bin" / "spark-class"), *command]
            processes.append(subprocess.Popen(starting, stdout=log, stderr=log, env=environment))
        return log_file

    try:
        start("master", f"{_DEPLOY}.master.Master", *_HERE, "--port", str(port))
        wait_until(lambda: is_open(port), 60, "the master is not listening")
        sizes = ("--cores", str(cores), "--memory", memory)
        work = [
            start(f"worker-{n}", f"{_DEPLOY}.worker.Worker", *_HERE, *sizes, "-d", str(folder / f"work-{n}"), address)
            for n in range(workers)
        ]
        for log in work:
            wait_until(partial(_is_registered, log), 60, f"a worker did not find the master: {log}")
        yield Cluster(address, tuple(process.pid for process in processes))
    finally:
        for process in reversed(processes):
            end(process)


def _is_registered(log: Path) -> bool:
    return "registered with master" in log.read_text()
