"""Plans of changes of gold: where they lie in the lake, and what a repair found and did."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from spark_jobs.places import REPAIRS


class Cause(StrEnum):
    """Why a row of gold was changed."""

    LATE_IMPRESSION = "late_impression"
    LATE_CLICK = "late_click"
    LATE_ACTIVITY = "late_activity"
    LATE_CONVERSION = "late_conversion"
    REQUEUE = "requeue"
    REPLAY = "replay"
    """A replay found a difference that nothing explains."""
    INVALID_TRAFFIC = "invalid_traffic"
    """An event was marked, or its mark was revoked."""


class PlanKind(StrEnum):
    """The kind of command that planned changes."""

    REPAIR = "repair"
    REPLAY = "replay"
    MARKS = "marks"


class ChangeOutcome(StrEnum):
    """The outcome of a change."""

    APPLIED = "applied"
    FROZEN = "frozen"


class ChangedTable(BaseModel):
    """The part of a plan that changes one table.

    ``version`` is that of the table before, -1 if it did not exist. ``inserts``, ``deletes`` and ``frozen`` count rows;
    a changed row is one of each of the first two.
    """

    model_config = ConfigDict(frozen=True)

    version: int
    inserts: int
    deletes: int
    frozen: int


class TablePlan(ChangedTable):
    """The part of a repair that changes one table of gold.

    ``version`` of the table and ``silver_version`` belong together: what the query had written and read;
    ``watermark_ms`` is the watermark of its last batch. Of its late ``events``, ``pending`` wait until everything that
    they touch is closed.
    """

    silver_version: int
    watermark_ms: int
    events: int
    pending: int


class Plan(BaseModel):
    """Changes of tables under one number. It is written before anything is changed.

    ``draft`` names the folder with its rows. Two processes may plan one number, if one has lost its lock; they write to
    different folders, and only the first plan counts.
    """

    model_config = ConfigDict(frozen=True)

    plans: ClassVar[str]
    """The folder of the plans of this kind."""
    number: int
    draft: str
    decided_at: datetime
    tables: Mapping[str, ChangedTable]

    @property
    def folder(self) -> str:
        """The folder of its rows."""
        return draft_key(self.number, self.draft, self.plans)

    @property
    def changes(self) -> int:
        """The number of rows that are inserted or deleted."""
        return sum(table.inserts + table.deletes for table in self.tables.values())

    def rows_key(self, table: str) -> str:
        """Parquet files of the rows of ``table`` that it deletes and inserts."""
        return f"{self.folder}/{table}"


class RepairPlan(Plan):
    """A repair: what it found, and what it changes.

    An applied replay has such a plan too, of ``kind`` replay, and so has an update of gold to marks, of ``kind`` marks;
    their numbers are of one sequence. Only plans of repairs say which late events were read and which wait. Plans of
    marks say up to which ``marked_at_us`` (microseconds since 1970) marks were read, and which marked events wait.

    ``bronze_version`` is the version up to which ``deduplicate`` had read; ``late_events`` counts the events that are
    new in ``silver/late_events``, and ``expired`` those of them that came after the horizon.
    """

    plans: ClassVar[str] = REPAIRS
    kind: PlanKind = PlanKind.REPAIR
    bronze_version: int
    late_events: int
    expired: int
    marked_at_us: int = 0
    tables: dict[str, TablePlan]

    def rows_key(self, table: str) -> str:
        """Parquet files of the rows of ``table`` that it deletes and inserts."""
        return changes_key(self.folder, table)

    def changes_of(self, table: str) -> int:
        """How many rows of ``table`` are inserted or deleted."""
        part = self.tables.get(table)
        return part.inserts + part.deletes if part else 0

    @property
    def pending(self) -> int:
        """How many events wait, counted once for each table."""
        return sum(table.pending for table in self.tables.values())


class RepairDone(BaseModel):
    """The end of a repair, or of another plan.

    ``versions``: by table, the version that it left behind; these belong together. ``failed``: tables that somebody
    had changed, so that the next repair plans them again.
    """

    model_config = ConfigDict(frozen=True)

    versions: dict[str, int] = {}
    failed: tuple[str, ...] = ()


def plan_folder(number: int, plans: str = REPAIRS) -> str:
    """The folder of a plan and its rows; ``plans`` is the folder of all plans of its kind."""
    return f"{plans}/{number}"


def plan_key(number: int, plans: str = REPAIRS) -> str:
    """A plan, as JSON: see :class:`Plan`."""
    return f"{plan_folder(number, plans)}/plan.json"


def done_key(number: int, plans: str = REPAIRS) -> str:
    """The end of a plan, as JSON: see :class:`RepairDone`."""
    return f"{plan_folder(number, plans)}/done.json"


def draft_key(number: int, draft: str, plans: str = REPAIRS) -> str:
    """The folder of the rows of a plan."""
    return f"{plan_folder(number, plans)}/{draft}"


def late_key(folder: str) -> str:
    """Parquet files of the events that a repair adds to ``silver/late_events``; ``folder`` is that of its rows."""
    return f"{folder}/late"


def changes_key(folder: str, table: str) -> str:
    """Parquet files of the rows of ``table`` that a repair deletes and inserts."""
    return f"{folder}/changes/{table}"


def events_key(folder: str, table: str) -> str:
    """Parquet files of the events that were late for ``table``, and whether they wait for the next repair."""
    return f"{folder}/events/{table}"
