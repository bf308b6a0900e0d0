"""One broker for all tests, and jobs that do not outlive their test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stack.jobs import Job, start_job
from tests.stack.servers import Kafka

StartJob = Callable[..., Job]


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    broker = Kafka(tmp_path_factory.mktemp("kafka") / "broker")
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def topic(kafka: Kafka, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, with three partitions."""
    name: str = request.node.originalname.removeprefix("test_")[:200]
    kafka.make_topic(name, partitions=3)
    return name


@pytest.fixture
def job(kafka: Kafka, topic: str, tmp_path: Path) -> Iterator[StartJob]:
    """Starts `adloom job` on ``tmp_path/lake``, reading the test's topic without pause; killed after the test."""
    started: list[Job] = []
    basis = {
        "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address,
        "ADLOOM_KAFKA__TOPICS": topic,
        "ADLOOM_JOB__TRIGGER": "asap",
        "ADLOOM_HEARTBEAT__IDLE_AFTER": "0s",
    }

    def start(name: str, *arguments: str, **settings: str) -> Job:
        log = tmp_path / f"{name}-{len(started)}.log"
        started.append(start_job(name, tmp_path / "lake", log, *arguments, environment={**basis, **settings}))
        return started[-1]

    yield start
    for one in started:
        one.kill()
