"""Old plans: their folders are removed, and whoever goes on from plans does not notice."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.credit.due import last_run
from spark_jobs.credit.plan import CREDIT_PLANS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.restatements import plans
from spark_jobs.restatements.plan import Plan, PlanKind, plan_folder
from spark_jobs.restatements.plans import GOLD_PLANS, Plans, last_plan
from tests.support.old_plans import credit_plan, gold_plan, write_done

_KEPT = 3


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "KEPT", _KEPT)


_EARLIER, _LATER = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Before and after the plans of these tests are written."""
_ENDS = st.sampled_from(["whole", "failed", "killed"])
"""How a run ended; ``killed``: before it had planned, so the folder has rows only."""


def _write(lake: Lake, own: Plans[Any], made: Plan, end: str, *, is_done: bool) -> None:
    lake.files.write(f"{plan_folder(made.number, own.folder)}/other/part-0.parquet", b"rows")
    if end != "killed" and is_done:
        write_done(lake, own, made, failed=("sessions",) if end == "failed" else ())
    elif end != "killed":
        own.write(lake, made)


def _positions(lake: Lake) -> list[object]:
    """What later runs go on from."""
    return [
        *(last_plan(lake, kind) for kind in PlanKind),
        last_run(lake),
        *((own.newest(lake), own.unfinished(lake), own.last_done(lake)) for own in (GOLD_PLANS, CREDIT_PLANS)),
    ]


@given(st.lists(st.tuples(st.sampled_from(PlanKind), st.booleans(), _ENDS), max_size=15), st.booleans())
def test_removing_old_plans_takes_nothing_that_later_runs_need(
    runs: list[tuple[PlanKind, bool, str]],
    is_last_done: bool,  # noqa: FBT001 drawn
) -> None:
    with TemporaryDirectory() as folder:
        lake = open_lake(folder)
        for number, (kind, is_window, end) in enumerate(runs, start=1):
            is_done = is_last_done or number < len(runs)
            _write(lake, GOLD_PLANS, gold_plan(number, kind), end, is_done=is_done)
            _write(lake, CREDIT_PLANS, credit_plan(number, is_window=is_window), end, is_done=is_done)
        before, newest = _positions(lake), lake.numbers(GOLD_PLANS.folder)[-_KEPT:]
        for own in (GOLD_PLANS, CREDIT_PLANS):
            own.remove_old(lake, _LATER)
        assert _positions(lake) == before
        assert lake.numbers(GOLD_PLANS.folder)[-_KEPT:] == newest


def _removed(lake: Lake, own: Plans[Any], made: Iterable[Plan]) -> list[int]:
    """The numbers that are left of ``made``, which are all done."""
    for plan in made:
        _write(lake, own, plan, "whole", is_done=True)
    own.remove_old(lake, _EARLIER)
    return lake.numbers(own.folder)


def test_the_newest_plans_stay_and_the_last_of_each_kind(tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path))
    kinds = [PlanKind.REPAIR, PlanKind.REPLAY, PlanKind.REPAIR, *[PlanKind.MARKS] * 20]
    left = _removed(lake, GOLD_PLANS, (gold_plan(number, kind) for number, kind in enumerate(kinds, start=1)))
    assert left == [2, 3, 21, 22, 23]
    assert not (tmp_path / plan_folder(1)).exists()


def test_the_last_run_of_credit_that_was_no_window_stays(tmp_path: Path) -> None:
    made = (credit_plan(number, is_window=number > 2) for number in range(1, 9))
    assert _removed(open_lake(str(tmp_path)), CREDIT_PLANS, made) == [2, 6, 7, 8]


def test_a_lake_with_few_plans_keeps_them(tmp_path: Path) -> None:
    made = (gold_plan(number, PlanKind.MARKS) for number in range(1, _KEPT + 1))
    assert _removed(open_lake(str(tmp_path)), GOLD_PLANS, made) == [1, 2, 3]


def _rows(lake: Lake) -> set[str]:
    """The folders of rows, as ``<number>/<name>``."""
    inner = (file.key.removeprefix(f"{GOLD_PLANS.folder}/").split("/") for file in lake.files.walk(GOLD_PLANS.folder))
    return {"/".join(names[:2]) for names in inner if len(names) > 2}


def test_rows_of_old_plans_go_and_those_that_later_plans_read_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "KEPT", 1_000)
    lake = open_lake(str(tmp_path))
    for number, (kind, end) in enumerate(
        [
            (PlanKind.REPAIR, "whole"),
            (PlanKind.MARKS, "killed"),
            (PlanKind.REPAIR, "whole"),
            (PlanKind.REPAIR, "failed"),
        ],
        start=1,
    ):
        made = gold_plan(number, kind)
        _write(lake, GOLD_PLANS, made, end, is_done=True)
        lake.files.write(f"{made.rows_key('sessions')}/part-0.parquet", b"rows")
    lake.files.write(f"{GOLD_PLANS.folder}/seen.json", b"{}")
    everything = _rows(lake)
    GOLD_PLANS.remove_old(lake, _EARLIER)
    assert _rows(lake) == everything, "they are not old yet"
    GOLD_PLANS.remove_old(lake, _LATER)
    # The one that left a table alone, and the last that left none, are what the next repair reads.
    assert {folder.partition("/")[0] for folder in _rows(lake)} == {"3", "4"}
    assert [plan.number for plan in GOLD_PLANS.newest_first(lake)] == [4, 3, 1], "the plans themselves stay"
