"""Either driver killed at any moment, again and again, while records come: no row is missing, extra or doubled."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from spark_jobs.ingest.input_files import read_records
from spark_jobs.lake.layout import Lake
from tests.stack.conftest import StartJob
from tests.stack.flow import adloom, send
from tests.stack.kafka import Kafka
from tests.support.crashing import MOMENTS
from tests.support.equality import assert_lake_equals_oracle, generate_source

pytestmark = [pytest.mark.stack, pytest.mark.slow]

_KILLS = int(os.environ.get("KILLS", "50"))
_LONGEST_WORK_S = 8.0
_LONGEST_END_S = 900


@pytest.mark.timeout(3600)
def test_drivers_killed_again_and_again_change_no_row(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    source, moments = generate_source(tmp_path / "source", events=1000 * _KILLS, seed=31), random.Random(32)
    records = list(read_records(source))
    share = len(records) // _KILLS + 1
    small_batches = {"ADLOOM_KAFKA__MAX_OFFSETS_PER_TRIGGER": "500"}
    drivers = {name: job(name, **small_batches) for name in ("deduplicate", "attribute")}
    for kill in range(_KILLS):
        send(kafka, topic, records[kill * share : (kill + 1) * share])
        name = ("deduplicate", "attribute")[kill % 2]
        drivers[name].wait_for_log(": started")
        time.sleep(moments.uniform(0, _LONGEST_WORK_S))
        assert drivers[name].process.poll() is None, drivers[name].output
        drivers[name].kill()
        drivers[name] = job(name, **small_batches)
    for driver in drivers.values():
        driver.wait_for_log(": started")
        driver.stop()
    # What the killed ones left behind, in batches as large as they come.
    for name in drivers:
        last = job(name, ADLOOM_JOB__TRIGGER="available_now")
        assert last.wait(_LONGEST_END_S) == 0, last.output
    adloom("drain", "--lake", lake.root)
    assert_lake_equals_oracle(lake, source)


@pytest.mark.timeout(3600)
def test_drivers_killed_at_each_moment_of_a_batch_change_no_row(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    tables = {"bronze": "deduplicate", "silver": "deduplicate", "attributions": "attribute", "sessions": "attribute"}
    cases = [(moment, table, name) for table, name in tables.items() for moment in MOMENTS]
    source = generate_source(tmp_path / "source", events=300 * (len(cases) + 1), seed=33)
    records = list(read_records(source))
    share = len(records) // (len(cases) + 1)
    to_the_end = {"ADLOOM_JOB__TRIGGER": "available_now"}
    send(kafka, topic, records[:share])
    for number, (moment, table, name) in enumerate(cases, start=1):
        send(kafka, topic, records[number * share : (number + 1) * share])
        if name == "attribute":
            assert job("deduplicate", **to_the_end).wait() == 0, "silver would have nothing new"
        doomed = job(name, CRASH_AFTER=f"{moment}:{table}:*", **to_the_end)
        assert doomed.wait() == -signal.SIGKILL, f"{moment} of {table}: {doomed.output}"
    send(kafka, topic, records[(len(cases) + 1) * share :])
    for name in ("deduplicate", "attribute"):
        last = job(name, **to_the_end)
        assert last.wait() == 0, last.output
    adloom("drain", "--lake", lake.root)
    assert_lake_equals_oracle(lake, source)
