"""A run reports the figures of Spark's own listener, and its tables carry no traces of its queries."""

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.attribute.query import NAME as ATTRIBUTE
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from spark_jobs.streams.progress import after_batch
from spark_jobs.streams.reports import QueryReport, read_report
from tests.support.equality import generate_source
from tests.support.runs import ONE_BY_ONE, run_in

_WHEN_WRITTEN = {"process_id", "started_at", "updated_at", "watermark_lag_s", "state", "version"}
_WHEN_WRITTEN |= {"batch_ended_at", "input_rows_per_s", "backlog_commits", "caught_up_at"}
_RATES = {"processed_rows_per_s"}


class _PySparkListener(StreamingQueryListener):
    """Collects each batch as PySpark reads it from Java, figure by figure."""

    def __init__(self) -> None:
        self.batches: list[StreamingQueryProgress] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None: ...  # noqa: N802
    def onQueryIdle(self, event: QueryIdleEvent) -> None: ...  # noqa: N802
    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None: ...  # noqa: N802

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self.batches.append(event.progress)


@pytest.fixture(scope="module")
def finished_run(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Lake, list[StreamingQueryProgress]]:
    """A lake after a run of several batches, and Spark's progress of each batch."""
    folder, listener = tmp_path_factory.mktemp("progress"), _PySparkListener()
    source = generate_source(folder / "source", events=1000, seed=7, files=3)
    own = open_lake(str(folder / "lake"))
    spark.streams.addListener(listener)
    try:
        settings = Settings.model_validate({"ingest": ONE_BY_ONE})
        run_in(spark, settings, own, source, count_state=True)
    finally:
        spark.streams.removeListener(listener)
    return own, listener.batches


@pytest.mark.parametrize("query", [INGEST, DEDUPLICATE, ATTRIBUTE, SESSIONIZE])
def test_a_report_has_the_figures_of_spark(query: str, finished_run: tuple[Lake, list[StreamingQueryProgress]]) -> None:
    lake, batches = finished_run
    reported = read_report(lake, query)
    assert reported is not None
    report = QueryReport.model_validate(reported.model_dump() | _nothing_yet(reported))
    own = [batch for batch in batches if batch.name == query]
    assert len(own) > 1
    for batch in own:
        report = after_batch(report, batch, datetime.now(UTC))
    assert report.model_dump(exclude=_WHEN_WRITTEN | _RATES) == reported.model_dump(exclude=_WHEN_WRITTEN | _RATES)
    # Spark's JSON rounds them to one decimal.
    assert report.model_dump(include=_RATES) == pytest.approx(reported.model_dump(include=_RATES), abs=0.051)


def _nothing_yet(report: QueryReport) -> dict[str, object]:
    sums: dict[str, object] = {"total_input_rows": 0, "late_rows": 0, "quarantined_rows": None, "peak_state_rows": 0}
    return sums | {"newest_event_time": None, "state_rows": 0 if report.state_rows is not None else None}


def test_no_column_of_a_table_is_marked_as_event_time(
    spark: SparkSession, finished_run: tuple[Lake, list[StreamingQueryProgress]]
) -> None:
    lake, _ = finished_run
    for table in (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS, SESSIONS):
        schema = spark.read.format("delta").load(lake.table(table)).schema
        assert [field.name for field in schema if field.metadata] == [], table.path
