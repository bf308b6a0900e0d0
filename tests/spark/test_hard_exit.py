"""A driver whose batch does not end: it ends itself, and its lock is not free before that."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.lake.file_lock import is_locked
from spark_jobs.lake.open import open_lake
from spark_jobs.places import lock_key
from spark_jobs.queries.jobs import DEDUPLICATE_JOB
from spark_jobs.streams.reports import QueryState, read_report
from tests.support.equality import generate_source
from tests.support.servers import wait_until

pytestmark = pytest.mark.slow

_HANGING = (sys.executable, "-c", "from tests.support.hanging import main; main()")


@pytest.mark.parametrize("keep_java", ["0s", "5s"], ids=["own-java", "shared-java"])
@pytest.mark.parametrize(
    ("what", "stop_timeout", "code", "says"),
    [
        pytest.param("fails", "3s", 1, "query deduplicate failed: .*it was to fail.*3s", id="query-failed"),
        pytest.param("loses", "1h", 1, "deduplicate: it was to lose its lock", id="lock-lost"),
        pytest.param("nothing", "3s", 143, "deduplicate: interrupted by job.stop_timeout 3s", id="stopped"),
    ],
)
def test_a_driver_with_a_batch_that_hangs_ends_before_its_lock_is_free(
    what: str, stop_timeout: str, code: int, says: str, keep_java: str, tmp_path: Path
) -> None:
    source, lake = generate_source(tmp_path / "source", events=600, seed=3, files=3), tmp_path / "lake"
    settings = {
        "HANG": what,
        "ADLOOM_INGEST__MAX_BYTES_PER_BATCH": "1",
        "ADLOOM_JOB__TRIGGER": "asap",
        "ADLOOM_JOB__STOP_TIMEOUT": stop_timeout,
        "ADLOOM_SPARK__KEEP_JAVA": keep_java,
    }
    command = [*_HANGING, "job", "deduplicate", "--lake", str(lake), "--source", str(source)]
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, **settings}
        ) as driver,
    ):
        assert driver.stdout is not None
        try:
            assert driver.stdout.readline() == "hanging\n", log.read_text()
            if what == "nothing":
                driver.send_signal(signal.SIGTERM)
            printed, _ = driver.communicate(timeout=90)
        finally:
            driver.kill()
    assert (driver.returncode, printed) == (code, "ends at once, with its lock\n")
    *_, last = log.read_text().splitlines()
    assert re.search(says, last), last
    wait_until(lambda: not is_locked(lake / lock_key(DEDUPLICATE_JOB)), 60, "what it left behind keeps its lock")
    if what == "fails":
        report = read_report(open_lake(str(lake)), "deduplicate")
        assert report is not None
        assert report.state is QueryState.FAILED
    batches = [name for name in (lake / "_checkpoints").glob("*/ingest/v1/commits/*") if name.name.isdigit()]
    assert [name.name for name in batches] == ["0"], "the batch that hung was not written"
