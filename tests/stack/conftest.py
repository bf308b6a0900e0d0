"""Kafka and MinIO, one of each for all tests, and jobs that do not outlive their test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from tests.stack.flow import adloom
from tests.stack.jobs import Job, start_job
from tests.stack.kafka import Kafka
from tests.stack.minio import Minio

StartJob = Callable[..., Job]
_LAKES = "s3a://stack/lakes"
JOBS_USER = "adloom-jobs"
"""Who may do what `adloom init` lets the jobs do; a profile of that name has his keys."""


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    broker = Kafka(tmp_path_factory.mktemp("kafka") / "broker")
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    """A server with a bucket for lakes, and a user for the jobs who may do what `adloom init` lets them."""
    server = Minio(tmp_path_factory.mktemp("minio") / "server")
    server.start()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_SHARED_CREDENTIALS_FILE", str(server.folder / "credentials"))
        for name, value in server.settings().items():
            environment.setenv(name, value)
        adloom("init", "--lake", _LAKES, "--user", JOBS_USER)
        yield server
    server.stop()


@pytest.fixture
def lake(minio: Minio, request: pytest.FixtureRequest) -> Lake:
    """The test's own lake on MinIO, opened with an administrator's keys."""
    name = request.node.originalname.removeprefix("test_")[:100]
    return open_lake(f"{_LAKES}/{name}", S3Settings(endpoint=minio.endpoint))


@pytest.fixture
def topic(kafka: Kafka, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, with three partitions."""
    name: str = request.node.originalname.removeprefix("test_")[:200]
    kafka.make_topic(name, partitions=3)
    return name


@pytest.fixture
def job(kafka: Kafka, topic: str, lake: Lake, tmp_path: Path) -> Iterator[StartJob]:
    """Starts `adloom job` on the test's lake, reading the test's topic without pause; killed after the test."""
    started: list[Job] = []
    basis = {
        "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address,
        "ADLOOM_KAFKA__TOPICS": topic,
        "ADLOOM_JOB__TRIGGER": "asap",
        "ADLOOM_HEARTBEAT__IDLE_AFTER": "0s",
        "ADLOOM_S3__PROFILE": JOBS_USER,
        "ADLOOM_JOB__LOG_FOLDER": str(tmp_path / "logs"),
        # The profile's keys are to be used, and no others are there to be found.
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
    }

    def start(name: str, *arguments: str, **settings: str | None) -> Job:
        log = tmp_path / f"{name}-{len(started)}.log"
        environment = {key: value for key, value in {**basis, **settings}.items() if value is not None}
        started.append(start_job(name, lake, log, *arguments, environment=environment))
        return started[-1]

    yield start
    for one in started:
        one.kill()
