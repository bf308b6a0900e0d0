"""When silence is worth a heartbeat."""

from datetime import UTC, datetime, timedelta

from spark_jobs.jobs.heartbeat import Silence

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _at(second: float) -> datetime:
    return _NOON + timedelta(seconds=second)


def _length(silence: Silence, second: float) -> float | None:
    length = silence.length(_at(second))
    return None if length is None else length.total_seconds()


def test_a_heartbeat_is_due_each_time_the_silence_has_grown_by_so_much() -> None:
    silence = Silence(timedelta(seconds=60))
    assert silence.observe(_at(0), rows=0, is_busy=False)
    assert _length(silence, 59.9) is None
    assert _length(silence, 60) == 60
    assert _length(silence, 60.5) is None
    assert not silence.observe(_at(119), rows=0, is_busy=False)
    assert _length(silence, 119.9) is None
    assert _length(silence, 121) == 121


def test_a_row_ends_the_silence() -> None:
    silence = Silence(timedelta(seconds=60))
    silence.observe(_at(0), rows=0, is_busy=False)
    assert silence.observe(_at(50), rows=1, is_busy=False)
    assert _length(silence, 60) is None
    assert _length(silence, 110) == 60


def test_a_batch_that_takes_long_is_no_silence() -> None:
    silence = Silence(timedelta(seconds=60))
    for second in range(0, 600, 10):
        silence.observe(_at(second), rows=7, is_busy=True)
        assert _length(silence, second) is None
    silence.observe(_at(600), rows=7, is_busy=False)
    assert _length(silence, 649) is None, "counted from when the batch was last seen"
    assert _length(silence, 650) == 60


def test_silence_of_no_length_asks_for_none() -> None:
    silence = Silence(timedelta())
    silence.observe(_at(0), rows=0, is_busy=False)
    assert _length(silence, 3600) is None
