"""The state functions as Spark calls them, by Spark's own tester: state, timers and initial state of each key."""

from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from spark_jobs.config.choices import AverageOutput
from spark_jobs.queries.moving_average.rule import AverageRule
from spark_jobs.queries.state_functions.processors import AverageProcessor, StatusProcessor
from spark_jobs.spark.names import STATE_VALUE

_MINUTE_MS = 60_000
_MINUTE = 60_000_000
_HOUR = 60 * _MINUTE


def _averages(*, timeout_ms: int | None = None, initial: dict[str, Row] | None = None) -> TwsTester:
    rule = AverageRule(3, AverageOutput.FULL, _HOUR if timeout_ms is None else None)
    return _tester(AverageProcessor(rule, timeout_ms), timeout_ms, initial)


def _status(*, timeout_ms: int | None = None, initial: dict[str, Row] | None = None) -> TwsTester:
    return _tester(StatusProcessor(_HOUR if timeout_ms is None else None, timeout_ms), timeout_ms, initial)


def _tester(
    processor: AverageProcessor | StatusProcessor, timeout_ms: int | None, initial: dict[str, Row] | None
) -> TwsTester:
    mode = "EventTime" if timeout_ms is None else "ProcessingTime"
    extract = (lambda row: row["event_us"] // 1000) if timeout_ms is None else None
    return TwsTester(
        processor,
        timeMode=mode,
        eventTimeExtractor=extract,
        initialStateRow=list(initial.items()) if initial else None,
    )


def _readings(*values: tuple[float, float]) -> list[Row]:
    return [Row(event_us=int(minute * _MINUTE), value=value) for minute, value in values]


def _events(*minutes: float) -> list[Row]:
    return [Row(event_us=int(minute * _MINUTE)) for minute in minutes]


def _told(rows: Any) -> list[tuple[object, ...]]:
    return [
        tuple(cell / _MINUTE if isinstance(cell, int) and abs(cell) > 1000 else cell for cell in row[1:])
        for row in rows
    ]


def _timers(tester: TwsTester) -> dict[str, set[int]]:
    return {key: set(times) for key, times in tester.handle._timers._key_to_timers.items()}


def test_a_value_waits_for_the_watermark_and_comes_out_in_order() -> None:
    tester = _averages()
    assert tester.test("c1", _readings((20, 8), (1, 4))) == []
    assert tester.test("c1", _readings((10, 6))) == []
    assert _timers(tester) == {"c1": {_MINUTE_MS}}
    assert tester.setWatermark(19 * _MINUTE_MS) == []
    assert _told(tester.setWatermark(20 * _MINUTE_MS)) == [(1, 20, 3, 6.0, False)]


def test_a_key_has_one_timer_and_none_when_it_is_forgotten() -> None:
    tester = _averages()
    for minute in range(1, 30):
        tester.test("c1", _readings((minute, 1.0)))
        assert len(_timers(tester)["c1"]) == 1
    tester.setWatermark(29 * _MINUTE_MS)
    assert _timers(tester) == {"c1": {89 * _MINUTE_MS}}
    assert _told(tester.setWatermark(89 * _MINUTE_MS)) == [(27, 29, 3, 1.0, True)]
    assert _timers(tester) == {}
    assert tester.peekValueState(STATE_VALUE, "c1") is None


def test_keys_do_not_know_of_each_other() -> None:
    tester = _averages()
    tester.test("c1", _readings((1, 1), (2, 1), (3, 1)))
    tester.test("c2", _readings((1, 5), (2, 5)))
    assert _told(tester.setWatermark(3 * _MINUTE_MS)) == [(1, 3, 3, 1.0, False)]


def test_by_the_clock_on_the_wall_values_are_taken_as_they_come_until_a_silence() -> None:
    tester = _averages(timeout_ms=30_000)
    tester.setProcessingTime(1_000)
    assert _told(tester.test("c1", _readings((3, 3), (1, 1), (2, 2)))) == [(1, 3, 3, 2.0, False)]
    tester.setProcessingTime(20_000)
    assert _told(tester.test("c1", _readings((4, 4)))) == [(2, 4, 3, 3.0, False)]
    assert _timers(tester) == {"c1": {50_000}}
    assert tester.setProcessingTime(49_999) == []
    assert _told(tester.setProcessingTime(50_000)) == [(2, 4, 3, 3.0, True)]
    assert tester.peekValueState(STATE_VALUE, "c1") is None


def test_averages_go_on_from_an_initial_state() -> None:
    tester = _averages(initial={"c1": Row(times=[_MINUTE, 2 * _MINUTE], values=[1.0, 2.0])})
    tester.test("c1", _readings((3, 3)))
    assert _told(tester.setWatermark(3 * _MINUTE_MS)) == [(1, 3, 3, 2.0, False)]


def test_a_user_is_online_active_and_inactive_once_each() -> None:
    tester = _status()
    tester.test("u1", _events(50, 1, 20))
    assert _told(tester.setWatermark(50 * _MINUTE_MS)) == [("online", 1), ("active", 20)]
    assert _timers(tester) == {"u1": {110 * _MINUTE_MS}}
    assert tester.setWatermark(109 * _MINUTE_MS) == []
    assert _told(tester.setWatermark(110 * _MINUTE_MS)) == [("inactive", 110)]
    assert _timers(tester) == {}
    assert tester.peekValueState(STATE_VALUE, "u1") is None


def test_a_late_event_is_not_taken() -> None:
    tester = _status()
    tester.setWatermark(30 * _MINUTE_MS)
    assert tester.test("u1", _events(30)) == []
    assert tester.peekValueState(STATE_VALUE, "u1") is None


def test_an_event_that_the_watermark_has_passed_within_its_own_batch_is_decided_at_once() -> None:
    """Spark drops what the watermark of the batch before has passed; this batch's own one may be ahead of it."""
    processor = StatusProcessor(_HOUR, None)
    tester = TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _row: 10**12)
    tester.setWatermark(30 * _MINUTE_MS)
    assert _told(tester.test("u1", _events(20, 40))) == [("online", 20)]
    assert _timers(tester) == {"u1": {40 * _MINUTE_MS}}


def test_users_go_on_from_an_initial_state() -> None:
    tester = _status(
        initial={"u1": Row(status="online", last_us=10 * _MINUTE), "u2": Row(status="active", last_us=_MINUTE)}
    )
    tester.test("u1", _events(20))
    assert _told(tester.setWatermark(30 * _MINUTE_MS)) == [("active", 20)]
    assert _told(tester.setWatermark(61 * _MINUTE_MS)) == [("inactive", 61)]


@pytest.mark.parametrize("minutes", [(1,), (1, 500)], ids=["one event", "two far apart"])
def test_by_the_clock_on_the_wall_only_it_makes_a_user_inactive(minutes: tuple[float, ...]) -> None:
    tester = _status(timeout_ms=3_600_000)
    tester.setProcessingTime(1_000)
    due = [("online", 1), ("active", 500)][: len(minutes)]
    assert _told(tester.test("u1", _events(*minutes))) == due
    assert _told(tester.setProcessingTime(3_601_000)) == [("inactive", pytest.approx(3_601_000_000 / _MINUTE))]
