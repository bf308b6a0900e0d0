"""Airflow for real: a deployment, each part of it killed again and again, and rows that equal the oracle's."""

import os
from pathlib import Path

import pytest

from spark_jobs.ingest.input_files import read_records
from spark_jobs.lake.layout import Lake
from tests.airflow.conftest import JOBS
from tests.airflow.embedded import Airflow
from tests.airflow.parts import PARTS, WATCHED, wait_for_one, wait_until_watched
from tests.stack.flow import adloom, send, wait_for_rows
from tests.stack.kafka import Kafka
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.servers import wait_until

_KILLS = int(os.environ.get("KILLS", "1"))
"""The number of times each part is killed."""
_LONGEST_S = 300
_WORKERS = 4
"""The number of workers of a scheduler."""

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.timeout(1200 + 600 * _KILLS)]


def test_whatever_is_killed_there_is_one_driver_and_no_row_is_lost(
    airflow: Airflow, kafka: Kafka, topic: str, lake: Lake, tmp_path: Path
) -> None:
    kills = [*PARTS] * _KILLS
    source = generate_source(tmp_path / "source", events=600 * (len(kills) + 1), seed=95)
    records = list(read_records(source))
    share = len(records) // (len(kills) + 1) + 1
    send(kafka, topic, records[:share])

    airflow.pause_changing()
    airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams"), "success")
    for job in JOBS:
        wait_for_one(airflow, job)
        wait_until_watched(airflow, job)

    for number, part in enumerate(kills, start=1):
        send(kafka, topic, records[number * share : (number + 1) * share])
        PARTS[part](airflow)
        for job in JOBS:
            wait_for_one(airflow, job)
    wait_for_rows(lake, len(records))

    # The watch still works: the job whose task is marked is stopped, and the other one is not.
    (run,) = airflow.running("supervise_attribute")
    airflow.mark("supervise_attribute", run, "supervise", "failed")
    wait_until(lambda: airflow.drivers("attribute") == [], _LONGEST_S, "it was not stopped")
    assert not airflow.is_wanted("attribute")
    assert airflow.is_wanted(WATCHED)
    wait_for_one(airflow, WATCHED)

    airflow.wait_for("deploy_streams", airflow.trigger("deploy_streams", action="stop"), "success")
    assert [airflow.drivers(job) for job in JOBS] == [[], []]
    assert len(airflow.workers(b": <idle>")) <= _WORKERS, "those of killed schedulers are gone"
    adloom("drain", "--lake", lake.root)
    assert_lake_equals_oracle(lake, source)
