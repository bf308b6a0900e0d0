"""An id that is used again names another event: repairs, replays and an independent computation agree on which count.

The hours are counted from a midnight; the next one is 24. Ids are remembered for an hour.
"""

import itertools
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_jobs.config.durations import Window
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import ACTIVITY, CLICK, IMPRESSION
from spark_jobs.contract.tables import ATTRIBUTIONS, LATE_EVENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import RecordKind
from spark_jobs.ledger.update import balance
from spark_jobs.restatements.repair import repair
from spark_jobs.restatements.replay import replay
from spark_jobs.spark.open_lake import OpenLake
from tests.support.lakes import GOLD, read_ledger, read_table
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.source_files import write_files

pytestmark = pytest.mark.derived

_MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
_WHOLE = Window(_MIDNIGHT - timedelta(days=1), _MIDNIGHT + timedelta(days=3))
_DELAY = timedelta(hours=1)
_SETTINGS = Settings.model_validate(
    {
        "ingest": ONE_BY_ONE,
        "deduplicate": {"watermark": "1h"},
        "attribute": {"impression_watermark": "1h", "click_watermark": "1h"},
        "sessionize": {"watermark": "0s"},
        "campaign_stats": {"watermark": "0s"},
        "moving_average": {"watermark": "0s", "size": 3, "timeout": "10min"},
        "user_status": {"watermark": "0s", "idle_after": "10min"},
    }
)
_ENDS = (6.0, 14.0, 22.0, 25.0, 25.2, 25.4, 30.0, 38.0)
"""Of each file the newest hour: what lies an hour before that of the second last file before is late."""
_REPAIRED_AFTER = 3
_SCENARIOS_PER_RUN = 50


class _Sent(NamedTuple):
    file: int
    hour: float
    event_id: str
    event_type: str = CLICK


_GOLDEN = (
    # A late click was brought in; the id comes again a day later, on time.
    _Sent(2, 4.5, "late-before"),
    _Sent(6, 29.5, "late-before"),
    # Used twice, each time on time.
    _Sent(1, 8.0, "on-time"),
    _Sent(2, 21.0, "on-time"),
    # The same distance on one date, and over midnight.
    _Sent(1, 13.0, "same-date"),
    _Sent(3, 9.5, "same-date"),
    _Sent(3, 24.7, "over-midnight"),
    _Sent(4, 20.0, "over-midnight"),
    # A copy on the other side of midnight, received later, and one received first.
    _Sent(3, 24.5, "copy"),
    _Sent(7, 23.7, "copy"),
    _Sent(5, 23.5, "first-copy"),
    _Sent(6, 24.4, "first-copy"),
    # What else came late on the date of the first use decides nothing.
    _Sent(3, 24.75, "neighbour"),
    _Sent(5, 22.5, "neighbour"),
    _Sent(6, 24.1, "another", ACTIVITY),
    # Two copies in one file, the later time first: silver has the first, and no repair finds the other better.
    _Sent(1, 13.9, "same-file"),
    _Sent(1, 13.4, "same-file"),
    # Spark takes the second for a copy while it remembers the first.
    _Sent(0, 3.0, "remembered"),
    _Sent(0, 5.5, "remembered"),
)
_COPIES = {("copy", 23.7), ("first-copy", 24.4), ("same-file", 13.4)}


def _record(event_type: str, event_id: str, user: str, hour: float, **more: object) -> dict[str, Any]:
    time = (_MIDNIGHT + timedelta(seconds=round(hour * 3600))).isoformat()
    return {"event_type": event_type, "event_id": event_id, "user_id": user, "event_time": time, **more}


def _shown(user: str, hour: float) -> str:
    return f"{user}/i{round(hour * 3600)}"


def _files(scenarios: Sequence[Sequence[_Sent]]) -> list[list[dict[str, Any]]]:
    """The events of each file; of each time of a scenario an impression five minutes earlier, which its clicks name."""
    files: list[list[dict[str, Any]]] = [
        [_record(ACTIVITY, f"end-{number}", "end", end)] for number, end in enumerate(_ENDS)
    ]
    for number, scenario in enumerate(scenarios):
        user = f"s{number:03}"
        for hour in sorted({sent.hour for sent in scenario}):
            shown = {"campaign_id": "c1", "ad_id": "a1", "cost_micros": 100 + number}
            files[bisect_left(_ENDS, hour)].append(
                _record(IMPRESSION, _shown(user, hour), user, hour - 1 / 12, **shown)
            )
        for sent in scenario:
            named = {"impression_id": _shown(user, sent.hour)} if sent.event_type == CLICK else {}
            files[sent.file].append(_record(sent.event_type, f"{user}/{sent.event_id}", user, sent.hour, **named))
    return files


def _that_count(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first of each event in order of arrival, each under an id of its own: with a number after ``#``."""
    found: list[dict[str, Any]] = []
    times: dict[tuple[str, str], list[datetime]] = {}
    for record in records:
        time = datetime.fromisoformat(record["event_time"])
        known = times.setdefault((record["event_type"], record["event_id"]), [])
        if all(abs(time - other) > _DELAY for other in known):
            known.append(time)
            used = "" if record["event_type"] == IMPRESSION else f"#{len(known)}"
            found.append({**record, "event_id": record["event_id"] + used})
    return found


def _without_number(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_without_number, value))
    return re.sub(r"#\d+$", "", value) if isinstance(value, str) else value


def _lines(records: Iterable[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def _run(spark: SparkSession, folder: Path, scenarios: Sequence[Sequence[_Sent]], *, measure: bool) -> Lake:
    """A lake of ``scenarios``, repaired on the way and at its end, with what an independent computation gives."""
    files = _files(scenarios)
    lake, source = open_lake(str(folder / "lake")), folder / "source"
    whole = write_files(folder / "whole", [_lines(records) for records in files])
    source.mkdir()
    late = 0
    for number, file in enumerate(sorted(whole.iterdir())):
        (source / file.name).hardlink_to(file)
        if number + 1 in (_REPAIRED_AFTER, len(files)):
            run_in(spark, _SETTINGS, lake, source, drain=number + 1 == len(files), measure=measure)
            late += plan.late_events if (plan := repair(OpenLake.of(lake, _SETTINGS, spark))) else 0
    assert late == len(read_table(lake, LATE_EVENTS)) > 0, "nothing came late: the test shows nothing"
    truth = write_files(folder / "truth", [_lines(_that_count(itertools.chain.from_iterable(files)))])
    expected = expected_tables(truth, _SETTINGS, datetime.now(UTC))
    for table in GOLD if measure else (ATTRIBUTIONS, SESSIONS):
        assert_same_rows(read_table(lake, table), _without_number(expected.rows(table)), table)
    found = replay(OpenLake.of(lake, _SETTINGS, spark), _WHOLE).report.tables
    assert {name: (table.unknown, table.late) for name, table in found.items() if table.unknown or table.late} == {}
    ledger = balance(_SETTINGS, lake, drained=True)
    assert not ledger.rows(RecordKind.LATE_AWAITING), "the repair has looked at all of them"
    return lake


@pytest.mark.slow
def test_a_used_id_is_another_event_and_a_copy_is_not(spark: SparkSession, tmp_path: Path) -> None:
    lake = _run(spark, tmp_path, [_GOLDEN], measure=False)
    names = ATTRIBUTIONS.column_names
    status, shown, clicked = (names.index(name) for name in ("status", "impression_id", "click_id"))
    pairs = {(row[clicked], row[shown]) for row in read_table(lake, ATTRIBUTIONS) if row[status] == "clicked"}
    due = [sent for sent in _GOLDEN if sent.event_type == CLICK and (sent.event_id, sent.hour) not in _COPIES]
    assert pairs == {(f"s000/{sent.event_id}", _shown("s000", sent.hour)) for sent in due}
    kept = {row[1] for row in read_table(lake, SILVER_EVENTS)}
    assert {f"s000/{sent.event_id}" for sent in due} <= kept, "each use again is of an id that silver has"
    assert read_ledger(lake).rows(RecordKind.DUPLICATE) == len(_COPIES)


@st.composite
def _sent(draw: st.DrawFn) -> _Sent:
    """An event at or before the end of its file, on time or late, on either side of midnight."""
    minute = draw(st.sampled_from((0, 30, 55, 60, 61, 120, 121, 725, 1380, 1410, 1435, 1470, 1495, 1498, 1620, 1790)))
    hour = minute / 60
    file = min(bisect_left(_ENDS, hour) + draw(st.sampled_from((0, 0, 1, 2, 3, 5))), len(_ENDS) - 1)
    return _Sent(file, hour, draw(st.sampled_from("aaab")), draw(st.sampled_from((*[CLICK] * 5, ACTIVITY))))


def _once_a_time(scenario: list[_Sent]) -> list[_Sent]:
    """``scenario`` with each copy a second after the one before, so that their times say which counts."""
    seconds = itertools.count()
    return [sent._replace(hour=sent.hour + next(seconds) / 3600) for sent in scenario]


@st.composite
def _worlds(draw: st.DrawFn) -> list[list[_Sent]]:
    """Scenarios that are not mostly alike, as the first that hypothesis draws always are."""
    drawn = [draw(st.lists(_sent(), min_size=2, max_size=5).map(_once_a_time)) for _ in range(_SCENARIOS_PER_RUN)]
    assume(len({repr(scenario) for scenario in drawn}) > len(drawn) // 2)
    return drawn


run_rarely = settings(
    max_examples=1,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
@pytest.mark.timeout(900)
@run_rarely
@given(scenarios=_worlds())
def test_whatever_is_used_again_near_or_far_on_time_or_late(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, scenarios: list[list[_Sent]]
) -> None:
    _run(spark, tmp_path_factory.mktemp("world"), scenarios, measure=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(run_rarely, max_examples=6)
@given(scenarios=_worlds())
def test_whatever_is_used_again_in_many_worlds(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, scenarios: list[list[_Sent]]
) -> None:
    _run(spark, tmp_path_factory.mktemp("world"), scenarios, measure=True)
