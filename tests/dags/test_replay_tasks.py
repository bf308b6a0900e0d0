"""Replays from Airflow: the day of an audit is complete and stays the same, and rows that nothing explains fail it."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from ad_dags.commands import CommandError
from ad_dags.connection import lake_connection
from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.dags.replay_audit import audit_random_day, day_to_audit
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CHECKPOINTS
from spark_jobs.queries.places import progress_key
from spark_jobs.queries.registry import JOB_OF_QUERY
from spark_jobs.streams.reports import QueryReport
from tests.dags.fakes import LAKE, RecordingLauncher, fake_command

_FIRST = date(2026, 3, 1)
_NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
_RUN = datetime(2026, 3, 20, 3, 30, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake with gold of 1 to 20 March, that its queries have passed up to noon of the last day."""
    lake = open_lake(str(tmp_path / "lake"))
    lake.files.write(f"{CHECKPOINTS}/attribute/sessionize/v1.json", b"{}")
    for step in range(20):
        lake.files.write(f"{ATTRIBUTIONS.path}/event_date={_FIRST + timedelta(days=step)}/a.parquet", b"")
    for query in ("attribute", "sessionize"):
        _report(lake, query, _NOW)
    connection = LakeConnection(str(lake.path), None, Settings(), lake, RecordingLauncher())
    monkeypatch.setattr(lake_connection, "connect", lambda *_: connection)
    return lake


@pytest.fixture
def printing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes the command run a line of a shell."""
    return partial(fake_command, tmp_path, monkeypatch)


def test_every_complete_day_is_drawn_and_no_other(lake: Lake) -> None:
    drawn = {day_to_audit(lake, f"run {number}") for number in range(1000)}
    assert drawn == {_FIRST + timedelta(days=step) for step in range(18)}


def test_the_slowest_query_decides_which_days_are_complete(lake: Lake) -> None:
    _report(lake, "user_status", datetime(2026, 3, 4, tzinfo=UTC))
    assert {day_to_audit(lake, f"run {number}") for number in range(100)} == {_FIRST, _FIRST + timedelta(days=1)}


def test_a_retry_takes_the_same_day_although_a_day_more_is_complete(lake: Lake) -> None:
    seeds = [f"run {number}" for number in range(200)]
    before = [day_to_audit(lake, seed) for seed in seeds]
    for query in ("attribute", "sessionize"):
        _report(lake, query, _NOW + timedelta(days=1))
    after = [day_to_audit(lake, seed) for seed in seeds]
    more = _FIRST + timedelta(days=18)
    assert all(later in (earlier, more) for earlier, later in zip(before, after, strict=True))
    assert 0 < after.count(more) < 40


def test_an_audit_replays_one_day_and_changes_nothing(lake: Lake, printing: Callable[[str], None]) -> None:
    printing('echo "$@"')
    day = day_to_audit(lake, _RUN.isoformat())
    assert day
    words = audit_random_day(LAKE, logical_date=_RUN).split()
    assert (words[0], words[-2:]) == (
        "replay",
        [f"--from={day}T00:00:00+00:00", f"--to={day + timedelta(days=1)}T00:00:00+00:00"],
    )


def test_rows_that_nothing_explains_fail_the_audit_for_good(lake: Lake, printing: Callable[[str], None]) -> None:
    assert lake
    printing("echo '3 rows differ and nothing explains why: somebody changed a table'; exit 1")
    with pytest.raises(AirflowFailException, match="3 rows differ and nothing explains why"):
        audit_random_day(LAKE, logical_date=_RUN)


def test_a_replay_that_breaks_may_be_tried_again(lake: Lake, printing: Callable[[str], None]) -> None:
    assert lake
    printing("echo 'error: the store does not answer'; exit 1")
    with pytest.raises(CommandError, match="the store does not answer"):
        audit_random_day(LAKE, logical_date=_RUN)


def test_without_a_complete_day_the_audit_is_skipped(lake: Lake) -> None:
    for query in ("attribute", "sessionize"):
        _report(lake, query, datetime(2026, 3, 1, 12, tzinfo=UTC))
    with pytest.raises(AirflowSkipException, match="is complete yet"):
        audit_random_day(LAKE, logical_date=_RUN)


def _report(lake: Lake, query: str, watermark: datetime) -> None:
    report = QueryReport(
        job=JOB_OF_QUERY[query],
        query=query,
        version="1",
        process_id=7,
        started_at=_NOW,
        updated_at=_NOW,
        watermark=watermark,
    )
    lake.files.write(progress_key(query), report.model_dump_json().encode())
