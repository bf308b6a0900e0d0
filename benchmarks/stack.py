"""Latency from event sent to row visible in gold, through real Kafka, both jobs and MinIO: `make bench-stack`."""

import json
import os
import re
import shutil
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self

import psutil
import typer
from rich.console import Console

from benchmarks.common import click_delays, delay_figures
from benchmarks.measure import cpu_seconds
from spark_jobs.config.sections import KafkaSettings, S3Settings
from spark_jobs.generator.publish import generated_records, publish
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import QUERIES_OF_JOB
from tests.stack.flow import adloom
from tests.stack.jobs import Job, start_job
from tests.stack.kafka import Kafka
from tests.stack.minio import Minio

_TOPIC = "events"
_HOST = re.compile(r"shares the Java of process (\d+)")


@dataclass(frozen=True)
class _Work:
    """A job's CPU seconds and the number of batches of its queries."""

    cpu_s: float
    batches: int

    def since(self, earlier: Self) -> Self:
        return replace(self, cpu_s=round(self.cpu_s - earlier.cpu_s, 1), batches=self.batches - earlier.batches)


def main(
    rate: Annotated[float, typer.Option(help="Records per second.")] = 1000,
    seconds: Annotated[int, typer.Option(help="How long to send.")] = 180,
    interval: Annotated[
        str,
        typer.Option(help="job.trigger_interval of ingest, as in 5s; sessions every 30 s. Unset: job.trigger = asap."),
    ] = "",
    follow: Annotated[str, typer.Option(help="job.follow_interval of the queries that follow ingest.")] = "1s",
    keep_java: Annotated[
        str, typer.Option(help="spark.keep_java, as in 30s: the jobs share one Java. 0s: each has its own.")
    ] = "0s",
    warm_up: Annotated[int, typer.Option(help="Seconds at the start to leave out of the figures.")] = 60,
    window: Annotated[
        int, typer.Option(help="Also give the figures of each window of this many seconds: do they stay flat? 0: no.")
    ] = 0,
    out: Annotated[Path, typer.Option(help="Folder for broker, MinIO and results; replaced.")] = Path(
        "build/bench-stack"
    ),
) -> None:
    """Measure the time from sending a click until its attribution can be read."""
    console = Console()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    kafka, minio = Kafka(out / "kafka"), Minio(out / "minio")
    os.environ |= minio.settings()
    lake = open_lake("s3a://bench/lake", S3Settings(endpoint=minio.endpoint))
    jobs: list[Job] = []
    try:
        kafka.start()
        minio.start()
        adloom("init", "--lake", lake.root)
        kafka.make_topic(_TOPIC, partitions=2)
        given = {"ADLOOM_JOB__FOLLOW_INTERVAL": follow, "ADLOOM_SPARK__KEEP_JAVA": keep_java}
        jobs = _start_jobs(kafka, lake, out, interval, given)
        begin, works = datetime.now(UTC).timestamp(), dict[int, dict[str, _Work]]()
        for at in (warm_up, *(range(window, seconds, window) if window else ())):
            threading.Timer(at, lambda at=at: works.update({at: _work(jobs)})).start()
        _send(kafka, rate, seconds, console)
        at_begin, at_end = works[warm_up], _work(jobs)
        threading.Event().wait(30)  # for the last records to arrive
        for job in jobs:
            job.stop()
        every = click_delays(lake)
        delays = [delay for sent, delay in every if sent >= begin + warm_up]
    finally:
        for job in jobs:
            job.kill()
        kafka.stop()
        minio.stop()
    result = {
        "records_per_s": rate,
        "clicked": len(delays),
        **delay_figures(delays),
        "jobs": _between(at_begin, at_end),
    }
    if window:
        ends = [*sorted(at for at in works if at % window == 0), seconds]
        works |= {0: {}, seconds: at_end}
        result["windows"] = [
            {
                "until_s": end,
                **delay_figures([delay for sent, delay in every if end - window <= sent - begin < end]),
                "jobs": _between(works[end - window], works[end]),
            }
            for end in ends
            if end % window == 0
        ]
    (out / "results.json").write_text(json.dumps(result, indent=2) + "\n")
    console.print(result)


def _start_jobs(kafka: Kafka, lake: Lake, out: Path, interval: str, given: Mapping[str, str]) -> list[Job]:
    environment = {
        "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address,
        "ADLOOM_KAFKA__TOPICS": _TOPIC,
        "ADLOOM_SPARK__DRIVER_MEMORY": "2g",
        **given,
    }
    triggers = {
        # The interval is ingest's; the queries towards gold follow it. Sessions close half an hour later.
        "deduplicate": {"ADLOOM_JOB__TRIGGER_INTERVAL": interval} if interval else {"ADLOOM_JOB__TRIGGER": "asap"},
        "attribute": {"ADLOOM_JOB__TRIGGER_INTERVAL": "30s"} if interval else {"ADLOOM_JOB__TRIGGER": "asap"},
    }
    jobs = [
        start_job(name, lake, out / f"{name}.log", environment=environment | trigger)
        for name, trigger in triggers.items()
    ]
    jobs[0].wait_for_log("ingest: started")
    return jobs


def _send(kafka: Kafka, rate: float, seconds: int, console: Console) -> None:
    spec = GeneratorSpec(events=int(rate * seconds), seed=1, late=0, malformed=0, duplicates=0)
    settings = KafkaSettings(bootstrap_servers=kafka.address, topics=(_TOPIC,))
    with console.status(f"sending {rate:,.0f} records per second for {seconds} s"):
        sent = publish(generated_records(spec), settings, rate=rate, is_live=True)
    console.print(f"{sent.records:,} records sent, {sent.records / sent.seconds:,.0f} per second")


def _work(jobs: list[Job]) -> dict[str, _Work]:
    """The work of each job so far; and that of the Java that they share, which is not in theirs."""
    hosts = {int(found[1]) for job in jobs if (found := _HOST.search(job.output))}
    shared = {host: cpu_seconds(host) for host in hosts}
    work = {}
    for job in jobs:
        # The job that started the host is its parent.
        of_others = sum(spent for host, spent in shared.items() if psutil.Process(host).ppid() == job.process.pid)
        work[job.name] = _Work(cpu_seconds(job.process.pid) - of_others, _batches(job))
    return work | {f"Java of process {host}": _Work(spent, 0) for host, spent in shared.items()}


def _batches(job: Job) -> int:
    reports = [job.report(query) for query in QUERIES_OF_JOB[job.name]]
    return sum(1 + report.batch_id for report in reports if report and report.batch_id is not None)


def _between(begin: Mapping[str, _Work], end: Mapping[str, _Work]) -> dict[str, object]:
    return {name: asdict(work.since(begin.get(name, _Work(0, 0)))) for name, work in end.items()}


if __name__ == "__main__":
    typer.run(main)
