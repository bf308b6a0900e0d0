"""Prometheus metrics of a lake: which jobs should run and which do, the latest validation, and the ledger."""

from collections.abc import Iterator
from datetime import UTC, datetime

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from expectations.history import last_validation
from spark_jobs.errors import AdloomError
from spark_jobs.lake.layout import Lake
from spark_jobs.ledger.ledger_files import last_ledger
from spark_jobs.ledger.model import DUPLICATES, LATE_KINDS, RECORDS, RecordKind
from spark_jobs.queries.registry import QUERIES_OF_JOB
from spark_jobs.streams.desired_state import RunState, read_desired, read_watch
from spark_jobs.streams.reports import read_driver_report, read_report

_SEVERITIES = {"critical": "critical", "warning": "warnings"}
"""By severity, its key in the history of validations."""


class LakeMetrics(Collector):
    """Which jobs of ``lake`` should run, when they last reported, what the latest validation found, and the ledger."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def collect(self) -> Iterator[Metric]:
        """The current metrics; only ``adloom_lake_readable`` if the lake cannot be read."""
        try:
            metrics = [*self._jobs(datetime.now(UTC)), *self._validation(), *self._ledger()]
        except AdloomError:
            metrics = []
        is_readable = float(bool(metrics))
        yield GaugeMetricFamily("adloom_lake_readable", "1 if the lake could be read just now", value=is_readable)
        yield from metrics

    def _jobs(self, now: datetime) -> Iterator[Metric]:
        wanted = GaugeMetricFamily("adloom_job_wanted", "1 if the job should run", labels=["job"])
        failed = GaugeMetricFamily("adloom_job_failed", "1 if restarts do not help the job", labels=["job"])
        restarts = GaugeMetricFamily("adloom_job_restarts", "restarts of its driver in a row", labels=["job"])
        seen = GaugeMetricFamily(
            "adloom_job_last_seen_seconds", "Unix time at which its driver last said that it is alive", labels=["job"]
        )
        for job, queries in QUERIES_OF_JOB.items():
            known, watch = read_desired(self._lake, job), read_watch(self._lake, job)
            wanted.add_metric([job], float(known is not None and known.runs_at(now)))
            failed.add_metric([job], float(known is not None and known.state is RunState.FAILED))
            restarts.add_metric([job], watch.restarts if watch else 0)
            reports = [read_driver_report(self._lake, job), *(read_report(self._lake, query) for query in queries)]
            # 0 for a driver that has never run.
            seen.add_metric([job], max(report.updated_at.timestamp() if report else 0.0 for report in reports))
        yield from (wanted, failed, restarts, seen)

    def _validation(self) -> Iterator[Metric]:
        latest = last_validation(self._lake)
        if latest is None:
            return
        failed = GaugeMetricFamily(
            "adloom_validation_failed", "failed expectations in the latest validation", labels=["severity"]
        )
        for severity, name in _SEVERITIES.items():
            failed.add_metric([severity], latest[name])
        yield failed
        at = datetime.fromisoformat(latest["at"]).timestamp()
        yield GaugeMetricFamily("adloom_validation_time_seconds", "Unix time of the latest validation", value=at)

    def _ledger(self) -> Iterator[Metric]:
        ledger = last_ledger(self._lake)
        if ledger is None:
            return
        sums = {
            "adloom_ledger_received": ("records received", (RecordKind.RECEIVED,)),
            "adloom_ledger_ok": ("records that fit", (RecordKind.OK,)),
            "adloom_ledger_kept": ("events in silver that records account for", (RecordKind.KEPT,)),
            "adloom_ledger_duplicates": ("records that are copies of kept events", DUPLICATES),
        }
        for name, (meaning, kinds) in sums.items():
            yield GaugeMetricFamily(name, f"{meaning}, up to the last update", value=ledger.rows(*kinds))
        late = GaugeMetricFamily(
            "adloom_ledger_late", "records that came too late for silver, by outcome", labels=["fate"]
        )
        for kind in LATE_KINDS:
            late.add_metric([kind.value.removeprefix("late, ")], ledger.rows(kind))
        yield late
        quarantined = GaugeMetricFamily(
            "adloom_ledger_quarantined", "records that are in quarantine", labels=["verdict", "source"]
        )
        for one in ledger.figures:
            if one.kind is RecordKind.QUARANTINED:
                quarantined.add_metric([one.verdict or "", one.source or ""], one.rows)
        yield quarantined
        for name, kinds in {
            "adloom_ledger_pending": (RecordKind.PENDING, RecordKind.HELD),
            "adloom_ledger_late_events": (RecordKind.LATE,),
            "adloom_ledger_unaccounted": (RecordKind.UNACCOUNTED, RecordKind.REMOVED),
            "adloom_ledger_surplus": (RecordKind.SURPLUS, RecordKind.ADDED),
        }.items():
            metric = GaugeMetricFamily(name, f"rows in each account: {kinds[0].value}", labels=["account"])
            for account in (RECORDS, *ledger.accounts):
                metric.add_metric([account], ledger.rows(*kinds, account=account))
            yield metric
        at = ledger.taken_at.timestamp()
        yield GaugeMetricFamily("adloom_ledger_time_seconds", "Unix time of the last update", value=at)
