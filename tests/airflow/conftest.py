"""Airflow and the drivers, reading a real Kafka and writing a lake on a real MinIO as a user with few permissions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.lake.layout import Lake
from spark_jobs.queries.jobs import ATTRIBUTE_JOB, DEDUPLICATE_JOB
from tests.airflow.embedded import Airflow
from tests.stack.conftest import JOBS_USER, kafka, lake, minio, topic
from tests.stack.kafka import Kafka
from tests.support.lateness import PATIENT_ENVIRONMENT

JOBS = (DEDUPLICATE_JOB, ATTRIBUTE_JOB)
"""The jobs that are deployed."""
__all__ = ["airflow", "kafka", "lake", "minio", "topic"]


@pytest.fixture
def settings(kafka: Kafka, topic: str) -> dict[str, str]:
    """The variables that Airflow and its drivers start with."""
    return {
        "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address,
        "ADLOOM_KAFKA__TOPICS": topic,
        "ADLOOM_JOB__TRIGGER": "asap",
        "ADLOOM_JOB__CHECKPOINT_RETENTION": "1s",
        "ADLOOM_S3__PROFILE": JOBS_USER,
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
        # Three drivers, Airflow and a browser are too much for two cores; the tests in containers run all jobs.
        "ADLOOM_JOBS": ",".join(JOBS),
        # Parts are killed while events arrive; events that wait meanwhile must not be late for `measure`.
        **PATIENT_ENVIRONMENT,
    }


@pytest.fixture
def airflow(lake: Lake, settings: dict[str, str], tmp_path: Path) -> Iterator[Airflow]:
    own = Airflow(tmp_path / "airflow", lake, settings)
    printed = own.start()
    assert own.address in printed
    yield own
    own.stop()
    assert own.left() == []
