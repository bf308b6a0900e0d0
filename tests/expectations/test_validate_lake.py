"""Validating a lake from end to end: ranges, stored failing rows, state and report."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from expectations.ranges import range_to_validate, read_rows, read_state
from expectations.results import TableResult, ValidationResult
from expectations.validate import validate_lake
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, CREDIT_TABLES, CREDITS, SESSIONS, SILVER_EVENTS
from spark_jobs.contract.validation import Validation
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.open import open_lake
from spark_jobs.lineage.send import report_new
from spark_jobs.places import VALIDATED
from spark_jobs.queries.registry import TABLES
from spark_jobs.spark.open_lake import OpenLake
from tests.expectations.good_rows import append, at, good_rows
from tests.support.openlineage import check_event


def _of(result: ValidationResult, table: str) -> TableResult:
    return next(found for found in result.tables if found.table == table)


def _broken(result: ValidationResult) -> set[tuple[str, str]]:
    return {(failure.table, failure.expectation) for failure in result.failures}


def _validated(lake: Lake) -> dict[str, int]:
    state: dict[str, int] = json.loads(lake.files.read(VALIDATED) or b"{}")
    return state


def test_a_good_lake_passes_and_the_next_validation_reads_only_new_rows(
    spark: SparkSession, good_lake: Lake, settings: Settings
) -> None:
    steps: list[str] = []
    first = validate_lake(OpenLake.of(good_lake, settings, spark), on_progress=steps.append)

    assert first.succeeded
    assert first.failures == ()
    assert [(found.table, found.rows) for found in first.tables] == [
        ("bronze", 29),
        ("silver", 28),
        ("attributions", 3),
        ("sessions", 5),
        ("campaign_stats", 3),
        ("moving_averages", 3),
        ("user_status", 6),
        ("lake", 1),
    ]
    assert all(found.docs and good_lake.files.read(found.docs) for found in first.tables)
    assert _validated(good_lake) == {table.name: 0 for table in TABLES}
    assert any("silver" in line for line in steps)

    activity = {**good_rows("silver")[4], "event_id": "new"}
    append(spark, good_lake, SILVER_EVENTS, [activity, {**good_rows("silver")[0], "user_id": "u9"}])
    second = validate_lake(OpenLake.of(good_lake, settings, spark))

    silver = _of(second, "silver")
    assert (str(silver.range), silver.rows) == ("versions 1 to 1", 2)
    assert {name for table, name in _broken(second) if table == "silver"} == {"event_unique"}, "an old key came again"
    assert not second.succeeded
    assert _validated(good_lake)["silver"] == 0, "a version with a critical failure does not count as validated"
    assert _of(second, "sessions").note == "nothing new"
    assert ("lake", "silver_matches_ledger") in _broken(second)
    _assert_kept(spark, silver)
    _assert_shown(good_lake, second.report, silver)
    _assert_told(good_lake, first, second)


@pytest.mark.slow
def test_where_credit_is_computed_it_is_validated_and_must_add_up(
    spark: SparkSession, good_lake: Lake, settings: Settings
) -> None:
    for table in CREDIT_TABLES:
        append(spark, good_lake, table, good_rows(table.name))
    credit = {**good_rows("credits")[0], "model": "first_touch", "weight_ppm": 1_000_000}
    append(spark, good_lake, CREDITS, [credit, {**credit, "position": 2, "credit_micros": 0, "weight_ppm": 0}])
    result = validate_lake(OpenLake.of(good_lake, settings, spark))
    counts = [(found.table, found.rows) for found in result.tables]
    credit_counts = [("paths", 4), ("credits", 10), ("left_out", 2), ("net_paths", 4), ("net_credits", 8)]
    assert counts[-6:] == [*credit_counts, ("lake", 1)]
    assert _broken(result) == {("lake", "credits_match_paths")}, "half of the value is credited"
    assert _validated(good_lake).keys() == {table.name for table in (*TABLES, *CREDIT_TABLES)}


def _assert_told(lake: Lake, *validations: ValidationResult) -> None:
    """Whoever comes later finds what each rule found, and OpenLineage gets it."""
    events: list[dict[str, Any]] = []
    told = [one for one in report_new(lake, Settings(), events.append, from_now=False) if isinstance(one, Validation)]
    for event in events:
        check_event(event)
    assert [len(one.together) + sum(len(table.rules) for table in one.tables.values()) for one in told] == [
        result.passed + result.failed for result in validations
    ]
    _, second = told
    assert {name for name, table in second.tables.items() if table.rules} == {"silver"}
    assert (second.tables["silver"].version, second.tables["silver"].rows) == (1, 2)
    broken = [(rule.name, rule.found) for rule in (*second.tables["silver"].rules, *second.together) if not rule.holds]
    assert dict(broken) == {
        "event_unique": 1,
        "silver_matches_ledger": 2,
        "attributions_match_silver": 1,
        "sessions_match_silver": 2,
        "something_new": 0,
    }


def _assert_kept(spark: SparkSession, silver: TableResult) -> None:
    assert silver.failing is not None
    kept = spark.read.format("delta").load(silver.failing.place).collect()
    assert [(row["event_id"], row["user_id"], row["version"]) for row in kept] == [("i1", "u9", 1)]
    assert kept[0]["reasons"] == ["event_unique: Each event, by type, id and time, appears once."]
    assert kept[0]["validated_at"] is not None
    assert silver.failing.count == 1


def _assert_shown(lake: Lake, report: str, silver: TableResult) -> None:
    page = (lake.files.read(report) or b"").decode()
    assert "Failed" in page
    assert "Each event, by type, id and time, appears once." in page
    assert silver.failing is not None
    assert silver.failing.place in page
    assert "29" in page, "the ledger's received records"
    assert "1 malformed_json" in page
    tables, _, together = page.partition("Last 2 validations")
    assert _bars(together) == (2, 0), "two validations so far"
    by_table = {text.partition('"')[0]: text for text in tables.split('data-table="')[1:]}
    assert list(by_table) == [*(table.name for table in TABLES), "lake"]
    once, twice = (1, 1), (2, 0)
    due = {name: twice if name in ("silver", "lake") else once for name in by_table}
    assert {name: _bars(text) for name, text in by_table.items()} == due, "a table without new rows was not checked"
    assert silver.docs is not None
    assert silver.docs.removeprefix("_reports/") in page
    pages = [
        page,
        *(docs.read_text(encoding="utf-8") for docs in (lake.path / "_reports" / "data_docs").glob("**/*.html")),
    ]
    assert [text for text in pages if 'src="http' in text or '<link rel="stylesheet"' in text] == []
    assert "A click has the id of its impression." in "".join(pages)


def _bars(page: str) -> tuple[int, int]:
    """How many validations of ``page`` met an expectation, and how many checked nothing."""
    fills = Counter(re.findall(r'aria-roledescription="bar"[^>]* fill="([^"]+)"', page))
    return fills["var(--good-bar)"], fills["var(--soft)"]


@pytest.mark.slow
def test_validating_a_version_twice_stores_its_failing_rows_once(
    spark: SparkSession, tmp_path: Path, settings: Settings
) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    rows = good_rows("attributions")
    rows[0]["click_time"] += timedelta(hours=2)
    append(spark, lake, ATTRIBUTIONS, rows)
    results = [
        validate_lake(OpenLake.of(lake, settings, spark)),
        validate_lake(OpenLake.of(lake, settings, spark), whole=True),
    ]

    for result in results:
        failing = _of(result, "attributions").failing
        assert failing is not None
        assert spark.read.format("delta").load(failing.place).count() == failing.count == 1
        assert {name for table, name in _broken(result) if table == "attributions"} == {
            "click_within_window",
            "click_delay_ms_is_right",
        }
        assert "missing" in _of(result, "silver").note
        assert ("lake", "ledger_received_not_null") in _broken(result), "no ledger is a warning of its own"


def test_the_report_shows_times_in_utc_wherever_the_machine_stands(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from expectations.quarantine import failing_rows, keep_failing_rows
    from expectations.suites import table_suites

    lake, row = open_lake(str(tmp_path / "lake")), {**good_rows("silver")[0], "campaign_id": None}
    append(spark, lake, SILVER_EVENTS, [row])
    (suite,) = (suite for suite in table_suites(Settings()) if suite.table is SILVER_EVENTS)
    failing = failing_rows(suite.prepare(spark.read.format("delta").load(lake.table(SILVER_EVENTS)), None), suite.rules)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        kept = keep_failing_rows(failing, SILVER_EVENTS, lake, row["ingest_time"], 0)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert kept is not None
    shown = dict(zip(kept.columns, kept.first[0], strict=True))
    assert shown["event_time"] == f"{row['event_time']:%Y-%m-%dT%H:%M:%S}.000000Z"
    assert "campaign_id" in shown["reasons"]


def test_a_new_row_that_conflicts_with_an_old_one_is_found(
    spark: SparkSession, good_lake: Lake, settings: Settings
) -> None:
    from expectations.quarantine import failing_rows
    from expectations.suites import table_suites

    of_unclicked = {"impression_id": "i2", "impression_time": at(1), "click_id": "c5", "click_delay_ms": 60_000}
    click = {**good_rows("attributions")[0], **of_unclicked}
    append(spark, good_lake, ATTRIBUTIONS, [click])
    session = {**good_rows("sessions")[0], "session_id": "s9", "session_start": at(1), "event_date": at(1).date()}
    append(spark, good_lake, SESSIONS, [session])

    found = {}
    for suite in table_suites(settings):
        if suite.table in (ATTRIBUTIONS, SESSIONS):
            rows = read_rows(
                OpenLake.of(good_lake, Settings(), spark),
                suite.table,
                range_to_validate(good_lake, suite.table, 0, whole=False),
            )
            reasons = failing_rows(suite.prepare(rows.new, rows.table), suite.rules).select("reasons").collect()
            found[suite.table.name] = {reason.split(":")[0] for row in reasons for reason in row["reasons"]}
    assert found == {"attributions": {"unclicked_unique"}, "sessions": {"no_overlap", "bounds_match_events"}}


def test_without_a_change_data_feed_the_whole_table_is_read_with_a_note(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    for _ in range(2):
        append(spark, lake, BRONZE_EVENTS, good_rows("bronze")[:3], change_data=False)
    rows = read_rows(
        OpenLake.of(lake, Settings(), spark), BRONZE_EVENTS, range_to_validate(lake, BRONZE_EVENTS, 0, whole=False)
    )
    assert rows.range.whole
    assert "no change data feed from version 1 on" in rows.range.note
    assert rows.new.count() == 6


def _compact_and_vacuum(spark: SparkSession, lake: Lake) -> None:
    table = f"delta.`{lake.table(SILVER_EVENTS)}`"
    spark.sql(f"OPTIMIZE {table}")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


def _clean_log(spark: SparkSession, lake: Lake) -> None:
    jvm: Any = spark.sparkContext._jvm
    deltas = jvm.org.apache.spark.sql.delta.DeltaLog
    deltas.forTable(spark._jsparkSession, lake.table(SILVER_EVENTS)).checkpoint()
    for version in range(2):
        (lake.path / commit_key(SILVER_EVENTS, version)).unlink()
    deltas.clearCache()


def _compact_and_lose_one_file(spark: SparkSession, lake: Lake) -> None:
    spark.sql(f"OPTIMIZE delta.`{lake.table(SILVER_EVENTS)}`")
    actions = map(json.loads, (lake.files.read(commit_key(SILVER_EVENTS, 2)) or b"").splitlines())
    (added,) = (action["add"]["path"] for action in actions if "add" in action)
    (lake.path / SILVER_EVENTS.path / added).unlink()


@pytest.mark.slow
@pytest.mark.parametrize(
    "lose",
    [
        _compact_and_vacuum,
        _compact_and_lose_one_file,
        _clean_log,
    ],
)
def test_versions_whose_files_are_gone_are_validated_as_far_as_they_can_be_seen(
    spark: SparkSession, good_lake: Lake, settings: Settings, lose: Callable[[SparkSession, Lake], None]
) -> None:
    validate_lake(OpenLake.of(good_lake, settings, spark))
    for number in range(2):  # a duplicate, which is critical: the validated version stays where it is
        append(spark, good_lake, SILVER_EVENTS, [{**good_rows("silver")[0], "user_id": f"u{number}"}])
    before = validate_lake(OpenLake.of(good_lake, settings, spark))
    lose(spark, good_lake)
    after = validate_lake(OpenLake.of(good_lake, settings, spark))

    assert [_of(found, "silver").rows for found in (before, after)] == [2, 30]
    for found in (before, after):
        assert {name for table, name in _broken(found) if table == "silver"} == {"event_unique"}
    note = _of(after, "silver").note
    assert "the change feed of versions 1 to" in note
    assert "cannot be read any more" in note
    assert "replaced or deleted again were not checked" in note
    page = (good_lake.files.read(after.report) or b"").decode()
    assert "cannot be read any more" in page
    assert _validated(good_lake)["silver"] == 0


def test_a_version_that_adds_no_row_counts_as_nothing_new(spark: SparkSession, good_lake: Lake) -> None:
    spark.sql(f"OPTIMIZE delta.`{good_lake.table(SILVER_EVENTS)}`")
    spark.sql(f"ALTER TABLE delta.`{good_lake.table(SILVER_EVENTS)}` SET TBLPROPERTIES ('comment' = 'x')")
    versions = range_to_validate(good_lake, SILVER_EVENTS, 0, whole=False)
    assert not versions.is_empty
    assert read_rows(OpenLake.of(good_lake, Settings(), spark), SILVER_EVENTS, versions).is_empty


def test_a_recreated_table_is_validated_whole(spark: SparkSession, good_lake: Lake) -> None:
    assert spark is not None
    versions = range_to_validate(good_lake, SILVER_EVENTS, 7, whole=False)
    assert versions.whole
    assert "recreated" in versions.note


def test_a_missing_lake_is_refused(spark: SparkSession, tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(LakeError, match="holds no table of a lake"):
        validate_lake(OpenLake.of(open_lake(str(tmp_path / "nowhere")), settings, spark))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_a_damaged_state_file_is_named(tmp_path: Path, text: str) -> None:
    lake = open_lake(str(tmp_path))
    lake.files.write("_reports/validated.json", text.encode())
    with pytest.raises(LakeError, match=r"validated\.json"):
        read_state(lake, "_reports/validated.json")
