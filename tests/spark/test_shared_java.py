"""Commands in one Java, which outlives them: `spark.keep_java`."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import LakeInUseError
from spark_jobs.lake.lock import hold_job
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.jobs import DEDUPLICATE_JOB
from tests.support.drivers import ADLOOM, kill_repeatedly, start_run
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.servers import wait_until

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("KILLS", "4"))
_IDLE_S = 10


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the hosts of this test alone; they end by themselves."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own would be too long for the name of a socket
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setenv("ADLOOM_SPARK__KEEP_JAVA", f"{_IDLE_S}s")
        yield Path(folder) / f"adloom-java-{os.getuid()}"
        wait_until(lambda: not list(Path(folder).glob("*/*.sock")), 90, "a host did not end")


def test_commands_share_a_java_that_ends_when_nobody_uses_it(hosts: Path, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=1500, seed=3, files=3)
    for name in ("first", "second"):
        lake = open_lake(str(tmp_path / name))
        start_run(source, lake.path).finish()
        assert_lake_equals_oracle(lake, source)
        assert len(list(hosts.glob("*.sock"))) == 1
    log = next(hosts.glob("*.log")).read_text(encoding="utf-8")
    assert log.count("ended, and nothing of it is left in Java") == 2
    wait_until(lambda: not list(hosts.glob("*.sock")), _IDLE_S + 60, "the host did not end")


def test_kills_of_commands_that_share_java_change_no_row(hosts: Path, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=4000, seed=8, files=12)
    lake = open_lake(str(tmp_path / "lake"))
    # The process group that is killed holds Python alone: Java goes on.
    assert kill_repeatedly(source, lake.path, kills=KILLS, longest_work_s=3, seed=9) == KILLS
    assert_lake_equals_oracle(lake, source)
    assert len(list(hosts.glob("*.sock"))) == 1


@pytest.mark.parametrize("killed", ["host and Java", "Java alone"])
def test_a_host_that_was_killed_is_replaced(killed: str, hosts: Path, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=1500, seed=3, files=3)
    lake = open_lake(str(tmp_path / "lake"))
    driver = start_run(source, lake.path)
    wait_until(lambda: bool(list((lake.path / "_checkpoints").glob("*/*/v*/offsets/*"))), 120, "nothing was written")
    if killed == "Java alone":
        (java,) = (child for child in psutil.Process(_host(hosts)).children() if child.name() == "java")
        java.kill()
    else:
        os.killpg(_host(hosts), signal.SIGKILL)
    output, _ = driver.process.communicate(timeout=120)
    assert driver.process.returncode != 0, output
    start_run(source, lake.path).finish()
    assert_lake_equals_oracle(lake, source)


def test_a_job_that_shares_java_is_alone_on_its_lake_until_it_is_killed(hosts: Path, tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=500, seed=3, files=1)
    command = [*ADLOOM, "job", "deduplicate", "--lake", str(tmp_path / "lake"), "--source", str(source)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as first:
        wait_until((tmp_path / "lake" / "bronze").is_dir, 120, "the job did not start")
        second = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        # Which was refused by that Java itself, and took the lock from nobody.
        with pytest.raises(LakeInUseError), hold_job(open_lake(str(tmp_path / "lake")), DEDUPLICATE_JOB, S3Settings()):
            pytest.fail("another process has got the lock of the first one")
        first.kill()
    assert second.returncode != 0
    assert "is being run by another process" in second.stderr
    # Java, which held the lock, has not ended.
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as third:
        assert third.stderr is not None
        assert any("ingest: started" in line for line in third.stderr)
        third.send_signal(signal.SIGTERM)
        third.communicate(timeout=60)
    assert third.returncode == 0
    assert len(list(hosts.glob("*.sock"))) == 1


def _host(hosts: Path) -> int:
    """The process group of the only host."""
    (host,) = (
        process.pid
        for process in psutil.process_iter(["cmdline", "environ"])
        if "spark_jobs.spark.java_host" in (process.info["cmdline"] or ())
        and (process.info["environ"] or {}).get("XDG_RUNTIME_DIR") == str(hosts.parent)
    )
    return host
