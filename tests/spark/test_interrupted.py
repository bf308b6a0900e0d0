"""Whatever changes gold is killed at every step: run again, it leaves the rows of a run that was never interrupted."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.durations import Window
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, CREDIT_TABLES, LATE_EVENTS, MARKS, RESTATEMENTS, SESSIONS, Table
from spark_jobs.credit.run import credit
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.marks.mark import apply_marks
from spark_jobs.restatements import apply as restating
from spark_jobs.restatements.marks_to_gold import apply_marks_to_gold
from spark_jobs.restatements.plans import Plans
from spark_jobs.restatements.repair import repair
from spark_jobs.restatements.replay import replay
from spark_jobs.spark.open_lake import OpenLake
from tests.support.credited import copy_lake
from tests.support.invalid import rule_set
from tests.support.lakes import GOLD, read_table
from tests.support.runs import ONE_BY_ONE, run_in

pytestmark = [pytest.mark.derived, pytest.mark.slow]

_SETTINGS = Settings.model_validate({"ingest": ONE_BY_ONE, "credit": {"view_lookback": "1h"}})
_ALL_TIMES = Window(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC))
_TABLES = (*GOLD, LATE_EVENTS, *CREDIT_TABLES, RESTATEMENTS)
_RULES = rule_set(
    {"id": "soon", "class": "sivt", "kind": "delay", "event_type": "click", "threshold": "30s"},
    {"id": "again", "class": "givt", "kind": "repeat", "event_type": "click", "window": "1h", "threshold": 1},
)
_STEPS = ((Plans, "write"), (restating, "append_rows"), (restating, "change_rows"), (Plans, "finish"), (Plans, "clean"))
_Rows = dict[str, Counter[str]]


class _Killed(BaseException):
    """What no handler of errors catches."""


@dataclass
class _Clock:
    """Counts the steps of a run, and ends it when ``last`` of them are done."""

    last: int | None = None
    done: int = 0

    def after(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            result = step(*arguments, **named)
            self.done += 1
            if self.done == self.last:
                raise _Killed
            return result

        return counted


def _repair(spark: SparkSession, lake: Lake) -> None:
    repair(OpenLake.of(lake, _SETTINGS, spark))


def _marks(spark: SparkSession, lake: Lake) -> None:
    apply_marks_to_gold(OpenLake.of(lake, _SETTINGS, spark))


def _credit(spark: SparkSession, lake: Lake) -> None:
    credit(OpenLake.of(lake, _SETTINGS, spark))


def _replay(spark: SparkSession, lake: Lake) -> None:
    names = (ATTRIBUTIONS.name, SESSIONS.name)
    replay(OpenLake.of(lake, _SETTINGS, spark), _ALL_TIMES, tables=names, is_applied=True)


def _tamper(spark: SparkSession, lake: Lake) -> None:
    for table, change in ((ATTRIBUTIONS, "cost_micros = cost_micros + 1"), (SESSIONS, "user_id = 'nobody'")):
        spark.sql(f"UPDATE delta.`{lake.table(table)}` SET {change} WHERE event_date = '{_first_date(lake, table)}'")


def _first_date(lake: Lake, table: Table) -> Any:
    place = table.column_names.index("event_date")
    return min(row[place] for row in read_table(lake, table))


@dataclass(frozen=True)
class _User:
    """Something that changes gold: the lake that it starts from, and the rows that it leaves."""

    run: Callable[[SparkSession, Lake], None]
    lake: Lake
    due: _Rows
    steps: int


@pytest.fixture(scope="module")
def users(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, _User]:
    folder = tmp_path_factory.mktemp("users")
    lake = open_lake(str(folder / "lake"))
    generate(GeneratorSpec(events=300, seed=64, files=4, late=0.2, conversions=1, users=30), folder / "source")
    run_in(spark, _SETTINGS, lake, folder / "source")
    _credit(spark, lake)
    found = {"repair": _user(spark, _repair, lake, folder / "repair")}
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), _RULES)
    assert lake.has(MARKS)
    found["marks"] = _user(spark, _marks, lake, folder / "marks")
    found["credit"] = _user(spark, _credit, lake, folder / "credit")
    _tamper(spark, lake)
    found["replay"] = _user(spark, _replay, lake, folder / "replay")
    return found


def _user(spark: SparkSession, run: Callable[[SparkSession, Lake], None], lake: Lake, folder: Path) -> _User:
    before, clock = copy_lake(lake, folder), _Clock()
    with pytest.MonkeyPatch.context() as patched:
        _watch(patched, clock)
        run(spark, lake)
    return _User(run, before, _rows(lake), clock.done)


def _watch(patched: pytest.MonkeyPatch, clock: _Clock) -> None:
    for where, name in _STEPS:
        patched.setattr(where, name, clock.after(getattr(where, name)))


def _rows(lake: Lake) -> _Rows:
    return {table.name: Counter(_undated(table, row) for row in read_table(lake, table)) for table in _present(lake)}


def _present(lake: Lake) -> list[Table]:
    return [table for table in _TABLES if lake.has(table)]


def _undated(table: Table, row: Any) -> str:
    decided = table.column_names.index("decided_at") if table is RESTATEMENTS else None
    return repr([value for place, value in enumerate(row) if place != decided])


@pytest.mark.parametrize("name", ["credit", "repair", "marks", "replay"])
def test_what_is_killed_after_any_step_and_run_again_changes_gold_once(
    name: str, spark: SparkSession, users: dict[str, _User], tmp_path: Path
) -> None:
    user = users[name]
    assert user.steps >= 5, "nothing was changed: the test shows nothing"
    for last in range(1, user.steps + 1):
        lake = copy_lake(user.lake, tmp_path / str(last))
        with pytest.MonkeyPatch.context() as patched:
            _watch(patched, _Clock(last))
            with pytest.raises(_Killed):
                user.run(spark, lake)
        user.run(spark, lake)
        assert _rows(lake) == user.due, f"killed after step {last}"
