"""Days that were announced to a DAG of Airflow and got no run there.

Airflow makes the run of a partition only for DAGs that exist and are not paused at the moment of the announcement, and
never makes up for it: ``AssetManager.register_asset_change`` in ``airflow/assets/manager.py`` (3.3.2).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

FAILED = "failed"
"""Airflow's name for the state of a run that failed."""
_SETTLED = timedelta(minutes=5)
"""Airflow may still be about to make the run of a younger announcement; one by hand would be a second."""


def day_asset(table: str, event: str) -> str:
    """The name of the asset that announces days of ``table``, before the prefix of the lake.

    Args:
        table: a table of gold.
        event: ``complete`` or ``restated``.
    """
    return f"adloom_{table}_day_{event}"


@dataclass(frozen=True)
class Announcement:
    """That ``asset`` announced the partition ``key`` at ``at``."""

    key: str
    asset: str
    at: datetime


@dataclass(frozen=True)
class Run:
    """A run for the partition ``key``. ``queued_at`` is when it was made, or cleared for another try."""

    run_id: str
    key: str
    state: str
    queued_at: datetime


@dataclass(frozen=True)
class Consumer:
    """A DAG that waits for days.

    ``expression`` combines assets as Airflow's API writes it: ``{"asset": {"name": …}}``, ``{"any": […]}`` or
    ``{"all": […]}``.
    """

    dag_id: str
    is_paused: bool
    expression: Mapping[str, Any]


@dataclass(frozen=True)
class MissedDay:
    """A day without a run that was made after the announcement, or whose last run failed.

    ``run`` is the last one: an earlier run says nothing about a restatement that came after it.
    """

    consumer: Consumer
    announced: Announcement
    run: Run | None

    @property
    def has_run(self) -> bool:
        """Whether a run was made after the announcement. A failed run is one: somebody has to clear it."""
        return self.run is not None and self.run.queued_at >= self.announced.at


def missed_days(
    consumer: Consumer, announcements: Iterable[Announcement], runs: Iterable[Run], now: datetime
) -> list[MissedDay]:
    """The days that ``consumer`` missed, or whose last run failed, by date.

    Args:
        consumer: the DAG.
        announcements: of all assets that it waits for.
        runs: all of the DAG's since the first announcement.
        now: the wall clock.
    """
    by_key: dict[str, dict[str, Announcement]] = {}
    for one in sorted(announcements, key=lambda one: one.at):
        by_key.setdefault(one.key, {})[one.asset] = one
    last = {run.key: run for run in sorted(runs, key=lambda run: run.queued_at)}
    found = []
    for key, by_asset in sorted(by_key.items()):
        announced = _due(consumer.expression, by_asset)
        if announced is None or announced.at > now - _SETTLED:
            continue
        day = MissedDay(consumer, announced, last.get(key))
        if not day.has_run or (day.run and day.run.state == FAILED):
            found.append(day)
    return found


def asset_names(expression: Mapping[str, Any]) -> Iterator[str]:
    """The names of the assets in ``expression``, see :class:`Consumer`."""
    if "asset" in expression:
        yield expression["asset"]["name"]
    for part in (*expression.get("any", ()), *expression.get("all", ())):
        yield from asset_names(part)


def _due(expression: Mapping[str, Any], by_asset: Mapping[str, Announcement]) -> Announcement | None:
    """The announcement with which a date satisfies ``expression``; None: it does not."""
    if "asset" in expression:
        return by_asset.get(expression["asset"]["name"])
    parts = [_due(part, by_asset) for part in (*expression.get("any", ()), *expression.get("all", ()))]
    announced = [part for part in parts if part is not None]
    if "all" in expression and len(announced) < len(parts):
        return None
    return max(announced, key=lambda one: one.at, default=None)
