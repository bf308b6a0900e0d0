"""Moving recorded times to the moment of their replay."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from spark_jobs.generator.livetime import LiveTime

_NOW = datetime(2026, 3, 1, 7, tzinfo=UTC)


def _sent(live: LiveTime, text: str, second: float) -> str:
    """The new time of an event recorded at ``text`` and sent ``second`` s after 07:00, in seconds after 07:00."""
    record = json.dumps({"event_id": "e", "event_time": text}).encode()
    moved = json.loads(live.retime(record, _NOW + timedelta(seconds=second)))["event_time"]
    return f"{(datetime.fromisoformat(moved) - _NOW).total_seconds():g}"


def test_order_and_equality_of_times_are_preserved() -> None:
    live = LiveTime()
    assert _sent(live, "2025-01-06T12:00:00Z", 0) == "0"
    assert _sent(live, "2025-01-06T12:10:00Z", 1) == "1"
    assert _sent(live, "2025-01-06T12:05:00Z", 2) == "0.5", "late: between its neighbours"
    assert _sent(live, "2025-01-06T12:10:00Z", 3) == "1", "a repeat keeps the time of the first"
    assert _sent(live, "2025-01-06T13:10:00+01:00", 4) == "1", "the same instant in another zone"
    assert _sent(live, "2025-01-06T11:59:00Z", 5) == "-60", "before the first: as far before it"
    assert _sent(live, "2025-01-06T12:20:00Z", 6) == "6"


def test_a_wrong_clock_stays_wrong_and_moves_no_other_time() -> None:
    live = LiveTime()
    assert _sent(live, "2025-01-06T12:00:00Z", 0) == "0"
    assert float(_sent(live, "2099-01-01T00:00:00Z", 1)) > 70 * 365 * 86400
    assert _sent(live, "2025-01-06T12:01:00Z", 2) == "2"


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(b"{not json", id="no-time"),
        pytest.param(b'{"event_time": 1736160000}', id="a-number"),
        pytest.param(b'{"event_time": "2025-01-06T12:00:00"}', id="no-zone"),
        pytest.param(b'{"event_time": "yesterday at noon"}', id="not-a-time"),
        pytest.param(b'{"event_time": "9999-12-31T23:59:59Z"}', id="end-of-time"),
    ],
)
def test_a_time_that_cannot_be_moved_is_left_unchanged(record: bytes) -> None:
    live = LiveTime()
    live.retime(b'{"event_time": "2025-01-06T12:00:00Z"}', _NOW)
    assert live.retime(record, _NOW) == record
