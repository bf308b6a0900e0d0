"""Days as assets: what is told of them, each once, and which runs that starts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.dags import close_days as tasks
from ad_dags.dags.close_days import (
    REMEMBERED,
    DayAsset,
    DayEvent,
    all_complete,
    dates_unannounced,
    day_assets,
    last_announced,
    unannounced,
)
from ad_dags.defaults import DagDefaults
from ad_dags.drivers.launchers import DriverState
from spark_jobs.config.settings import Settings
from spark_jobs.days.day import Day, DayStatus
from spark_jobs.lake.open import open_lake
from tests.dags.fakes import LAKE, RecordingLauncher

_NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
_COMPLETE = DayAsset(LAKE, "attributions", DayEvent.COMPLETE)
_RESTATED = DayAsset(LAKE, "attributions", DayEvent.RESTATED)
_DAY_ASSETS = day_assets(LAKE)
_ALL_COMPLETE = all_complete(LAKE)


def _day(number: int, **more: Any) -> Day:
    plain = Day("attributions", date(2026, 3, number), DayStatus.COMPLETE, complete_at=_NOW - timedelta(hours=number))
    return replace(plain, **more)


def _restated(number: int, times: int) -> Day:
    return _day(number, status=DayStatus.RESTATED, restated=times, restated_at=_NOW, clicks=-1, version=5)


@pytest.mark.parametrize(
    ("own", "days", "told", "due"),
    [
        pytest.param(_COMPLETE, [_day(1), _day(2)], {}, ["2026-03-01", "2026-03-02"], id="complete days"),
        pytest.param(_COMPLETE, [_day(1), _day(2)], {"2026-03-01": {}}, ["2026-03-02"], id="one was told"),
        pytest.param(_COMPLETE, [Day("attributions", date(2026, 3, 1))], {}, [], id="an open day"),
        pytest.param(_COMPLETE, [replace(_day(1), table_name="sessions")], {}, [], id="a day of another table"),
        pytest.param(_COMPLETE, [_restated(1, 1)], {}, ["2026-03-01"], id="restated before it was told"),
        pytest.param(_COMPLETE, [_day(1, complete_at=_NOW - REMEMBERED)], {}, ["2026-03-01"], id="just remembered"),
        pytest.param(
            _COMPLETE, [_day(1, complete_at=_NOW - REMEMBERED - timedelta(seconds=1))], {}, [], id="too long ago"
        ),
        pytest.param(_RESTATED, [_day(1), _restated(2, 1)], {}, ["2026-03-02"], id="a restated day"),
        pytest.param(_RESTATED, [_restated(2, 1)], {"2026-03-02": {"restated": 1}}, [], id="no restatement more"),
        pytest.param(_RESTATED, [_restated(2, 2)], {"2026-03-02": {"restated": 1}}, ["2026-03-02"], id="one more"),
    ],
)
def test_what_is_unannounced_yet(own: DayAsset, days: list[Day], told: dict[str, Any], due: list[str]) -> None:
    assert list(unannounced(own, days, told, _NOW)) == due


def _of_all_tables(number: int, **more: Any) -> list[Day]:
    return [replace(_day(number, **more), table_name=table) for table in sorted({own.table for own in _DAY_ASSETS})]


@pytest.mark.parametrize(
    ("days", "told", "due"),
    [
        pytest.param([*_of_all_tables(2), *_of_all_tables(1)], [], ["2026-03-01", "2026-03-02"], id="complete dates"),
        pytest.param([*_of_all_tables(2), *_of_all_tables(1)], [["2026-03-01"]], ["2026-03-02"], id="one was told"),
        pytest.param([*_of_all_tables(2), *_of_all_tables(1)], [["2026-03-02", "2026-03-01"]], [], id="both were"),
        pytest.param([*_of_all_tables(2), *_of_all_tables(1)[1:]], [], ["2026-03-02"], id="not in all tables"),
        pytest.param([_day(1)], [], ["2026-03-01"], id="in a lake where only one table has days"),
        pytest.param([*_of_all_tables(1)[1:], replace(_day(1), complete_at=None)], [], [], id="open in one table"),
        pytest.param(_of_all_tables(1, complete_at=_NOW - REMEMBERED), [], ["2026-03-01"], id="just remembered"),
        pytest.param(
            _of_all_tables(1, complete_at=_NOW - REMEMBERED - timedelta(seconds=1)), [], [], id="too long ago"
        ),
    ],
)
def test_which_dates_are_unannounced_yet(days: list[Day], told: list[list[str]], due: list[str]) -> None:
    assert dates_unannounced(days, [_Event(None, {"dates": dates}) for dates in told], _NOW) == due


def test_an_event_says_what_was_changed() -> None:
    assert unannounced(_RESTATED, [_restated(2, 3)], {}, _NOW)["2026-03-02"] == {
        "table": "attributions",
        "version": 5,
        "restated": 3,
        "changes": 0,
        "impressions": 0,
        "clicks": -1,
        "cost_micros": 0,
    }


@dataclass
class _Event:
    partition_key: str | None
    extra: dict[str, Any] | None


def test_the_last_event_of_a_date_says_last_announced() -> None:
    events = [
        _Event("2026-03-01", {"2026-03-01": {"restated": 1}, "2026-03-02": {"restated": 7}}),
        _Event(None, None),
        _Event("2026-03-01", {"2026-03-01": {"restated": 2}}),
        _Event("2026-03-03", None),
    ]
    assert last_announced(events) == {"2026-03-01": {"restated": 2}, "2026-03-03": {}}


@dataclass
class _Accessor:
    extra: dict[str, Any] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    def add_partitions(self, keys: list[str]) -> None:
        self.keys += keys


class _Inlet:
    def __init__(self, events: Sequence[_Event]) -> None:
        self._events = events

    def after(self, _time: str) -> Self:
        return self

    def __iter__(self) -> Iterator[_Event]:
        return iter(self._events)


class _Airflow:
    """What Airflow keeps of events: those of a task count once the task has succeeded."""

    def __init__(self) -> None:
        self.events: dict[str, list[_Event]] = {
            asset.name: [] for asset in (_ALL_COMPLETE, *(own.asset for own in _DAY_ASSETS))
        }

    def __getitem__(self, asset: Any) -> _Inlet:
        return _Inlet(self.events[asset.name])

    def run(self, task_id: str, *, fails: bool = False) -> None:
        own = next(one for one in _DAY_ASSETS if one.task_id == task_id)
        accessor = _Accessor()
        tasks.announce(LAKE, own.table, own.event.value, inlet_events=self, outlet_events={own.asset: accessor})
        if not fails:
            self.events[own.asset.name] += [_Event(key, accessor.extra) for key in accessor.keys]

    def run_dates(self) -> list[str]:
        accessor = _Accessor()
        dates = tasks.announce_complete_dates(LAKE, inlet_events=self, outlet_events={_ALL_COMPLETE: accessor})
        self.events[_ALL_COMPLETE.name].append(_Event(None, accessor.extra))
        return dates

    def told(self, own: DayAsset) -> list[str | None]:
        return [event.partition_key for event in self.events[own.asset.name]]


@pytest.fixture
def lake_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Day]:
    """The rows of gold/days that the tasks find; to be changed by the test."""
    days: list[Day] = []
    lake = open_lake(str(tmp_path / "lake"))
    connection = LakeConnection(str(tmp_path / "lake"), None, Settings(), lake, RecordingLauncher(DriverState.RUNNING))
    monkeypatch.setattr(tasks, "connect_started", lambda *_: connection)
    monkeypatch.setattr(tasks, "run_adloom", lambda *_, **__: (0, ""))
    monkeypatch.setattr(tasks, "read_days", lambda _: list(days))
    monkeypatch.setattr(tasks, "utc_now", lambda: _NOW)
    return days


def test_each_day_is_told_once_whatever_fails(lake_days: list[Day]) -> None:
    airflow = _Airflow()
    assert tasks.update_days(LAKE, inlet_events=airflow) == []
    still_open = [replace(_day(1), complete_at=None, table_name=own.table) for own in _DAY_ASSETS]
    lake_days += [_day(1), replace(_day(1), table_name="sessions"), *still_open]
    assert tasks.update_days(LAKE, inlet_events=airflow) == ["attributions_complete", "sessions_complete"]
    airflow.run("attributions_complete", fails=True)
    airflow.run("attributions_complete")
    assert tasks.update_days(LAKE, inlet_events=airflow) == ["sessions_complete"], "the task of sessions was killed"
    with pytest.raises(AirflowSkipException):
        airflow.run("attributions_complete")  # cleared, and so run again
    lake_days[0] = _restated(1, 1)
    lake_days.append(_day(2))
    for task_id in tasks.update_days(LAKE, inlet_events=airflow):
        airflow.run(task_id)
    assert airflow.told(_COMPLETE) == ["2026-03-01", "2026-03-02"]
    assert airflow.told(_RESTATED) == ["2026-03-01"]
    assert airflow.told(DayAsset(LAKE, "sessions", DayEvent.COMPLETE)) == ["2026-03-01"]
    lake_days[0] = _restated(1, 2)
    assert tasks.update_days(LAKE, inlet_events=airflow) == ["attributions_restated"]
    airflow.run("attributions_restated")
    assert airflow.told(_RESTATED) == ["2026-03-01", "2026-03-01"]
    assert tasks.update_days(LAKE, inlet_events=airflow) == []


def test_a_date_that_is_complete_in_all_tables_is_told_once(lake_days: list[Day]) -> None:
    airflow = _Airflow()
    lake_days += _of_all_tables(1)
    assert tasks.update_days(LAKE, inlet_events=airflow)[-1] == "announce_complete_dates"
    assert airflow.run_dates() == ["2026-03-01"]
    lake_days += _of_all_tables(2)
    assert airflow.run_dates() == ["2026-03-02"]
    assert "announce_complete_dates" not in tasks.update_days(LAKE, inlet_events=airflow)
    with pytest.raises(AirflowSkipException):
        airflow.run_dates()
    assert [event.extra for event in airflow.events["adloom/days"]] == [
        {"dates": ["2026-03-01"]},
        {"dates": ["2026-03-02"]},
    ]


def test_two_assets_are_never_announced_at_the_same_moment() -> None:
    assert tasks.declare(DagDefaults(LAKE)).max_active_tasks == 1
