"""Signs of progress: which batch hangs, and which only takes long. No Spark is needed."""

import random

import pytest

from spark_jobs.streams.self_watch import Sight, Signs

_STALL_S = 600.0


def _idle(batch: int | None = None) -> Sight:
    return Sight(batch, is_busy=False)


def _busy(batch: int | None, tasks_done: int, spark_jobs: int = 3) -> Sight:
    return Sight(batch, is_busy=True, spark_jobs=spark_jobs, tasks_done=tasks_done, tasks=200)


def test_a_batch_of_a_day_is_no_stall_while_its_tasks_end() -> None:
    signs = Signs(_STALL_S, 0)
    for minute in range(24 * 60):
        signs.see(minute * 60, {"attribute": _busy(4, minute // 9)})
        assert signs.stalled(minute * 60) is None, minute


@pytest.mark.parametrize("reading", [_busy(4, 7), _busy(None, 0, -1)], ids=["in-the-middle", "before-its-first-task"])
def test_a_batch_whose_tasks_no_longer_end_hangs(reading: Sight) -> None:
    signs = Signs(_STALL_S, 0)
    for second in range(0, 601, 5):
        signs.see(second, {"attribute": reading, "sessionize": _idle(9)})
        assert signs.stalled(second) is None
    signs.see(605, {"attribute": reading, "sessionize": _idle(9)})
    found = signs.stalled(605)
    assert found
    assert found[0] == "attribute"
    assert "no task of its running batch has ended for 10min (job.stall_after)" in found[1]
    assert f"{reading.tasks_done} of 200 tasks" in found[1]
    assert signs.quiet_s == 605


def test_silence_is_no_stall() -> None:
    """Without input no batch runs; nothing is waiting."""
    signs = Signs(_STALL_S, 0)
    for hour in range(24 * 14):
        signs.see(hour * 3600, {"attribute": _idle(4)})
        assert signs.stalled(hour * 3600) is None
    assert signs.quiet_s == 0


def test_a_batch_begins_when_it_begins() -> None:
    signs = Signs(_STALL_S, 0)
    signs.see(0, {"attribute": _idle(4)})
    signs.see(5000, {"attribute": _idle(4)})
    signs.see(5005, {"attribute": _busy(4, 0)})
    assert signs.stalled(5005 + _STALL_S) is None
    signs.see(5010, {"attribute": _busy(4, 0)})
    signs.see(5700, {"attribute": _busy(4, 0)})
    assert signs.stalled(5700)


def test_spark_that_does_not_answer_is_a_stall() -> None:
    signs = Signs(_STALL_S, 0)
    signs.see(5, {"attribute": _idle(4)})
    assert signs.stalled(5 + _STALL_S) is None
    assert signs.stalled(6 + _STALL_S) == ("", "Spark has not answered for 10min (job.stall_after)")


def test_a_machine_that_was_asleep_has_missed_nothing() -> None:
    signs = Signs(_STALL_S, 0)
    signs.see(0, {"attribute": _busy(4, 7)})
    signs.skip(7200)
    assert signs.stalled(7205) is None
    signs.see(7205, {"attribute": _busy(4, 7)})
    assert signs.stalled(7200 + _STALL_S) is None
    signs.see(7200 + _STALL_S, {"attribute": _busy(4, 7)})
    assert signs.stalled(7201 + _STALL_S)


@pytest.mark.parametrize("seed", range(20))
def test_a_stall_is_what_an_independent_reading_of_all_looks_says(seed: int) -> None:
    chance = random.Random(seed)
    signs, looks = Signs(_STALL_S, 0), list[tuple[float, dict[str, Sight]]]()
    now, sights = 0.0, {name: _idle() for name in ("attribute", "sessionize")}
    for _ in range(300):
        now += chance.choice((5, 5, 5, 60, 200))
        for name in sights:
            if chance.random() < 0.15:
                sights[name] = chance.choice((_idle(chance.randrange(3)), _busy(chance.randrange(3), 5)))
        looks.append((now, dict(sights)))
        signs.see(now, sights)
        expected = set()
        for name, sight in sights.items():
            if not sight.is_busy:
                continue
            since = now
            for at, seen in reversed(looks):
                if seen[name] != sight:
                    break
                since = at
            if now - since > _STALL_S:
                expected.add(name)
        found = signs.stalled(now)
        assert (found[0] in expected) if found else not expected
