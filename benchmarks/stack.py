"""From event sent to row visible in gold, through real Kafka, both jobs and MinIO: `make bench-stack`."""

import json
import os
import shutil
import statistics
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

import duckdb
import typer
from rich.console import Console

from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.sections import KafkaSettings, S3Settings
from spark_jobs.contracts.tables import ATTRIBUTIONS
from spark_jobs.generator.publish import generated_records, publish
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.runtime.lakes import open_lake
from tests.stack.flow import adloom
from tests.stack.jobs import Job, start_job
from tests.stack.kafka import Kafka
from tests.stack.minio import Minio

_TOPIC = "events"


def main(
    rate: Annotated[float, typer.Option(help="Records a second.")] = 1000,
    seconds: Annotated[int, typer.Option(help="How long they are sent.")] = 180,
    warm_up: Annotated[int, typer.Option(help="Seconds at the beginning that do not count.")] = 60,
    out: Annotated[Path, typer.Option(help="Folder for broker, MinIO and results; replaced.")] = Path(
        "build/bench-stack"
    ),
) -> None:
    """Measure the time from the sending of a click to the moment its attribution can be read."""
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
        jobs = _start_jobs(kafka, lake, out)
        begin = datetime.now(UTC).timestamp()
        _send(kafka, rate, seconds, console)
        threading.Event().wait(30)  # the last ones on their way
        for job in jobs:
            job.stop()
        delays = _delays(lake, not_before=begin + warm_up)
    finally:
        for job in jobs:
            job.kill()
        kafka.stop()
        minio.stop()
    result = {
        "records_per_s": rate,
        "clicked": len(delays),
        "p50_s": round(statistics.median(delays), 2),
        "p95_s": round(statistics.quantiles(delays, n=20)[-1], 2),
        "max_s": round(max(delays), 2),
    }
    (out / "results.json").write_text(json.dumps(result, indent=2) + "\n")
    console.print(result)


def _start_jobs(kafka: Kafka, lake: Lake, out: Path) -> list[Job]:
    environment = {
        "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address,
        "ADLOOM_KAFKA__TOPICS": _TOPIC,
        "ADLOOM_JOB__TRIGGER": "asap",
        "ADLOOM_SPARK__DRIVER_MEMORY": "2g",
    }
    names = ("deduplicate", "attribute")
    jobs = [start_job(name, lake, out / f"{name}.log", environment=environment) for name in names]
    jobs[0].wait_until_told("ingest: started")
    return jobs


def _send(kafka: Kafka, rate: float, seconds: int, console: Console) -> None:
    spec = GeneratorSpec(events=int(rate * seconds), seed=1, late=0, malformed=0, duplicates=0)
    settings = KafkaSettings(bootstrap_servers=kafka.address, topics=(_TOPIC,))
    with console.status(f"sending {rate:,.0f} records a second for {seconds} s"):
        sent = publish(generated_records(spec), settings, rate=rate, is_live=True)
    console.print(f"{sent.records:,} records sent, {sent.records / sent.seconds:,.0f} a second")


def _delays(lake: Lake, *, not_before: float) -> list[float]:
    """Seconds from each click since ``not_before`` (Unix time) to the commit that holds its attribution."""
    delays: list[float] = []
    with duckdb.connect() as connection, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        for commit in lake.files.walk(f"{ATTRIBUTIONS.path}/_delta_log"):
            if not commit.name.endswith(".json"):
                continue
            visible = commit.modified_at.timestamp()
            actions = [json.loads(line) for line in (lake.files.read(commit.key) or b"").splitlines()]
            for added in (action["add"]["path"] for action in actions if "add" in action):
                file.write_bytes(lake.files.read(f"{ATTRIBUTIONS.path}/{unquote(added)}") or b"")
                query = "SELECT epoch(click_time) FROM read_parquet(?) WHERE status = 'clicked'"
                clicks = connection.execute(query, [str(file)]).fetchall()
                delays.extend(visible - click for (click,) in clicks if click >= not_before)
    return delays


if __name__ == "__main__":
    typer.run(main)
