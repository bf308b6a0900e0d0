"""Plans that are done and have changed nothing, so that a lake has many."""

from datetime import UTC, datetime
from typing import Any

from spark_jobs.credit.plan import CreditHorizon, CreditPlan
from spark_jobs.lake.layout import Lake
from spark_jobs.restatements.plan import Plan, PlanKind, RepairDone, RepairPlan, done_key
from spark_jobs.restatements.plans import Plans

_NOW = datetime(2026, 3, 1, tzinfo=UTC)


def gold_plan(number: int, kind: PlanKind) -> RepairPlan:
    return RepairPlan(
        number=number,
        kind=kind,
        draft="d",
        decided_at=_NOW,
        bronze_version=0 if kind is PlanKind.REPAIR else -1,
        late_events=0,
        expired=0,
        tables={},
    )


def credit_plan(number: int, *, is_window: bool) -> CreditPlan:
    return CreditPlan(
        number=number,
        draft="d",
        decided_at=_NOW,
        reach=CreditHorizon(until=_NOW, silver_version=0, attributions_version=0, repair=0),
        is_window=is_window,
        settings="{}",
        fresh=0,
        again=0,
        waiting=0,
        tables={},
    )


def write_done(lake: Lake, own: Plans[Any], plan: Plan, *, failed: tuple[str, ...] = ()) -> None:
    """Writes ``plan``, and that it is done but for the tables that ``failed``; its rows stay."""
    own.write(lake, plan)
    text = RepairDone(failed=failed).model_dump_json().encode()
    lake.files.write(done_key(plan.number, own.folder), text)
