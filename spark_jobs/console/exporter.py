"""``adloom exporter``: what can be told of a lake from outside of its jobs, for Prometheus."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from expectations.history import last_validation
from spark_jobs.console.terminal import terminal
from spark_jobs.contracts.errors import AdloomError
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import load_settings
from spark_jobs.queries import QUERIES_OF_JOB
from spark_jobs.runtime.lakes import open_lake
from spark_jobs.runtime.metrics import serve_metrics
from spark_jobs.runtime.reports import read_report
from spark_jobs.runtime.stopping import stop_on_signals
from spark_jobs.runtime.wanted import read_wanted

_SEVERITIES = {"critical": "critical", "warning": "warnings"}
"""By severity, its name in the history of validations."""


class LakeMetrics(Collector):
    """What is wanted of the jobs of ``lake``, when they were last seen, and what the latest validation found."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def collect(self) -> Iterator[Metric]:
        """The metrics as the lake tells them now; when it cannot be read, that alone."""
        try:
            told = [*self._jobs(datetime.now(UTC)), *self._validation()]
        except AdloomError:
            told = []
        yield GaugeMetricFamily("adloom_lake_readable", "1 if the lake could be read just now", value=float(bool(told)))
        yield from told

    def _jobs(self, now: datetime) -> Iterator[Metric]:
        wanted = GaugeMetricFamily("adloom_job_wanted", "1 if the job is to run", labels=["job"])
        seen = GaugeMetricFamily(
            "adloom_job_last_seen_seconds", "Unix time of the last sign of all its queries", labels=["job"]
        )
        for job, queries in QUERIES_OF_JOB.items():
            known = read_wanted(self._lake, job)
            wanted.add_metric([job], float(known is not None and known.runs_at(now)))
            reports = [read_report(self._lake, query) for query in queries]
            # A query that has never run has been seen never.
            seen.add_metric([job], min(report.updated_at.timestamp() if report else 0.0 for report in reports))
        yield wanted
        yield seen

    def _validation(self) -> Iterator[Metric]:
        latest = last_validation(self._lake)
        if latest is None:
            return
        failed = GaugeMetricFamily(
            "adloom_validation_failed", "expectations that did not hold in the latest validation", labels=["severity"]
        )
        for severity, name in _SEVERITIES.items():
            failed.add_metric([severity], latest[name])
        yield failed
        at = datetime.fromisoformat(latest["at"]).timestamp()
        yield GaugeMetricFamily("adloom_validation_time_seconds", "Unix time of the latest validation", value=at)


def export(location: str, *, listen: str, config: Path | None) -> None:
    """Serves the metrics of the lake at ``location`` on ``listen`` (``host:port``) until a signal comes.

    Raises:
        SettingsError: the location is refused, or nothing can listen there.
    """
    lake = open_lake(location, load_settings(config, os.environ).s3)
    with stop_on_signals() as stop, serve_metrics(listen, LakeMetrics(lake), setting="--listen"):
        terminal().print(f"metrics of {lake.place()}: http://{listen}/metrics", soft_wrap=True)
        while not stop.is_made:
            stop.wait(60)
