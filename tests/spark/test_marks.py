"""Marks of a lake: updates step by step, other rules and back, kills in between; gross stays as it is."""

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import LATE_EVENTS, MARKS, SILVER_EVENTS
from spark_jobs.errors import LakeError, LakeInUseError, SettingsError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.marks import mark as marking
from spark_jobs.marks.mark import apply_marks, update_marks
from spark_jobs.marks.model import Marking
from spark_jobs.marks.rules_in_use import rules_in_use
from spark_jobs.places import MARKS_WRITER
from spark_jobs.queries.places import checkpoint_key, manifest_key
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import append_rows
from spark_jobs.traffic_rules.reached import RULES_IN_USE, RulesInUse
from tests.support.invalid import HOUR, NOON_US, RULES, SECOND, Event, drawn_events, event, for_oracle, frame, rule_set
from tests.support.lakes import read_table, rows_by_name
from tests.support.marks_oracle import Mark, expected

pytestmark = pytest.mark.derived

_SETTINGS = Settings()
_BY_ID = {rule["id"]: rule for rule in RULES}
_A = [_BY_ID[one] for one in ("p", "d", "r-user", "s", "e", "p-here")]
_B = [{**_BY_ID["r-user"], "threshold": 1}, _BY_ID["c"], _BY_ID["p"]]
_FIRST_US, _LAST_US = NOON_US + 100 * SECOND, NOON_US + 223 * SECOND
"""The watermarks of the two batches of silver."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Killed(BaseException):
    """What no handler of errors catches."""


def _parts() -> tuple[list[Event], list[Event], list[Event]]:
    """The events of a first batch, of a second one, and those that come too late; some are of the day before."""
    events = drawn_events(seed=11, count=400)
    for number, one in enumerate(events):
        one["us"] -= 30 * HOUR if number % 10 == 0 else 0
    known = [one for one in events if one["us"] < _FIRST_US]
    first, late = [one for one in known if one["user_id"] != "u1"], [one for one in known if one["user_id"] == "u1"]
    first, late = first[20:], [*late, *first[:20]]
    rest = [one for one in events if one["us"] >= _FIRST_US]
    return [*first, *rest[::4]], [one for number, one in enumerate(rest) if number % 4], late


_FIRST, _SECOND, _LATE = _parts()
_EVERY = [*_FIRST, *_SECOND, *_LATE]


def _write_silver(spark: SparkSession, lake: Lake, events: Iterable[Event], batch: int, watermark_us: int) -> None:
    reached = [{"reservoirVersion": batch, "index": -1}]
    note = CommitNote(writer="w", batch=batch, query="deduplicate", watermark_ms=watermark_us // 1000, reached=reached)
    append_rows(frame(spark, events), lake, SILVER_EVENTS, note)


def _write_late(
    spark: SparkSession, lake: Lake, events: Iterable[Event], *, repair: int, expired: bool = False
) -> None:
    more = {"cause": F.lit("late"), "is_expired": F.lit(expired), "repair": F.lit(repair).cast("bigint")}
    note = CommitNote(writer="repair", batch=repair)
    append_rows(frame(spark, events).withColumns(more), lake, LATE_EVENTS, note)


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with all events and no marks."""
    lake = open_lake(str(tmp_path_factory.mktemp("whole") / "lake"))
    _write_silver(spark, lake, _FIRST, 1, _FIRST_US)
    _write_silver(spark, lake, _SECOND, 2, _LAST_US)
    _write_late(spark, lake, _LATE, repair=1)
    return lake


@pytest.fixture
def lake(whole: Lake, tmp_path: Path) -> Lake:
    return open_lake(str(shutil.copytree(whole.path, tmp_path / "lake")))


def _active(lake: Lake) -> set[Mark]:
    """The marks that hold, from the rows as they lie in the table."""
    newest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    rows = rows_by_name(lake, MARKS)
    for row in sorted(rows, key=lambda one: one["marked_at"]):
        us = (row["event_time"].replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
        mark = (row["event_type"], row["event_id"], us, row["rule_id"])
        newest[*mark, row["rule_version"]] = (row["revoked"], mark)
    return {mark for revoked, mark in newest.values() if not revoked}


def _expected(rules: list[dict[str, Any]], events: Iterable[Event] = _EVERY, until_us: int = _LAST_US) -> set[Mark]:
    return expected(events, for_oracle(rules), until_us)


def _gross(lake: Lake) -> dict[str, datetime]:
    return {file.key: file.modified_at for file in lake.files.walk("") if file.key.startswith(("silver/e", "silver/l"))}


def test_updates_step_by_step_give_what_one_marking_gives(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    assert update_marks(OpenLake.of(lake, _SETTINGS, spark)) is None, "there is no silver"
    _write_silver(spark, lake, _FIRST, 1, 0)
    assert update_marks(OpenLake.of(lake, _SETTINGS, spark)) is None, "no event is known to be the last of its time"
    # What the next batch will drop is known before that batch.
    commit = f"v1\n{json.dumps({'nextBatchWatermarkMs': _FIRST_US // 1000})}"
    lake.files.write(manifest_key("deduplicate", 1), b"{}")
    lake.files.write(f"{checkpoint_key('deduplicate', 1)}/commits/0", commit.encode())
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), rule_set(*_A))
    assert _active(lake) == _expected(_A, _FIRST, _FIRST_US)
    _write_silver(spark, lake, _SECOND, 2, _LAST_US)
    assert update_marks(OpenLake.of(lake, _SETTINGS, spark))
    assert _active(lake) == _expected(_A, [*_FIRST, *_SECOND])
    _write_late(spark, lake, _LATE, repair=1)
    _write_late(spark, lake, [event("clk", "expired", 50, user_id="u1", impression_id="imp1")], repair=2, expired=True)
    assert update_marks(OpenLake.of(lake, _SETTINGS, spark))
    assert _active(lake) == _expected(_A)
    assert lake.newest_commit(MARKS.path) == 2
    _write_silver(spark, lake, [], 3, _LAST_US)
    assert update_marks(OpenLake.of(lake, _SETTINGS, spark)) is None


def test_a_late_impression_shows_which_clicks_came_from_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    rules = [{**_BY_ID["e"], "window": "1h"}, {**_BY_ID["p-here"], "window": "40min"}]
    # An update looks again at whole hours: this one ends right after the impression.
    shown_s = 3600 - 0.000001
    impression = event("imp", "i", shown_s, ip="10.0.0.1", user_agent="a")
    scanner = event("clk", "scanner", shown_s + 3600, impression_id="i", ip="10.0.0.2", user_agent="b")
    person = event("clk", "person", shown_s + 3600 + 2400, impression_id="i", ip="10.0.0.1", user_agent="a")
    until_us = NOON_US + 12 * HOUR
    _write_silver(spark, lake, [scanner, person], 1, until_us)
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), rule_set(*rules))
    assert _active(lake) == {("click", "person", person["us"], "p-here")}
    _write_late(spark, lake, [impression], repair=1)
    assert update_marks(OpenLake.of(lake, _SETTINGS, spark))
    assert _active(lake) == {("click", "scanner", scanner["us"], "e")}
    assert _active(lake) == _expected(rules, [impression, scanner, person], until_us)


@pytest.mark.slow
def test_other_rules_and_back_give_the_marks_of_the_first_and_leave_gross_as_it_is(
    spark: SparkSession, lake: Lake
) -> None:
    gross = _gross(lake)
    begin, end = (datetime(2026, 3, 1, 12, minute, 5, tzinfo=UTC) for minute in (0, 2))
    begin_us, end_us = (round(time.timestamp()) * SECOND for time in (begin, end))
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), rule_set(*_A), until=end)
    assert _active(lake) == {mark for mark in _expected(_A) if mark[2] < end_us}
    assert update_marks(OpenLake.of(lake, _SETTINGS, spark)), "not everything was marked yet"
    assert _active(lake) == _expected(_A)
    version = lake.newest_commit(MARKS.path)
    dry = apply_marks(OpenLake.of(lake, _SETTINGS, spark), rule_set(*_B), dry_run=True)
    assert lake.newest_commit(MARKS.path) == version
    assert rules_in_use(lake) == rule_set(*_A)
    done = apply_marks(OpenLake.of(lake, _SETTINGS, spark), rule_set(*_B))
    assert done == dry
    _check_sums(done, before=_expected(_A), after=_expected(_B))
    assert _active(lake) == _expected(_B)
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), rule_set(*_A), since=begin, until=end)
    within = {mark for mark in _expected(_A) if begin_us <= mark[2] < end_us}
    assert _active(lake) == within | {mark for mark in _expected(_B) if not begin_us <= mark[2] < end_us}
    apply_marks(OpenLake.of(lake, _SETTINGS, spark), rule_set(*_A))
    assert _active(lake) == _expected(_A)
    assert rules_in_use(lake) == rule_set(*_A)
    assert _gross(lake) == gross


def _check_sums(done: Marking, *, before: set[Mark], after: set[Mark]) -> None:
    """The rule p is in both sets; r-user has another version."""
    events = {(one["event_type"], one["event_id"], one["us"]): one for one in _EVERY}
    found = Counter({(one.rule_id, "marked"): one.marked.events for one in done.changes if one.marked.events})
    found += Counter({(one.rule_id, "revoked"): one.revoked.events for one in done.changes if one.revoked.events})
    wanted = Counter((mark[-1], "marked") for mark in after if mark[-1] in ("r-user", "c"))
    wanted += Counter((mark[-1], "revoked") for mark in before if mark[-1] not in ("p", "c"))
    assert found == wanted
    networks = next(one.marked for one in done.changes if one.rule_id == "c")
    impressions = [events[mark[:3]] for mark in after if mark[-1] == "c" and mark[0] == "impression"]
    assert impressions
    assert (networks.impressions, networks.clicks) == (len(impressions), networks.events - len(impressions))
    assert networks.cost_micros == sum(one["cost_micros"] or 0 for one in impressions)
    conversions = [events[mark[:3]] for mark in before if mark[-1] == "d" and mark[0] == "conversion"]
    values = Counter[str]()
    for one in conversions:
        values[one["currency"]] += one["value_micros"]
    delays = next(one.revoked for one in done.changes if one.rule_id == "d")
    assert conversions
    assert (delays.conversions, delays.value_micros) == (len(conversions), values)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("keep_rules", id="rules kept"),
        pytest.param("append_rows", id="marks written", marks=pytest.mark.slow),
    ],
)
def test_a_marking_that_is_killed_is_made_whole_by_the_next(
    step: str, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(marking, step)

    def dying(*arguments: Any, **named: Any) -> Any:
        real(*arguments, **named)
        raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr(marking, step, dying)
        with pytest.raises(_Killed):
            apply_marks(OpenLake.of(lake, _SETTINGS, spark), rule_set(*_A))
    was_written = step != "keep_rules"
    assert lake.has(MARKS) == was_written
    if was_written:
        assert update_marks(OpenLake.of(lake, _SETTINGS, spark)) is None, "there is nothing left to mark"
    else:
        apply_marks(OpenLake.of(lake, _SETTINGS, spark), rule_set(*_A))
    assert _active(lake) == _expected(_A)
    assert len(read_table(lake, MARKS)) == len(_expected(_A)), "each mark is there once"
    named = RulesInUse.model_validate_json(lake.files.read(RULES_IN_USE) or b"")
    assert named.digest == rule_set(*_A).digest


def test_what_cannot_be_marked_is_refused(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    with pytest.raises(SettingsError, match=r"--to 2026-03-01T12:00:00\+00:00 is not after --from"):
        apply_marks(OpenLake.of(lake, _SETTINGS, spark), rule_set(*_A), since=noon, until=noon)
    with pytest.raises(LakeError, match="silver has no watermark"):
        apply_marks(OpenLake.of(open_lake(str(tmp_path / "empty")), _SETTINGS, spark), rule_set(*_A))
    with hold_job(lake, MARKS_WRITER, _SETTINGS.s3), pytest.raises(LakeInUseError, match=MARKS_WRITER):
        update_marks(OpenLake.of(lake, _SETTINGS, spark))
