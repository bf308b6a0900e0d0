"""Running jobs while no event moves time: after a drain, and while nothing but broken records arrives."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config.choices import Trigger
from spark_jobs.config.durations import EPOCH
from spark_jobs.config.sections import (
    AttributeSettings,
    CampaignStatsSettings,
    HeartbeatSettings,
    JobSettings,
    MovingAverageSettings,
    SessionizeSettings,
    UserStatusSettings,
)
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import RecordKind
from spark_jobs.ledger.update import balance
from spark_jobs.queries.jobs import ATTRIBUTE_JOB, DEDUPLICATE_JOB
from spark_jobs.spark.conf import streaming_conf
from spark_jobs.spark.event_times import newest_event_time
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams import silver_times
from spark_jobs.streams.drain import drain_lead, late_up_to
from spark_jobs.streams.heartbeats import append_heartbeat
from spark_jobs.streams.service import run_job
from spark_jobs.streams.silence import Moment
from spark_jobs.streams.silver_times import SilverTimes
from spark_jobs.streams.stop_signals import StopRequest
from tests.support.lakes import read_table
from tests.support.runs import run_in
from tests.support.servers import wait_until

_LONGEST_S = 120
_SECOND = timedelta(seconds=1)
_AHEAD = 60 * _SECOND
"""How far a drain moves time past the last event."""
Clock = Callable[[], datetime]
_SETTINGS = Settings(
    attribute=AttributeSettings(window=_SECOND, impression_watermark=_SECOND, click_watermark=_SECOND),
    sessionize=SessionizeSettings(gap=_SECOND, watermark=_SECOND),
    campaign_stats=CampaignStatsSettings(watermark=_SECOND, window=_SECOND, slide=_SECOND),
    moving_average=MovingAverageSettings(watermark=_SECOND, timeout=_SECOND),
    user_status=UserStatusSettings(watermark=_SECOND, idle_after=_AHEAD - _SECOND),
    heartbeat=HeartbeatSettings(idle_after=2 * _SECOND),
    job=JobSettings(trigger=Trigger.ASAP),
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_a_drained_lake_goes_on_live_and_is_on_time_again_once_the_clock_has_caught_up(
    spark: SparkSession, lake: Lake, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _send(source, "first")
    drained_to = run_in(spark, _SETTINGS, lake, source, drain=True).drained_to
    assert drained_to == first + drain_lead(_SETTINGS)
    clock = _set_clock(drained_to - 30 * _SECOND, monkeypatch)
    with _running(spark, lake, source):
        live = _send(source, "live", clock)
        assert live <= late_up_to(_SETTINGS, drained_to)[SESSIONS.name]
        _wait(lambda: "live" in _ids(lake, SILVER_EVENTS))
        while clock() < drained_to:
            assert _newest_heartbeat(lake) == _naive(drained_to), "time may not run ahead because of silence"
            time.sleep(0.5)
        _wait(lambda: _newest_heartbeat(lake) > _naive(drained_to))
        _send(source, "on-time", clock)
        _wait(lambda: "on-time" in _ids(lake, ATTRIBUTIONS))
        _wait(lambda: len(read_table(lake, SESSIONS)) == 2)
        assert _newest_heartbeat(lake) <= _naive(clock())
    ledger = balance(_SETTINGS, lake, drained=False)
    assert (ledger.received, ledger.kept, ledger.late) == (3, 3, 0)
    assert [ledger.rows(RecordKind.LATE, account=name) for name in ("attribute", "sessionize")] == [1, 1]
    assert _ids(lake, BRONZE_EVENTS) == _ids(lake, SILVER_EVENTS) == {"first", "live", "on-time"}
    assert _ids(lake, ATTRIBUTIONS) == {"first", "on-time"}


@pytest.mark.slow
def test_broken_and_repeated_records_do_not_keep_sessions_open(spark: SparkSession, lake: Lake, source: Path) -> None:
    for key, value in streaming_conf(_SETTINGS).items():
        spark.conf.set(key, value)
    at = _send(source, "only")
    with _running(spark, lake, source), _repeating(lambda number: _send_again(source, number, "only", at)):
        _wait(lambda: len(read_table(lake, SESSIONS)) == 1)
        _wait(lambda: _ids(lake, ATTRIBUTIONS) == {"only"})
        assert _newest_heartbeat(lake) <= _naive(datetime.now(UTC))
    assert len(read_table(lake, BRONZE_EVENTS)) > 2


def test_what_silver_held_before_is_found_without_reading_all_of_it(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
    for number, event_time in enumerate((newest - timedelta(days=2), newest - timedelta(hours=1), newest)):
        append_heartbeat(
            OpenLake.of(lake, Settings(), spark), event_time, f"beat-{number}", writer="test", number=number
        )
    times = SilverTimes(OpenLake.of(lake, Settings(), spark))
    times.follow()
    files: list[int] = []

    def counting(rows: DataFrame) -> datetime | None:
        files.append(len(rows.inputFiles()))
        return newest_event_time(rows)

    monkeypatch.setattr(silver_times, "newest_event_time", counting)
    assert times.newest() == newest
    assert files == [1], "of three"


def _set_clock(start: datetime, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A wall clock that shows ``start`` now, for the jobs too."""
    offset = start - datetime.now(UTC)

    def clock() -> datetime:
        return datetime.now(UTC) + offset

    monkeypatch.setattr(Moment, "now", staticmethod(lambda: Moment(clock(), time.monotonic())))
    return clock


@contextmanager
def _running(spark: SparkSession, lake: Lake, source: Path) -> Iterator[None]:
    """Both jobs, in threads; what one of them raises is raised here."""
    failures: list[BaseException] = []
    stop = StopRequest()

    def start(job: Callable[[], object]) -> threading.Thread:
        def work() -> None:
            try:
                job()
            except BaseException as error:  # noqa: BLE001 it is raised below
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    threads = [
        start(lambda: run_job(OpenLake.of(lake, _SETTINGS, spark), DEDUPLICATE_JOB, stop, source=source)),
        start(lambda: run_job(OpenLake.of(lake, _SETTINGS, spark), ATTRIBUTE_JOB, stop)),
    ]
    try:
        yield
    finally:
        stop.ask()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


@contextmanager
def _repeating(send: Callable[[int], None]) -> Iterator[None]:
    """Sends five times a second."""
    done = threading.Event()

    def work() -> None:
        number = 0
        while not done.wait(0.2):
            send(number)
            number += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _send(source: Path, event_id: str, clock: Clock = lambda: datetime.now(UTC)) -> datetime:
    """An impression of now. Returns its time."""
    now = clock()
    _write(source, event_id, _impression(event_id, now))
    return now


def _send_again(source: Path, number: int, event_id: str, at: datetime) -> None:
    _write(source, f"again-{number}", _impression(event_id, at) + "\nno event\n")


def _impression(event_id: str, at: datetime) -> str:
    event = {"event_type": "impression", "event_id": event_id, "event_time": at.isoformat()}
    return json.dumps(event | {"user_id": event_id, "campaign_id": "c", "ad_id": "a"})


def _write(source: Path, name: str, text: str) -> None:
    unfinished = source / f".{name}"
    unfinished.write_text(text)
    unfinished.rename(source / f"{name}.jsonl")


def _ids(lake: Lake, table: Table) -> set[str]:
    column = table.column_names.index("impression_id" if table == ATTRIBUTIONS else "event_id")
    return {row[column] for row in read_table(lake, table)}


def _newest_heartbeat(lake: Lake) -> datetime:
    event_time = SILVER_EVENTS.column_names.index("event_time")
    rows = read_table(lake, SILVER_EVENTS, heartbeats=True)
    return max((row[event_time] for row in rows if row[0] == "heartbeat"), default=_naive(EPOCH))


def _naive(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(tzinfo=None)


def _wait(is_so: Callable[[], bool]) -> None:
    wait_until(is_so, _LONGEST_S, "it never came to pass")
