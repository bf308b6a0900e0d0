"""The plans of repairs, replays and effects of marks, as they lie in a lake: one sequence of numbers for all."""

from dataclasses import dataclass

from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.repair import REPAIRS, Kind, RepairDone, RepairPlan, done_key, plan_key
from spark_jobs.lake.layout import Lake


@dataclass(frozen=True)
class LastRepair:
    """The plan of the last repair, and the tables that somebody had changed, so that it left them."""

    plan: RepairPlan
    failed: tuple[str, ...]


def newest_number(lake: Lake) -> int:
    """The newest number with a plan; 0: there is none. One without was killed before it had planned."""
    newest_first = reversed(lake.numbers(REPAIRS))
    return next((number for number in newest_first if lake.files.read(plan_key(number))), 0)


def last_done(lake: Lake) -> int:
    """The number of the last repair or replay that is done; 0: there is none."""
    newest_first = reversed(lake.numbers(REPAIRS))
    return next((number for number in newest_first if lake.files.read(done_key(number)) is not None), 0)


def last_repair(lake: Lake) -> LastRepair | None:
    """The last repair; None: there was none. What it had read, and what waits, only repairs change."""
    return last_plan(lake, Kind.REPAIR)


def last_plan(lake: Lake, kind: Kind) -> LastRepair | None:
    """The last plan of ``kind``; None: there was none."""
    for number in reversed(lake.numbers(REPAIRS)):
        plan = read_plan(lake, number)
        if plan is not None and plan.kind is kind:
            done = lake.files.read(done_key(number))
            return LastRepair(plan, RepairDone.model_validate_json(done).failed if done else ())
    return None


def read_plan(lake: Lake, number: int) -> RepairPlan | None:
    """The plan ``number``; None: there is none."""
    text = lake.files.read(plan_key(number))
    return RepairPlan.model_validate_json(text) if text else None


def unfinished(lake: Lake, number: int) -> RepairPlan | None:
    """The plan ``number``, unless it is done."""
    return read_plan(lake, number) if lake.files.read(done_key(number)) is None else None


def write_plan(lake: Lake, plan: RepairPlan) -> None:
    """Writes ``plan``. From now on it counts, and is gone on with until it is done.

    Raises:
        LakeError: there is a plan of its number already.
    """
    if not lake.files.create(plan_key(plan.number), plan.model_dump_json(indent=2).encode()):
        raise LakeError(
            f"another process has planned repair {plan.number} of {lake.place()} meanwhile: this one had "
            "lost its lock. Nothing was changed; run the repair again, and it goes on from the other plan"
        )
