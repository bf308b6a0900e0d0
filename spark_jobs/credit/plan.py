"""Runs of `adloom credit`: where one lies in the lake, what it found and what it writes."""

from datetime import datetime
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from spark_jobs.places import CREDIT, CREDIT_RUNS
from spark_jobs.restatements.plan import Plan
from spark_jobs.restatements.plans import Plans

CREDIT_SEEN = f"{CREDIT_RUNS}/seen.json"
"""What was looked at last, as JSON: see :class:`CreditSeen`."""
FEED_DAYS = 30
"""So many days (UTC) of conversions are told to dashboards; the last is the day that credit has come to."""


class CreditHorizon(BaseModel):
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


class CreditPlan(Plan):
    """A run: what it found, and what it changes.

    ``is_window`` says that only conversions of a window were computed again, so that the next run goes on from the run
    before. ``fresh`` counts the conversions that became due, ``again`` those that were computed again because something
    came late, ``waiting`` those that are not due yet. ``net_fresh`` and ``net_again`` count those whose net credit was
    computed, for the first time and again. ``settings`` are those of ``[credit]`` that it was computed with, as text.
    """

    plans: ClassVar[str] = CREDIT_RUNS
    reach: CreditHorizon
    is_window: bool
    settings: str
    fresh: int
    again: int
    net_fresh: int = 0
    net_again: int = 0
    waiting: int


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


CREDIT_PLANS = Plans(CREDIT_RUNS, CREDIT, CreditPlan, lambda plan: plan.is_window)
