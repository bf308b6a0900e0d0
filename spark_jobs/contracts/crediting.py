"""Runs of `adloom credit`: where one lies in the lake, what it found and what it writes."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

CREDIT_RUNS = "_credits"
"""Folder of the runs, one folder per run that changed something."""
CREDIT = "credit"
"""In place of a job's name in the lock of the tables; and the writer of their commits."""
CREDIT_SEEN = f"{CREDIT_RUNS}/seen.json"
"""What was looked at last, as JSON: see :class:`CreditSeen`."""
FEED_DAYS = 30
"""So many days (UTC) of conversions are told to dashboards; the last is the day that credit has come to."""


class Reach(BaseModel):
    """How far the tables that credit is computed from have come.

    Conversions up to ``until`` are due: no touch of them can come in time any more. ``silver_version`` and
    ``attributions_version`` are the versions that were looked at, ``repair`` is the number of the last repair, or
    replay, that had been done before.
    ``marks_version`` is the version of ``silver/marks``, -1 if there was none: then no net credit is computed.
    """

    model_config = ConfigDict(frozen=True)

    until: datetime
    silver_version: int
    attributions_version: int
    repair: int
    marks_version: int = -1


class CreditedTable(BaseModel):
    """The part of a run that changes one table: rows, and the version of the table before, -1 if there was none."""

    model_config = ConfigDict(frozen=True)

    version: int
    inserts: int
    deletes: int
    frozen: int


class CreditPlan(BaseModel):
    """A run: what it found, and what it changes. It is written before anything is changed.

    ``draft`` names the folder with its rows: of two processes that plan one run, because one lost its lock, only the
    first counts. ``is_window`` says that only conversions of a window were computed again, so that the next run goes on
    from the run before. ``fresh`` counts the conversions that became due, ``again`` those that were computed again
    because something came late, ``waiting`` those that are not due yet. ``net_fresh`` and ``net_again`` count those
    whose net credit was computed, for the first time and again. ``settings`` are those of ``[credit]`` that it went by,
    as text.
    """

    model_config = ConfigDict(frozen=True)

    number: int
    draft: str
    decided_at: datetime
    reach: Reach
    is_window: bool
    settings: str
    fresh: int
    again: int
    net_fresh: int = 0
    net_again: int = 0
    waiting: int
    tables: dict[str, CreditedTable]

    @property
    def folder(self) -> str:
        """Folder of its rows."""
        return draft_key(self.number, self.draft)

    @property
    def changes(self) -> int:
        """How many rows are inserted or deleted."""
        return sum(table.inserts + table.deletes for table in self.tables.values())


class CreditDone(BaseModel):
    """The end of a run. ``failed``: tables that somebody had changed, so that the next run plans all of it anew."""

    model_config = ConfigDict(frozen=True)

    failed: tuple[str, ...] = ()


class CreditSeen(BaseModel):
    """What was looked at last, so that the next run starts Spark only if there is something to do.

    Losing it costs one start. ``waits``: whether silver, up to ``silver_version``, may hold conversions that were not
    due yet. ``marks_version`` is that of ``silver/marks``, -1 if there was none.
    """

    model_config = ConfigDict(frozen=True)

    silver_version: int
    waits: bool
    marks_version: int = -1


class CreditedCampaign(BaseModel):
    """What one campaign is credited with by one model; ``campaign`` is None for conversions without a touch.

    ``conversions`` counts each by the share that the campaign has in it, and no refunds. ``value_micros`` is in
    millionths of ``currency``, less refunds; a currency of None goes with a value of 0.
    """

    model_config = ConfigDict(frozen=True)

    campaign: str | None
    model: str
    currency: str | None
    conversions: float
    value_micros: int


class CreditFeed(BaseModel):
    """For dashboards: what conversions of the last :data:`FEED_DAYS` days are worth, up to ``until``.

    ``run`` is the number of the last run that is in it; 0: the file was written before this field existed.
    """

    model_config = ConfigDict(frozen=True)

    run: int = 0
    until: datetime
    credited: tuple[CreditedCampaign, ...]


def run_key(number: int) -> str:
    """Folder of a run."""
    return f"{CREDIT_RUNS}/{number}"


def credit_plan_key(number: int) -> str:
    """The plan of a run, as JSON: see :class:`CreditPlan`."""
    return f"{run_key(number)}/plan.json"


def credit_done_key(number: int) -> str:
    """That a run is complete, as JSON: see :class:`CreditDone`."""
    return f"{run_key(number)}/done.json"


def draft_key(number: int, draft: str) -> str:
    """Folder of the rows of a plan."""
    return f"{run_key(number)}/{draft}"


def credit_changes_key(folder: str, table: str) -> str:
    """Parquet files of the rows of ``table`` that a run deletes and inserts."""
    return f"{folder}/{table}"
