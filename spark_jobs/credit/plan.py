"""The records of runs of `adloom credit`: their plans, and the feed for dashboards."""

from datetime import datetime
from typing import ClassVar, Final

from pydantic import BaseModel, ConfigDict

from spark_jobs.places import CREDIT, CREDIT_RUNS
from spark_jobs.restatements.plan import Plan
from spark_jobs.restatements.plans import Plans

CREDIT_SEEN = f"{CREDIT_RUNS}/seen.json"
"""How far the last run looked, as JSON: see :class:`CreditSeen`."""
FEED_DAYS = 30
"""The number of days (UTC) of conversions in the feed; the last is the day that credit has reached."""
DECAY_STEPS: Final = 4096
"""The steps into which ``time_decay`` divides a half-life; the weight of a touch is constant within one."""
DECAY_BITS: Final = 32
"""The weight of the youngest touch in ``time_decay`` is 2 to this power; after more half-lives a touch has none."""
WHOLE_PPM: Final = 1_000_000
"""The sum of the parts per million of a conversion's touches."""


class CreditHorizon(BaseModel):
    """How far the tables that credit is computed from have come.

    Conversions up to ``until`` are due: all their touches must have arrived by now, except late ones.
        ``silver_version`` and ``attributions_version`` are the versions that were read, ``repair`` is the number of the
        last repair, or replay, done before. ``marks_version`` is the version of ``silver/marks``; -1: it does not
        exist, and no net credit is computed.
    """

    model_config = ConfigDict(frozen=True)

    until: datetime
    silver_version: int
    attributions_version: int
    repair: int
    marks_version: int = -1


class CreditPlan(Plan):
    """A run: what it found, and what it changes.

    ``is_window`` says that only conversions of a window were computed again, so the next run continues from the run
    before. ``fresh`` counts the conversions that became due, ``again`` those that were computed again because something
    came late, ``waiting`` those that are not due yet. ``net_fresh`` and ``net_again`` count those whose net credit was
    computed, for the first time and again. ``crowded`` counts the users with more than ``credit.most_touches`` clicks
    and views, of whom only the last ones are touches. ``settings`` are those of ``[credit]`` that it was computed with,
    as text.
    """

    plans: ClassVar[str] = CREDIT_RUNS
    reach: CreditHorizon
    is_window: bool
    settings: str
    fresh: int
    again: int
    net_fresh: int = 0
    net_again: int = 0
    crowded: int = 0
    waiting: int


class CreditSeen(BaseModel):
    """How far the last run looked, so that the next one starts Spark only if it has work.

    Losing it costs one start. ``waits``: whether silver, up to ``silver_version``, may hold conversions that were not
    due yet. ``marks_version`` is that of ``silver/marks``, -1 if it does not exist.
    """

    model_config = ConfigDict(frozen=True)

    silver_version: int
    waits: bool
    marks_version: int = -1


class CreditedCampaign(BaseModel):
    """The credit of one campaign by one model; ``campaign`` is None for conversions without a touch.

    ``conversions`` is the sum of the campaign's shares, without refunds. ``value_micros`` is in millionths of
    ``currency``, less refunds; it is 0 if the currency is None.
    """

    model_config = ConfigDict(frozen=True)

    campaign: str | None
    model: str
    currency: str | None
    conversions: float
    value_micros: int


class CreditFeed(BaseModel):
    """The feed for dashboards: the credits of conversions of the last :data:`FEED_DAYS` days, up to ``until``.

    ``run`` is the number of the last run that is in it; 0: the file was written before this field existed.
    """

    model_config = ConfigDict(frozen=True)

    run: int = 0
    until: datetime
    credited: tuple[CreditedCampaign, ...]


CREDIT_PLANS = Plans(CREDIT_RUNS, CREDIT, CreditPlan, lambda plan: plan.is_window)
