"""Servers that die and networks that fail: no row is missing, extra or doubled, and work goes on soon after."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.ingest.input_files import read_records
from spark_jobs.lake.layout import Lake
from tests.stack.conftest import StartJob
from tests.stack.flow import adloom, send, wait_for_rows
from tests.stack.kafka import Kafka
from tests.stack.minio import Minio
from tests.stack.supervisor import Supervisor
from tests.stack.toxiproxy import BLACK_HOLE, LATENCY, RESETS, SLOW, Toxiproxy
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_table
from tests.support.servers import wait_until

pytestmark = [pytest.mark.stack, pytest.mark.slow]

_ROUNDS = int(os.environ.get("ROUNDS", "5"))
_OUTAGE_S = 30
_RECOVERY_S = 60
_SHARE = 800


@dataclass
class Work:
    """Both jobs, kept alive, and records sent to them bit by bit."""

    kafka: Kafka
    topic: str
    lake: Lake
    records: Sequence[bytes]
    jobs: list[Supervisor]
    sent: int = 0
    findings: list[str] = field(default_factory=list)

    def send(self, count: int = _SHARE) -> None:
        send(self.kafka, self.topic, self.records[self.sent : self.sent + count])
        self.sent += len(self.records[self.sent : self.sent + count])

    def bronze_commits(self) -> int:
        return sum(name.endswith(".json") for name in self.lake.files.names(f"{BRONZE_EVENTS.path}/_delta_log"))

    def recover(self, what: str) -> None:
        """Returns when a batch has been written; fails if that takes longer than it may."""
        self.send()
        before, start = self.bronze_commits(), time.monotonic()
        wait_until(lambda: self.bronze_commits() > before, _RECOVERY_S, f"no batch within {_RECOVERY_S} s of {what}")
        restarts = sum(job.restarts for job in self.jobs)
        self.findings.append(f"{what}: first batch after {time.monotonic() - start:.1f} s, {restarts} restarts so far")

    def finish(self, source: Path) -> None:
        """Sends the rest and holds all tables against the oracle."""
        self.send(len(self.records))
        wait_for_rows(self.lake, len(self.records))
        for job in self.jobs:
            job.stop()
        adloom("drain", "--lake", self.lake.root)
        print("\n".join(self.findings))
        assert_lake_equals_oracle(self.lake, source)


@contextmanager
def _at_work(kafka: Kafka, topic: str, lake: Lake, job: StartJob, source: Path, **settings: str) -> Iterator[Work]:
    settings |= {"ADLOOM_KAFKA__MAX_OFFSETS_PER_TRIGGER": "2000"}
    jobs = [Supervisor(lambda name=name: job(name, **settings)) for name in ("deduplicate", "attribute")]  # type: ignore[misc]
    work = Work(kafka, topic, lake, list(read_records(source)), jobs)
    work.send()
    wait_until(lambda: bool(read_table(lake, BRONZE_EVENTS)), 180, "the jobs did not begin")
    yield work


@pytest.mark.timeout(3600)
def test_servers_killed_for_half_a_minute_again_and_again(
    kafka: Kafka, minio: Minio, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    source = generate_source(tmp_path / "source", events=4 * _SHARE * (_ROUNDS + 1), seed=61)
    with _at_work(kafka, topic, lake, job, source) as work:
        for number in range(_ROUNDS):
            for server in (minio, kafka):
                work.send()
                server.stop(signal.SIGKILL)
                time.sleep(_OUTAGE_S)
                server.start()
                work.recover(f"kill {number + 1} of {type(server).__name__}")
        work.finish(source)


@pytest.fixture
def proxy(tmp_path: Path, kafka: Kafka, minio: Minio) -> Iterator[Toxiproxy]:
    server = Toxiproxy(tmp_path / "toxiproxy")
    server.start()
    server.lead("kafka", port=kafka.proxied_port, to=kafka.behind_proxy_port)
    server.lead("minio", port=minio.proxied_port, to=minio.port)
    yield server
    server.stop()


@pytest.mark.timeout(3600)
def test_networks_that_are_slow_cut_or_silent(
    kafka: Kafka, minio: Minio, proxy: Toxiproxy, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    source = generate_source(tmp_path / "source", events=12 * _SHARE, seed=62)
    through = {
        "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{kafka.proxied_port}",
        "ADLOOM_S3__ENDPOINT": f"http://127.0.0.1:{minio.proxied_port}",
    }
    faults: dict[str, AbstractContextManager[None]] = {
        "latency of 200 ms, 100 more or less": proxy.toxic(LATENCY, "kafka", "minio"),
        "64 KB/s": proxy.toxic(SLOW, "kafka", "minio"),
        "connections reset": proxy.toxic(RESETS, "kafka", "minio"),
        "a black hole before MinIO": proxy.toxic(BLACK_HOLE, "minio"),
        "a black hole before Kafka": proxy.toxic(BLACK_HOLE, "kafka"),
        "no fault": nullcontext(),
    }
    with _at_work(kafka, topic, lake, job, source, **through) as work:
        for what, fault in faults.items():
            with fault:
                work.send()
                time.sleep(_OUTAGE_S)
            work.recover(what)
        work.finish(source)


@pytest.mark.timeout(3600)
def test_two_hundred_thousand_events_from_kafka_to_gold(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    source = generate_source(tmp_path / "source", events=200_000, seed=63)
    records = list(read_records(source))
    send(kafka, topic, records)
    jobs = [job(name, ADLOOM_KAFKA__MAX_OFFSETS_PER_TRIGGER="40000") for name in ("deduplicate", "attribute")]

    def is_taken_in() -> bool:
        report = jobs[0].report("ingest")
        return report is not None and report.total_input_rows >= len(records)

    wait_until(is_taken_in, 600, "ingest did not come to the end")
    for one in jobs:
        one.stop()
    adloom("drain", "--lake", lake.root)
    assert_lake_equals_oracle(lake, source)
