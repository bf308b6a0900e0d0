"""An hour of operation: all jobs under load, care on short schedules, each process of Airflow killed once.

`make bench-hour`. It states the gaps between commits, with and without maintenance at work, the memory of each part,
the time from a click to its attribution, and how the runs of each DAG ended.
"""

import json
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common import click_delays, delay_figures, minio_in
from spark_jobs.config.sections import KafkaSettings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.generator.publish import generated_records, publish
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import adds_rows, committed_at
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import QUERIES_OF_JOB
from tests.airflow.embedded import Airflow
from tests.airflow.parts import AIRFLOW_PARTS, PARTS, wait_for_one
from tests.stack.flow import adloom
from tests.stack.kafka import Kafka

_TOPIC = "events"
_TABLES = (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS)
_SAMPLE_S = 10.0
_SCHEDULES = {
    "maintain_tables": "*/10 * * * *",
    "clean_checkpoints": "*/10 * * * *",
    "balance_ledger": "2-59/10 * * * *",
    "close_days": "4-59/10 * * * *",
    "repair_late": "6-59/15 * * * *",
    "validate_tables": "8-59/15 * * * *",
}
"""Of DAGs that run by the day or by the hour otherwise."""
_DAG_FILE = f'''"""The DAGs of Airflow, on short schedules."""

from ad_dags.factory import adloom_dags

globals().update(adloom_dags(schedules={_SCHEDULES!r}))
'''


@dataclass
class Hour:
    """The servers, and what was seen."""

    airflow: Airflow
    kafka: Kafka
    lake: Lake
    memory_mib: dict[str, list[float]] = field(default_factory=dict)
    killed: dict[str, str] = field(default_factory=dict)

    def look_until(self, ended: threading.Event) -> None:
        """Takes a sample of the memory of each part every 10 s."""
        while not ended.wait(_SAMPLE_S):
            roots = {job: self.airflow.drivers(job) for job in QUERIES_OF_JOB}
            roots |= {name: [self.airflow.process(name)] for name in AIRFLOW_PARTS}
            for name, processes in roots.items():
                if used := sum(_memory(process) for process in processes if process):
                    self.memory_mib.setdefault(name, []).append(used / 2**20)

    def kill_each(self, seconds: float) -> None:
        """Kills each process of Airflow once, spread over ``seconds``."""
        for name in AIRFLOW_PARTS:
            time.sleep(seconds / (len(AIRFLOW_PARTS) + 1))
            begin = time.monotonic()
            PARTS[name](self.airflow)
            self.killed[name] = f"back after {time.monotonic() - begin:.0f} s"


@contextmanager
def operating(out: Path, environment: Mapping[str, str]) -> Iterator[Hour]:
    """Starts the servers and Airflow, and stops them."""
    with minio_in(out) as settings:
        kafka, lake = Kafka(out / "kafka"), open_lake("s3a://hour/lake", settings.s3)
        dags = out / "dags"
        dags.mkdir()
        (dags / "hour.py").write_text(_DAG_FILE)
        variables = {
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags.resolve()),
            "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address,
            "ADLOOM_KAFKA__TOPICS": _TOPIC,
            **environment,
        }
        airflow = Airflow((out / "airflow").resolve(), lake, variables)
        try:
            kafka.start()
            adloom("init", "--lake", lake.root)
            kafka.make_topic(_TOPIC, partitions=2)
            airflow.start()
            yield Hour(airflow, kafka, lake)
        finally:
            airflow.stop()
            kafka.stop()


def main(
    minutes: Annotated[int, typer.Option(help="How long.")] = 60,
    rate: Annotated[float, typer.Option(help="Records per second.")] = 100,
    interval: Annotated[str, typer.Option(help="job.trigger_interval.")] = "10s",
    out: Annotated[Path, typer.Option(help="Folder for servers, logs and results; replaced.")] = Path(
        "build/bench-hour"
    ),
) -> None:
    """Operate all jobs for an hour, and state what a person would see."""
    console = Console()
    with operating(out, {"ADLOOM_JOB__TRIGGER_INTERVAL": interval}) as hour:
        with console.status("a deployment …"):
            hour.airflow.wait_for_dags()
            hour.airflow.wait_for("deploy_streams", hour.airflow.trigger("deploy_streams"), "success")
            for job in QUERIES_OF_JOB:
                wait_for_one(hour.airflow, job)
        ended = threading.Event()
        threads = [
            threading.Thread(target=hour.look_until, args=(ended,), daemon=True),
            threading.Thread(target=hour.kill_each, args=(minutes * 60,), daemon=True),
        ]
        for thread in threads:
            thread.start()
        begin = time.time()
        with console.status(f"{rate:,.0f} records per second for {minutes} minutes …"):
            spec = GeneratorSpec(events=int(rate * minutes * 60), seed=39, late=0)
            settings = KafkaSettings(bootstrap_servers=hour.kafka.address, topics=(_TOPIC,))
            sent = publish(generated_records(spec), settings, rate=rate, is_live=True)
        end = time.time()
        ended.set()
        for thread in threads:
            thread.join()
        runs = {dag: _runs(hour.airflow, dag) for dag in _SCHEDULES}
        hour.airflow.wait_for("deploy_streams", hour.airflow.trigger("deploy_streams", action="stop"), "success")
        care = [(run["from"], run["to"]) for run in runs["maintain_tables"] if run["to"]]
        result = {
            "records": sent.records,
            "gaps": {one.path: _gaps(hour.lake, one.path, begin, end, care) for one in _TABLES},
            "latency": delay_figures([delay for at, delay in click_delays(hour.lake) if at >= begin + _SAMPLE_S]),
            "memory_mib": {
                name: {"median": round(statistics.median(used)), "most": round(max(used))}
                for name, used in sorted(hour.memory_mib.items())
            },
            "killed": hour.killed,
            "runs": {
                dag: {"ended": _counted(found), "longest_s": round(max((_length(run) for run in found), default=0))}
                for dag, found in runs.items()
            },
        }
        adloom("drain", "--lake", hour.lake.root)
        adloom("ledger", "--lake", hour.lake.root)
    (out / "results.json").write_text(json.dumps(result, indent=2) + "\n")
    _print(console, result)


def _memory(process: int) -> int:
    """Bytes of resident memory of a process and those below it; 0 if it has exited."""
    with suppress(psutil.Error):
        root = psutil.Process(process)
        return sum(one.memory_info().rss for one in (root, *root.children(recursive=True)))
    return 0


def _runs(airflow: Airflow, dag: str) -> list[dict[str, Any]]:
    """The runs of ``dag``: state, and begin and end as Unix times."""
    found = airflow.call("GET", f"/dags/{dag}/dagRuns?limit=100")["dag_runs"]
    return [
        {"state": run["state"], "from": _unix(run["start_date"]), "to": _unix(run["end_date"])}
        for run in found
        if run["start_date"]
    ]


def _unix(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() if text else None


def _length(run: Mapping[str, Any]) -> float:
    return float(run["to"] - run["from"]) if run["to"] else 0


def _counted(runs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    states = [str(run["state"]) for run in runs]
    return {state: states.count(state) for state in sorted(set(states))}


def _gaps(lake: Lake, table: str, begin: float, end: float, care: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Seconds between commits of new rows to ``table``: the median, and the longest outside and within ``care``."""
    at = sorted(time for time in _commit_times(lake, table) if begin <= time <= end)
    gaps = list(pairwise(at))
    within = [b - a for a, b in gaps if any(a < to and b > since for since, to in care)]
    apart = [b - a for a, b in gaps if not any(a < to and b > since for since, to in care)]
    return {
        "median_s": round(statistics.median(b - a for a, b in gaps), 1),
        "longest_s": round(max(apart, default=0), 1),
        "longest_while_maintained_s": round(max(within, default=0), 1),
    }


def _commit_times(lake: Lake, table: str) -> Iterator[float]:
    for commit in lake.files.walk(f"{table}/_delta_log"):
        data = lake.files.read(commit.key) or b""
        if commit.name.endswith(".json") and adds_rows(data) and (at := committed_at(data)):
            yield at.timestamp()


def _print(console: Console, result: Mapping[str, Any]) -> None:
    for name, rows in result.items():
        if not isinstance(rows, dict):
            console.print(f"{name}: {rows:,}")
            continue
        table = Table(title=name, show_header=False)
        for key, value in rows.items():
            table.add_row(key, *(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else [str(value)])
        console.print(table)


if __name__ == "__main__":
    typer.run(main)
