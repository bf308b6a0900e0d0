"""The stored plans of a lake: those of repairs, replays and marks, and those of credit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.places import REPAIR, REPAIRS
from spark_jobs.restatements.plan import Plan, PlanKind, RepairDone, RepairPlan, done_key, plan_folder, plan_key

AnyPlan = TypeVar("AnyPlan", bound=Plan)
KEPT: Final = 1_000
"""How many of the newest plans in a folder are kept: S3 lists them in one call, and each run lists them."""


@dataclass(frozen=True)
class Plans(Generic[AnyPlan]):
    """The plans in one folder of a lake, with one sequence of numbers.

    Attributes:
        folder: its key.
        writer: the name of their writer in commits, and of its lock.
        kind: the class of a plan.
        purpose: of a plan: the next of the same purpose continues from the last one that was completed.
        kept: folders of the rows of a plan that later plans read; the others are deleted when it is done.
    """

    folder: str
    writer: str
    kind: type[AnyPlan]
    purpose: Callable[[AnyPlan], object]
    kept: tuple[str, ...] = ()

    def read(self, lake: Lake, number: int) -> AnyPlan | None:
        """The plan ``number``; None: missing."""
        text = lake.files.read(plan_key(number, self.folder))
        return self.kind.model_validate_json(text) if text else None

    def newest_first(self, lake: Lake) -> Iterator[AnyPlan]:
        """All plans. Of a number without a plan the process was killed before it had planned."""
        found = (self.read(lake, number) for number in reversed(lake.numbers(self.folder)))
        return (plan for plan in found if plan is not None)

    def newest(self, lake: Lake) -> AnyPlan | None:
        """The newest plan; None: no plan exists."""
        return next(self.newest_first(lake), None)

    def done(self, lake: Lake, number: int) -> RepairDone | None:
        """The end of the plan ``number``; None: it has not ended."""
        text = lake.files.read(done_key(number, self.folder))
        return None if text is None else RepairDone.model_validate_json(text)

    def is_whole(self, lake: Lake, number: int) -> bool:
        """Whether the plan ``number`` is done, in all its tables."""
        done = self.done(lake, number)
        return done is not None and not done.failed

    def last_done(self, lake: Lake) -> int:
        """The number of the last plan that is done; 0: none is."""
        newest_first = reversed(lake.numbers(self.folder))
        return next((number for number in newest_first if self.done(lake, number)), 0)

    def unfinished(self, lake: Lake) -> AnyPlan | None:
        """The newest plan, unless it is done."""
        plan = self.newest(lake)
        return plan if plan and self.done(lake, plan.number) is None else None

    def write(self, lake: Lake, plan: AnyPlan) -> None:
        """Writes ``plan``. From here on it is binding: a later run resumes it until it is complete.

        Raises:
            LakeError: its number is taken.
        """
        if not lake.files.create(plan_key(plan.number, self.folder), plan.model_dump_json(indent=2).encode()):
            raise LakeError(
                f"another process has planned {self.writer} {plan.number} of {lake.shown()} meanwhile: this one had "
                "lost its lock. Nothing was changed; run the same command again, and it completes the other plan"
            )

    def finish(self, lake: Lake, plan: AnyPlan, done: RepairDone) -> None:
        """Records that ``plan`` is done, and deletes rows that nobody will read."""
        lake.files.write(done_key(plan.number, self.folder), done.model_dump_json().encode())
        self.clean(lake, plan)

    def clean(self, lake: Lake, plan: AnyPlan) -> None:
        """Deletes those rows of ``plan``, which is done, that are not kept, and other drafts of its number."""
        folder = plan_folder(plan.number, self.folder)
        drafts = [name for name in lake.files.names(folder) if not name.endswith(".json")]
        unread = [f"{folder}/{name}" for name in drafts if name != plan.draft or not self.kept]
        if self.kept and plan.draft in drafts:
            names = lake.files.names(plan.folder)
            unread += [f"{plan.folder}/{name}" for name in names if name not in self.kept]
        for key in unread:
            lake.files.delete_folder(key)

    def remove_old(self, lake: Lake, before: datetime) -> None:
        """Deletes old plans and old rows; to be called under the lock of ``writer``.

        Of each purpose every plan since the last that was done whole stays as it is. Nothing reads any other: a run
        that finds it gone looks at the tables, whose logs have the numbers too, and the changes themselves are in
        ``gold/restatements``. Of the others, the newest :data:`KEPT` stay without the rows that were written before
        ``before``: rows hold events, and so personal data.
        """
        rows = self._rows_before(lake, before)
        numbers = lake.numbers(self.folder)[::-1]
        whole = set[object]()
        for place, number in enumerate(numbers if len(numbers) > KEPT or rows else ()):
            plan = self.read(lake, number)
            if plan is None or self.purpose(plan) in whole:
                unread = rows.get(number, ()) if place < KEPT else (plan_folder(number, self.folder),)
                for key in unread:
                    lake.files.delete_folder(key)
            elif self.is_whole(lake, number):
                whole.add(self.purpose(plan))

    def _rows_before(self, lake: Lake, before: datetime) -> dict[int, list[str]]:
        """By number, the folders of rows in which every file was written before ``before``."""
        newest: dict[tuple[int, str], datetime] = {}
        for file in lake.files.walk(self.folder):
            number, *inner = file.key.removeprefix(f"{self.folder}/").split("/")
            if number.isdigit() and len(inner) > 1:
                place = int(number), f"{self.folder}/{number}/{inner[0]}"
                newest[place] = max(file.modified_at, newest.get(place, file.modified_at))
        found: dict[int, list[str]] = {}
        for (of, folder), written_at in newest.items():
            if written_at < before:
                found.setdefault(of, []).append(folder)
        return found


GOLD_PLANS = Plans(REPAIRS, REPAIR, RepairPlan, lambda plan: plan.kind, kept=("events",))
"""Those of repairs, replays and marks. Of events that are late for a table, the next repair reads which wait."""


@dataclass(frozen=True)
class LastRepair:
    """The plan of the last repair, and the tables that it left alone because somebody had changed them."""

    plan: RepairPlan
    failed: tuple[str, ...]


def last_repair(lake: Lake) -> LastRepair | None:
    """The last repair; None: there was none yet. Only repairs change what had been read and what waits."""
    return last_plan(lake, PlanKind.REPAIR)


def last_plan(lake: Lake, kind: PlanKind) -> LastRepair | None:
    """The last plan of ``kind``; None: there was none yet."""
    plan = next((one for one in GOLD_PLANS.newest_first(lake) if one.kind is kind), None)
    if plan is None:
        return None
    done = GOLD_PLANS.done(lake, plan.number)
    return LastRepair(plan, done.failed if done else ())
