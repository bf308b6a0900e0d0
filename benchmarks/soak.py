"""Steady load for long, then a burst: do backlog, state and memory stay flat, does the burst drain? `make soak`."""

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

from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.progress import QueryReport
from spark_jobs.contracts.sections import KafkaSettings, S3Settings
from spark_jobs.generator.publish import generated_records, publish
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.queries import JOB_OF_QUERY
from spark_jobs.runtime.lakes import open_lake
from tests.stack.flow import adloom
from tests.stack.jobs import Job, start_job
from tests.stack.kafka import Kafka
from tests.stack.minio import Minio

_TOPIC = "events"
_SAMPLE_S = 10.0
_ROUNDS_OF_EVENTS = 200_000
_FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)
_SLACK = 1.25
"""How much more the last third may have than the second: what goes up and down within it."""
_DRAIN_S = 3600
_FILL_S = 240
"""Longer than the state of :data:`_SHORT` reaches back."""
_SHORT = {
    # Hours of watermark would need hours before the state can be flat.
    "ADLOOM_DEDUPLICATE__WATERMARK": "2min",
    "ADLOOM_ATTRIBUTE__IMPRESSION_WATERMARK": "1min",
    "ADLOOM_ATTRIBUTE__CLICK_WATERMARK": "2min",
    "ADLOOM_ATTRIBUTE__WINDOW": "1min",
    "ADLOOM_SESSIONIZE__GAP": "20s",
    "ADLOOM_SESSIONIZE__WATERMARK": "30s",
}


@dataclass(frozen=True)
class Sample:
    """One look: seconds since the start, records sent and not through all queries yet, rows of state, MiB of memory.

    ``batch_s`` are the seconds of the last batch of each query, summed up.
    """

    at_s: float
    sent: int
    backlog: int
    state_rows: int
    memory_mib: float
    batch_s: float


@dataclass
class Soak:
    """Servers, both jobs, and what was seen of them."""

    out: Path
    kafka: Kafka
    minio: Minio
    lake: Lake
    jobs: list[Job] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    sent: int = 0
    _days: Iterator[int] = field(default_factory=lambda: count(1))
    _begun: float = field(default_factory=time.monotonic)

    def send(self, records: int, rate: float | None) -> float:
        """Sends so many records as if they happened now; returns the rate reached, in records a second."""
        events = chain.from_iterable(generated_records(_traffic(day)) for day in self._days)
        settings = KafkaSettings(bootstrap_servers=self.kafka.address, topics=(_TOPIC,))
        before = self.sent

        def told(done: int) -> None:
            self.sent = before + done

        taken = (record for record, _ in zip(events, range(records), strict=False))
        done = publish(taken, settings, rate=rate, is_live=True, on_progress=told)
        self.sent = before + done.records
        return done.records / done.seconds

    def look(self) -> Sample:
        """What is there now."""
        reports = {query: self._report(query) for query in JOB_OF_QUERY}
        through = [report.total_rows if report else 0 for report in reports.values()]
        processes = [psutil.Process(job.process.pid) for job in self.jobs]
        family = [one for process in processes for one in (process, *process.children(recursive=True))]
        sample = Sample(
            at_s=round(time.monotonic() - self._begun, 1),
            sent=self.sent,
            backlog=max(0, self.sent - min(through)),
            state_rows=sum(report.state_rows or 0 for report in reports.values() if report),
            memory_mib=round(sum(one.memory_info().rss for one in family) / 2**20, 1),
            batch_s=sum(report.phases_ms.get("triggerExecution", 0) for report in reports.values() if report) / 1000,
        )
        self.samples.append(sample)
        return sample

    def look_while(self, work: Callable[[], object]) -> list[Sample]:
        """Looks again and again while ``work`` is done beside."""
        first = len(self.samples)
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        while worker.is_alive():
            worker.join(_SAMPLE_S)
            self.look()
        return self.samples[first:]

    def drain(self, limit_s: float = _DRAIN_S) -> float:
        """Waits until all that was sent has been taken in and nothing waits; returns the seconds it took."""
        start = time.monotonic()
        while self.look().backlog > 0:
            if time.monotonic() - start > limit_s:
                raise typer.BadParameter(f"the backlog did not drain within {limit_s} s")
            time.sleep(1)
        return time.monotonic() - start

    def _report(self, query: str) -> QueryReport | None:
        return next((job.report(query) for job in self.jobs if job.name == JOB_OF_QUERY[query]), None)


@contextmanager
def soaking(out: Path) -> Iterator[Soak]:
    """Servers and both jobs, which end with the context."""
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
    """A day's events: one day after the other, for what is replayed live moves on by the recorded times.

    None is late, broken or sent twice: as many rows come through each query as were sent, and what is behind can be
    counted.
    """
    start = _FIRST_DAY + timedelta(days=day)
    return GeneratorSpec(events=_ROUNDS_OF_EVENTS, seed=day, start=start, late=0, malformed=0, duplicates=0)


def is_flat(values: Sequence[float]) -> bool:
    """Whether the last third of ``values`` is not above the second, but for what goes up and down within it."""
    third = max(1, len(values) // 3)
    second, last = values[third : 2 * third] or values, values[-third:]
    return statistics.mean(last) <= _SLACK * statistics.mean(second) + 1


def run_soak(
    soak: Soak, *, minutes: float, share: float, preload: int, burst_s: int, console: Console
) -> dict[str, Any]:
    """Measures the maximum, holds ``share`` of it for ``minutes``, then ten times that for ``burst_s`` seconds.

    The maximum is that with the state which half of a first guess fills: a join looks through its state in each batch.
    What is held is held for :data:`_FILL_S` before it counts: until then the state still grows, as it must.
    """
    with console.status("warming up …"):
        soak.send(preload // 3, None)
        soak.drain()
        guess = _measure_maximum(soak, preload)
    with console.status(f"filling the state at {guess / 2:,.0f} records/s …"):
        soak.send(int(guess / 2 * _FILL_S), guess / 2)
        soak.drain()
    with console.status("measuring the maximum …"):
        maximum = _measure_maximum(soak, preload)
    rate = share * maximum
    console.print(f"maximum {maximum:,.0f} records/s; holding {rate:,.0f} for {minutes:g} minutes", highlight=False)
    with console.status("holding: the state fills to what this load needs …"):
        soak.send(int(rate * _FILL_S), rate)
    with console.status("holding …"):
        steady = soak.look_while(lambda: soak.send(int(rate * minutes * 60), rate))
    burst_rate = 0.0

    def burst() -> None:
        nonlocal burst_rate
        burst_rate = soak.send(int(10 * rate * burst_s), 10 * rate)

    with console.status("a burst …"):
        soak.look_while(burst)
        drained_s = soak.drain()
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
        "burst_drained_s": round(drained_s, 1),
        "samples": [asdict(sample) for sample in soak.samples],
    }


def _measure_maximum(soak: Soak, records: int) -> float:
    """Records a second, from the first one sent to the last one through."""
    start = time.monotonic()
    soak.send(records, None)
    soak.drain()
    return records / (time.monotonic() - start)


def main(
    minutes: Annotated[float, typer.Option(help="How long the load is held.")] = 30,
    share: Annotated[float, typer.Option(help="Load, as a share of the maximum measured before.")] = 0.7,
    preload: Annotated[int, typer.Option(help="Records to measure the maximum with.")] = 300_000,
    burst: Annotated[int, typer.Option(help="Seconds of ten times the load.")] = 60,
    out: Annotated[Path, typer.Option(help="Folder for servers, logs and results; replaced.")] = Path("build/soak"),
) -> None:
    """Measure what both jobs can take, hold a share of it, and see that nothing grows; then send a burst."""
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
