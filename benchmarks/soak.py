"""A long steady load, then a burst: do backlog, state and memory stay flat, is the burst absorbed? `make soak`."""

import json
import os
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import psutil
import typer
from rich.console import Console

from spark_jobs.config.sections import KafkaSettings, S3Settings
from spark_jobs.generator.publish import generated_records, publish
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import JOB_OF_QUERY
from spark_jobs.streams.reports import QueryReport
from tests.stack.flow import adloom
from tests.stack.jobs import Job, start_job
from tests.stack.kafka import Kafka
from tests.stack.minio import Minio

_TOPIC = "events"
_SAMPLE_S = 10.0
_ROUNDS_OF_EVENTS = 200_000
_FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)
_SLACK = 1.25
"""How far the last third may exceed the second, to allow for fluctuation."""
_LONGEST_BACKLOG_S = 3600
_FILL_S = 240
"""Longer than the horizon of any state with the settings :data:`_SHORT`."""
_SHORT = {
    # With watermarks of hours it would take hours for the state to level off.
    "ADLOOM_DEDUPLICATE__WATERMARK": "2min",
    "ADLOOM_ATTRIBUTE__IMPRESSION_WATERMARK": "1min",
    "ADLOOM_ATTRIBUTE__CLICK_WATERMARK": "2min",
    "ADLOOM_ATTRIBUTE__WINDOW": "1min",
    "ADLOOM_SESSIONIZE__GAP": "20s",
    "ADLOOM_SESSIONIZE__WATERMARK": "30s",
}


@dataclass(frozen=True)
class Sample:
    """One sample: seconds since the start, records sent, backlog of the slowest query, state rows, MiB of memory.

    ``batch_s`` is the sum of the latest batch durations of all queries, in seconds.
    """

    at_s: float
    sent: int
    backlog: int
    state_rows: int
    memory_mib: float
    batch_s: float


@dataclass
class Soak:
    """The servers, both jobs, and the samples taken."""

    out: Path
    kafka: Kafka
    minio: Minio
    lake: Lake
    jobs: list[Job] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    sent: int = 0
    _days: Iterator[int] = field(default_factory=lambda: count(1))
    _started: float = field(default_factory=time.monotonic)

    def send(self, records: int, rate: float | None) -> float:
        """Sends ``records`` events with current times; returns the rate reached, in records per second."""
        events = chain.from_iterable(generated_records(_traffic(day)) for day in self._days)
        settings = KafkaSettings(bootstrap_servers=self.kafka.address, topics=(_TOPIC,))
        before = self.sent

        def count_sent(done: int) -> None:
            self.sent = before + done

        taken = (record for record, _ in zip(events, range(records), strict=False))
        done = publish(taken, settings, rate=rate, is_live=True, on_progress=count_sent)
        self.sent = before + done.records
        return done.records / done.seconds

    def look(self) -> Sample:
        """Takes a sample."""
        reports = {query: self._report(query) for query in JOB_OF_QUERY}
        through = [report.total_rows if report else 0 for report in reports.values()]
        processes = [psutil.Process(job.process.pid) for job in self.jobs]
        family = [one for process in processes for one in (process, *process.children(recursive=True))]
        sample = Sample(
            at_s=round(time.monotonic() - self._started, 1),
            sent=self.sent,
            backlog=max(0, self.sent - min(through)),
            state_rows=sum(report.state_rows or 0 for report in reports.values() if report),
            memory_mib=round(sum(one.memory_info().rss for one in family) / 2**20, 1),
            batch_s=sum(report.phases_ms.get("triggerExecution", 0) for report in reports.values() if report) / 1000,
        )
        self.samples.append(sample)
        return sample

    def look_while(self, work: Callable[[], object]) -> list[Sample]:
        """Takes samples while ``work`` runs in another thread."""
        first = len(self.samples)
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        while worker.is_alive():
            worker.join(_SAMPLE_S)
            self.look()
        return self.samples[first:]

    def catch_up(self, limit_s: float = _LONGEST_BACKLOG_S) -> float:
        """Waits until the backlog is empty; returns the seconds it took."""
        start = time.monotonic()
        while self.look().backlog > 0:
            if time.monotonic() - start > limit_s:
                raise typer.BadParameter(f"the backlog was not processed within {limit_s} s")
            time.sleep(1)
        return time.monotonic() - start

    def _report(self, query: str) -> QueryReport | None:
        return next((job.report(query) for job in self.jobs if job.name == JOB_OF_QUERY[query]), None)


@contextmanager
def soaking(out: Path) -> Iterator[Soak]:
    """Starts the servers and both jobs, and stops them on exit."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    kafka, minio = Kafka(out / "kafka"), Minio(out / "minio")
    keys = mock.patch.dict(os.environ, minio.settings())
    keys.start()
    soak = Soak(out, kafka, minio, open_lake("s3a://soak/lake", S3Settings(endpoint=minio.endpoint)))
    try:
        kafka.start()
        minio.start()
        adloom("init", "--lake", soak.lake.root)
        kafka.make_topic(_TOPIC, partitions=2)
        environment = {
            "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address,
            "ADLOOM_KAFKA__TOPICS": _TOPIC,
            "ADLOOM_KAFKA__MAX_OFFSETS_PER_TRIGGER": "100000",
            "ADLOOM_JOB__TRIGGER": "asap",
            "ADLOOM_HEARTBEAT__IDLE_AFTER": "0s",
            "ADLOOM_SPARK__DRIVER_MEMORY": "2g",
            **_SHORT,
        }
        for name in ("deduplicate", "attribute"):
            soak.jobs.append(start_job(name, soak.lake, out / f"{name}.log", environment=environment))
        yield soak
        for job in soak.jobs:
            job.stop()
    finally:
        for job in soak.jobs:
            job.kill()
        kafka.stop()
        minio.stop()
        keys.stop()


def _traffic(day: int) -> GeneratorSpec:
    """The events of a day; days follow each other because live replay advances with the recorded times.

    There are no late events, malformed records or duplicates, so every query processes as many rows as were sent, and
    the backlog can be counted.
    """
    start = _FIRST_DAY + timedelta(days=day)
    return GeneratorSpec(events=_ROUNDS_OF_EVENTS, seed=day, start=start, late=0, malformed=0, duplicates=0)


def is_flat(values: Sequence[float]) -> bool:
    """Whether the last third of ``values`` is no higher than the second, apart from fluctuation."""
    third = max(1, len(values) // 3)
    second, last = values[third : 2 * third] or values, values[-third:]
    return statistics.mean(last) <= _SLACK * statistics.mean(second) + 1


def run_soak(
    soak: Soak, *, minutes: float, share: float, preload: int, burst_s: int, console: Console
) -> dict[str, Any]:
    """Measures the maximum, holds ``share`` of it for ``minutes``, then ten times that for ``burst_s`` seconds.

    The maximum is measured with the state filled at half of a first estimate: a join scans its state in each batch. The
    load is held for :data:`_FILL_S` before it counts, because the state still grows until then.
    """
    with console.status("warming up …"):
        soak.send(preload // 3, None)
        soak.catch_up()
        guess = _measure_maximum(soak, preload)
    with console.status(f"filling the state at {guess / 2:,.0f} records/s …"):
        soak.send(int(guess / 2 * _FILL_S), guess / 2)
        soak.catch_up()
    with console.status("measuring the maximum …"):
        maximum = _measure_maximum(soak, preload)
    rate = share * maximum
    console.print(f"maximum {maximum:,.0f} records/s; holding {rate:,.0f} for {minutes:g} minutes", highlight=False)
    with console.status("holding: waiting for the state to level off …"):
        soak.send(int(rate * _FILL_S), rate)
    with console.status("holding …"):
        steady = soak.look_while(lambda: soak.send(int(rate * minutes * 60), rate))
    burst_rate = 0.0

    def burst() -> None:
        nonlocal burst_rate
        burst_rate = soak.send(int(10 * rate * burst_s), 10 * rate)

    with console.status("a burst …"):
        soak.look_while(burst)
        absorbed_s = soak.catch_up()
    flat = {
        name: is_flat([float(getattr(sample, name)) for sample in steady])
        for name in ("backlog", "state_rows", "memory_mib")
    }
    return {
        "maximum_records_per_s": round(maximum),
        "held_records_per_s": round(rate),
        "minutes": minutes,
        "flat": flat,
        "burst_records_per_s": round(burst_rate),
        "burst_absorbed_s": round(absorbed_s, 1),
        "samples": [asdict(sample) for sample in soak.samples],
    }


def _measure_maximum(soak: Soak, records: int) -> float:
    """Records per second, from the first one sent to the last one processed."""
    start = time.monotonic()
    soak.send(records, None)
    soak.catch_up()
    return records / (time.monotonic() - start)


def main(
    minutes: Annotated[float, typer.Option(help="How long to hold the load.")] = 30,
    share: Annotated[float, typer.Option(help="The load, as a share of the measured maximum.")] = 0.7,
    preload: Annotated[int, typer.Option(help="Records to measure the maximum with.")] = 300_000,
    burst: Annotated[int, typer.Option(help="Seconds of ten times the load, at the end.")] = 60,
    out: Annotated[Path, typer.Option(help="Folder for servers, logs and results; replaced.")] = Path("build/soak"),
) -> None:
    """Measure the maximum load of both jobs, hold a share of it, check that nothing grows, then send a burst."""
    console = Console()
    with soaking(out) as soak:
        result = run_soak(soak, minutes=minutes, share=share, preload=preload, burst_s=burst, console=console)
    (out / "results.json").write_text(json.dumps(result, indent=2) + "\n")
    console.print({name: value for name, value in result.items() if name != "samples"})
    if not all(result["flat"].values()):
        console.print("not flat: see the samples in results.json", style="red")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
