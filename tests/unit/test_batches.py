"""Which batches can have moved the watermark before which."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.ledger.run.batches import Group, newest_before


def _group(time: int, newest: int) -> Group:
    return Group("bronze", "ok", time, newest, 1)


@pytest.mark.parametrize(
    ("batches", "requeues", "due"),
    [
        pytest.param({}, (), {}, id="none"),
        pytest.param({10: 5, 20: 9, 30: 7}, (), {10: None, 20: 5, 30: 9}, id="in order"),
        pytest.param({10: 5, 20: 9, 25: 8}, (25,), {10: None, 20: 8, 25: 9}, id="a requeue at the end"),
        pytest.param({10: 5, 15: 50, 20: 9, 30: 7}, (15,), {10: 50, 20: 50, 30: 50, 15: 9}, id="one in the middle"),
        pytest.param({10: 5, 20: 9, 15: 50, 16: 60}, (15, 16), {10: 60, 20: 60, 15: 60, 16: 50}, id="two in a row"),
        pytest.param({15: 50}, (15,), {15: None}, id="alone"),
    ],
)
def test_the_newest_event_that_can_lie_before_a_batch(
    batches: dict[int, int], requeues: tuple[int, ...], due: dict[int, int | None]
) -> None:
    planned = batches.keys() - set(requeues)
    groups = [_group(time, newest) for time, newest in batches.items()]
    assert dict(newest_before(groups, requeues, planned)) == due


def test_batches_that_share_a_time_are_one() -> None:
    assert newest_before([_group(10, 5), _group(10, 8), _group(20, 1)], (), (10, 20)) == [(10, None), (20, 8)]


@dataclass(frozen=True)
class _Batch:
    """``time`` is when it was planned, or when a requeue took its time."""

    time: int
    committed: int
    newest: int
    is_requeue: bool


@st.composite
def _histories(draw: st.DrawFn) -> list[_Batch]:
    """Batches of ingest one after the other, and requeues one after the other, at the same time; no moment twice."""
    found = []
    moments = iter(draw(st.permutations(range(1, 31))))
    for is_requeue in (False, True):
        own = sorted(next(moments) for _ in range(2 * draw(st.integers(0, 5))))
        for time, committed in zip(own[::2], own[1::2], strict=True):
            found.append(_Batch(time, committed, draw(st.integers(1, 100)), is_requeue))
    return found


@given(_histories())
def test_no_batch_that_was_committed_before_is_left_out(history: list[_Batch]) -> None:
    requeues = {batch.time for batch in history if batch.is_requeue}
    planned = {batch.time for batch in history if not batch.is_requeue}
    bounds = dict(newest_before([_group(batch.time, batch.newest) for batch in history], requeues, planned))
    assert bounds.keys() == {batch.time for batch in history}
    for batch in history:
        before = [other.newest for other in history if other.committed < batch.committed]
        assert not before or (bounds[batch.time] or 0) >= max(before)
        if not requeues:
            assert bounds[batch.time] == max(before, default=None), "exact where nothing was requeued"
