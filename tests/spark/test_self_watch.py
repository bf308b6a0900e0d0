"""A driver that watches itself: on Spark, with batches that take long and batches that hang."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import find_query
from spark_jobs.streams import self_watch
from spark_jobs.streams.hard_exit import FAILED
from spark_jobs.streams.progress import ProgressFiles, listening
from spark_jobs.streams.reports import QueryReport, QueryState, read_driver_report, read_report
from spark_jobs.streams.self_watch import watching_itself
from tests.support.servers import wait_until

_QUERY = "ingest"
_STALL_S = 3.0


class _Driver:
    """A query whose batches do what they are told, watched by itself."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark, self.lake, self.ended_with = spark, lake, list[tuple[int, str]]()
        self.last_report: QueryReport | None = None

    def run(
        self,
        batch: Callable[[DataFrame, int], None],
        folder: Path,
        until: Callable[[], bool],
        stall_s: float = _STALL_S,
        progress: ProgressFiles | None = None,
    ) -> None:
        """Runs ``batch`` on one record until ``until`` holds, or the watch ends the process."""

        def end(code: int, why: str) -> NoReturn:
            self.last_report = read_report(self.lake, _QUERY)
            self.ended_with.append((code, why))
            raise SystemExit

        progress = progress or ProgressFiles(self.lake)
        (folder / "source").mkdir()
        (folder / "source" / "a.txt").write_text("1\n")
        lines = self._spark.readStream.text(str(folder / "source"))
        with listening(self._spark, progress):
            running = (
                lines.writeStream.queryName(_QUERY)
                .foreachBatch(batch)
                .option("checkpointLocation", str(folder / "checkpoint"))
                .start()
            )
            try:
                with watching_itself(
                    self.lake,
                    "deduplicate",
                    self._spark.sparkContext,
                    {find_query(_QUERY): running},
                    progress,
                    timedelta(seconds=stall_s),
                    end,
                ):
                    wait_until(lambda: bool(self.ended_with) or until(), 60, "nothing happened")
            finally:
                running.stop()


@pytest.fixture
def driver(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Driver:
    monkeypatch.setattr(self_watch, "_LOOK_S", 0.1)
    monkeypatch.setattr(self_watch, "_REPORT_S", 0.2)
    return _Driver(spark, open_lake(str(tmp_path / "lake")))


def test_a_batch_takes_longer_than_a_stall_and_is_seen_to_go_on(
    driver: _Driver, spark: SparkSession, tmp_path: Path
) -> None:
    done = threading.Event()
    seen: list[tuple[int, int]] = []

    def slowly(_rows: DataFrame, _number: int) -> None:
        # One task after the other, each much shorter than the time after which a batch hangs.
        spark.range(0, 48, 1, 48).select(F.expr("java_method('java.lang.Thread', 'sleep', 500L)")).write.format(
            "noop"
        ).mode("overwrite").save()
        done.set()

    def has_ended() -> bool:
        if (report := read_report(driver.lake, _QUERY)) and report.busy_since:
            seen.append((report.tasks_done, report.tasks))
        return done.is_set() and (report is not None and report.batch_id == 0)

    driver.run(slowly, tmp_path, has_ended, stall_s=10)
    assert driver.ended_with == []
    assert len(set(seen)) > 2, "its report does not change while its tasks end"
    report, own = read_report(driver.lake, _QUERY), read_driver_report(driver.lake, "deduplicate")
    assert report
    assert own
    assert (report.busy_since, report.tasks_done) == (None, 0), "the batch is over"
    assert own.updated_at > own.started_at


def test_a_look_from_within_a_batch_that_has_ended_since_changes_nothing(driver: _Driver, tmp_path: Path) -> None:
    def has_ended() -> bool:
        report = read_report(driver.lake, _QUERY)
        if not report or report.batch_id is None:
            return False
        progress.report_tasks(_QUERY, None, report.started_at, 48, 48)
        progress.report_tasks(_QUERY, report.batch_id, report.started_at, 1, 7)
        seen.append(progress.report(_QUERY))
        return True

    progress, seen = ProgressFiles(driver.lake), list[QueryReport | None]()
    driver.run(lambda _rows, _number: None, tmp_path, has_ended, progress=progress)
    report = seen[-1]
    assert report
    assert (report.tasks_done, report.tasks) == (1, 7), "the look of the running batch counts, the other does not"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # in place of the process
def test_a_batch_that_hangs_ends_the_driver_with_the_reason(driver: _Driver, tmp_path: Path) -> None:
    hang = threading.Event()

    def wait(_rows: DataFrame, _number: int) -> None:
        hang.wait(30)

    begun = time.monotonic()
    try:
        driver.run(wait, tmp_path, lambda: False)
    finally:
        hang.set()
    ((code, why),) = driver.ended_with
    assert code == FAILED
    assert why.endswith("; the next start repeats the running batches")
    assert time.monotonic() - begun > _STALL_S
    report, own = driver.last_report, read_driver_report(driver.lake, "deduplicate")
    assert report
    assert own
    assert report.state is QueryState.FAILED
    assert "no task of its running batch has ended for 3s (job.stall_after)" in (report.last_error or "")
    assert not own.has_completed


def test_without_input_nothing_hangs(driver: _Driver, tmp_path: Path) -> None:
    since: list[float] = []

    def is_idle_for_long() -> bool:
        own = read_driver_report(driver.lake, "deduplicate")
        if own and own.has_completed and own.is_idle:
            since.append(time.monotonic())
        return bool(since) and time.monotonic() - since[0] > 2 * _STALL_S

    driver.run(lambda _rows, _number: None, tmp_path, is_idle_for_long)
    assert driver.ended_with == []
