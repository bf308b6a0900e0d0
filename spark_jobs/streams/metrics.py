"""Prometheus metrics of a job's queries."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from spark_jobs.errors import SettingsError
from spark_jobs.streams.reports import QueryReport, QueryState

_LABELS = ("job", "query")
_Metrics = tuple[tuple[str, str, Callable[[QueryReport], float | None]], ...]
_GAUGES: _Metrics = (
    ("adloom_query_up", "1 while the query runs", lambda report: float(report.state is QueryState.RUNNING)),
    ("adloom_query_start_time_seconds", "Unix time of its start", lambda report: report.started_at.timestamp()),
    ("adloom_query_last_seen_seconds", "Unix time of its last report", lambda report: report.updated_at.timestamp()),
    ("adloom_batch_id", "number of its latest batch", lambda report: report.batch_id),
    ("adloom_batch_duration_seconds", "of its latest batch", lambda report: report.batch_ms / 1000),
    ("adloom_batch_input_rows", "of its latest batch", lambda report: report.input_rows),
    ("adloom_processed_rows_per_second", "in its latest batch", lambda report: report.processed_rows_per_s),
    ("adloom_watermark_lag_seconds", "from the watermark to its last report", lambda report: report.watermark_lag_s),
    ("adloom_watermark_delay_seconds", "by how much the settings let it lag", lambda report: report.watermark_delay_s),
    ("adloom_state_rows", "in its state stores", lambda report: report.state_rows),
    ("adloom_state_bytes", "memory of its state stores", lambda report: report.state_bytes),
    ("adloom_backlog_records", "in Kafka, not read yet", lambda report: report.backlog_records),
    ("adloom_backlog_bytes", "in files or tables, not read yet", lambda report: report.backlog_bytes),
)
_COUNTERS: _Metrics = (
    ("adloom_input_rows", "read since the query was started", lambda report: report.total_input_rows),
    ("adloom_late_rows", "dropped as late since the query was started", lambda report: report.late_rows),
    ("adloom_quarantined_rows", "quarantined since the query was started", lambda report: report.quarantined_rows),
)


class QueryMetrics(Collector):
    """The figures of :class:`QueryReport` as metrics with the labels ``job`` and ``query``."""

    def __init__(self, reports: Callable[[], list[QueryReport]]) -> None:
        self._reports = reports

    def collect(self) -> Iterator[Metric]:
        """The current metrics; unknown values are left out."""
        reports = self._reports()
        for family, metrics in ((GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS)):
            for name, meaning, value in metrics:
                metric = family(name, meaning, labels=_LABELS)
                for report in reports:
                    if (now := value(report)) is not None:
                        metric.add_metric([report.job, report.query], now)
                yield metric


@contextmanager
def serve_metrics(address: str, *metrics: Collector, setting: str = "job.metrics") -> Iterator[None]:
    """Serves ``metrics`` at ``http://<address>/metrics``; does nothing if ``address`` is empty.

    Args:
        address: ``host:port``.
        metrics: each is collected in another thread.
        setting: the name of the setting or option that gave the address.

    Raises:
        SettingsError: cannot listen on the address.
    """
    if not address:
        yield
        return
    registry = CollectorRegistry()
    for each in metrics:
        registry.register(each)
    host, _, port = address.rpartition(":")
    try:
        server, thread = start_http_server(int(port), host, registry)
    except (OSError, ValueError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a host:port"
        raise SettingsError(
            f"{setting} {address}: cannot listen there: {why}; give another host:port, or none"
        ) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
