"""Records that did not fit: counts that DuckDB confirms, and the page that shows them."""

import random
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from expectations.landing import write_landing_page
from expectations.rejected_records.count import count_rejected
from expectations.rejected_records.figures import RejectedFigures
from expectations.results import ValidationResult
from expectations.validate import validate_lake
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.places import REPORTS
from spark_jobs.spark.open_lake import OpenLake
from tests.expectations.good_rows import Row, append, at, frame, good_rows
from tests.support.lakes import live_files

_START = datetime(2026, 3, 1, 22, 58, 59, 999_999, tzinfo=UTC)
_STRANGE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
_NEW_COLUMNS = ("reason", "source_name")


def _record(number: int, verdict: str | None, name: str | None, received: datetime | None, **more: Any) -> Row:
    return {
        "raw": f'{{"n": {number}}}',
        "source": f"events-{number % 3}.jsonl#bytes=0-99999",
        "ingest_time": received,
        "verdict": verdict,
        "source_name": name,
        "reason": None if verdict == "ok" else f"reason {number}",
        **more,
    }


def _many() -> list[Row]:
    """Records of three sources and of none, in batches over nine days; one lacks a verdict, one its time."""
    chance = random.Random(11)
    batches = [_START + timedelta(hours=chance.uniform(0, 9 * 24)) for _ in range(40)]
    rows = []
    for number in range(1500):
        source = chance.choice(("orders", "orders", "web", "clean", None))
        kinds = ("ok", "ok", "ok", "malformed_json", "missing_user_id", "invalid_event_time")
        verdict = "ok" if source == "clean" else chance.choice(kinds)
        rows.append(_record(number, verdict, source, chance.choice(batches)))
    rows[3:6] = [_record(3, "malformed_json", None, batches[0]) for _ in range(3)]  # equal in all
    return [*rows, _record(1500, None, "web", _START), _record(1501, "invalid_data", "web", None)]


def _requeue(spark: SparkSession, lake: Lake, rows: list[Row], source: str) -> None:
    """Appends ``rows`` as requeued records, whose source now has the name ``source``."""
    due = [row for row in rows if row["verdict"] != "ok" and row["ingest_time"]]
    again = [
        {**row, "verdict": "ok", "reason": None, "source_name": source, "ingest_time": at(60 * 400)} for row in due
    ]
    columns = [*BRONZE_EVENTS.column_names, *({"requeued_from"} - set(BRONZE_EVENTS.column_names))]
    values = [
        tuple(old["ingest_time"] if name == "requeued_from" else row.get(name) for name in columns)
        for old, row in zip(due, again, strict=True)
    ]
    types = {column.name: column.sql_type for column in BRONZE_EVENTS.columns} | {"requeued_from": "TIMESTAMP"}
    schema = ", ".join(f"{name} {types[name]}" for name in columns)
    writer = spark.createDataFrame(values, schema).coalesce(1).write.format("delta").mode("append")
    writer.option("mergeSchema", "true").save(lake.table(BRONZE_EVENTS))


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    own, rows = open_lake(str(tmp_path_factory.mktemp("rejected") / "lake")), _many()
    for part in (rows[:500], rows[500:]):
        append(spark, own, BRONZE_EVENTS, part)
    _requeue(spark, own, [row for row in rows[:300] if row["source_name"] is None], "web")
    return own


@pytest.fixture(scope="module")
def figures(spark: SparkSession, lake: Lake) -> RejectedFigures:
    found = count_rejected(OpenLake.of(lake, Settings(), spark), 3)
    assert found is not None
    return found


def _ask(lake: Lake, query: str) -> list[tuple[Any, ...]]:
    """What DuckDB answers; the view ``bronze`` has the rows, with times in microseconds."""
    folder = lake.path / BRONZE_EVENTS.path
    files = [str(folder / name) for name in live_files(folder)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE stored AS FROM read_parquet($files, union_by_name = true)", {"files": files})
        connection.execute(
            "CREATE VIEW bronze AS SELECT * REPLACE (coalesce(verdict, 'none') AS verdict, "
            "epoch_us(ingest_time) AS ingest_time, epoch_us(requeued_from) AS requeued_from) FROM stored"
        )
        return connection.execute(query).fetchall()


def _micros(time: datetime | None) -> int | None:
    return None if time is None else (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def test_counts_and_times_by_source_and_verdict_are_those_of_duckdb(lake: Lake, figures: RejectedFigures) -> None:
    due = _ask(
        lake,
        "SELECT source_name, verdict, count(*), min(ingest_time), max(ingest_time) FROM bronze "
        "WHERE requeued_from IS NULL AND verdict <> 'ok' GROUP BY ALL",
    )
    found = [
        (source.name, one.verdict, one.records, _micros(one.first), _micros(one.last))
        for source in figures.sources
        for one in source.verdicts
    ]
    assert Counter(found) == Counter(due)
    assert {row[1] for row in due} >= {"none", "invalid_data"}, "a verdict and a time are missing"
    received = dict(_ask(lake, "SELECT source_name, count(*) FROM bronze WHERE requeued_from IS NULL GROUP BY ALL"))
    assert {source.name: source.received for source in figures.sources} == {
        name: rows for name, rows in received.items() if name != "clean"
    }
    assert figures.received == sum(received.values()) == 1502
    assert figures.records == sum(row[2] for row in due)


def test_requeued_records_count_where_they_were_in_quarantine(lake: Lake, figures: RejectedFigures) -> None:
    due = _ask(
        lake,
        "SELECT source_name, verdict, count(*) FROM bronze AS old WHERE verdict <> 'ok' AND EXISTS (FROM bronze AS new "
        "WHERE old.source = new.source AND old.raw = new.raw AND old.ingest_time = new.requeued_from) GROUP BY ALL",
    )
    found = [(source.name, one.verdict, one.requeued) for source in figures.sources for one in source.verdicts]
    assert Counter(row for row in found if row[2]) == Counter(due)
    assert {row[0] for row in due} == {None}, "not in the source that has the records now"
    assert len(due) > 1, "places are files of many records, so the text tells which it was"
    assert [(figures.requeued,)] == _ask(lake, "SELECT count(requeued_from) FROM bronze")


def test_a_bar_counts_what_was_received_in_its_interval(lake: Lake, figures: RejectedFigures) -> None:
    length = figures.timelines.interval // timedelta(microseconds=1)
    assert figures.timelines.interval == timedelta(hours=6), "nine days, but not 60 bars of three hours"
    rows = _ask(lake, "SELECT source_name, verdict, ingest_time FROM bronze WHERE verdict <> 'ok' AND ingest_time > 0")
    starts = {(bar.row, bar.kind, _micros(bar.start)): bar.count for bar in figures.timelines.bars}
    assert starts == Counter((source, verdict, micros - micros % length) for source, verdict, micros in rows)


def test_examples_are_the_newest_records(lake: Lake, figures: RejectedFigures) -> None:
    newest = _ask(
        lake,
        "SELECT source_name, verdict, reason, source, ingest_time, raw FROM bronze "
        "WHERE verdict <> 'ok' AND ingest_time IS NOT NULL "
        "QUALIFY row_number() OVER (PARTITION BY source_name, verdict ORDER BY ingest_time DESC, source DESC, raw DESC)"
        " <= 3 ORDER BY ingest_time DESC, source DESC, raw DESC",
    )
    for source in figures.sources:
        for one in source.verdicts:
            found = [(each.reason, each.place, _micros(each.received), each.record) for each in one.examples]
            assert found == [row[2:] for row in newest if row[:2] == (source.name, one.verdict)]


def test_without_examples_no_record_is_read(spark: SparkSession, lake: Lake, figures: RejectedFigures) -> None:
    found = count_rejected(OpenLake.of(lake, Settings(), spark), 0)
    assert found is not None
    assert found.records == figures.records
    assert not any(one.examples for source in found.sources for one in source.verdicts)
    assert "reason 1" not in _page(lake, found)


def test_the_page_shows_every_count_and_the_chart_adds_up(lake: Lake, figures: RejectedFigures) -> None:
    page = _page(lake, figures)
    for source in figures.sources:
        for one in source.verdicts:
            assert f">{one.records:,}</td>" in page
    charted = Counter[str]()
    for count, verdict in re.findall(r'aria-label="[^"]* UTC, 6 hours: ([\d,]+) (\w+)"', page):
        charted[verdict] += int(count.replace(",", ""))
    due = Counter[str]()
    for source in figures.sources:
        due.update({one.verdict: one.records for one in source.verdicts if one.first})
    assert charted == due
    assert ">Requeued</th>" in page
    assert "no source" in page


def _page(lake: Lake, figures: RejectedFigures | None) -> str:
    """The page of a validation that checked nothing else."""
    write_landing_page(lake, ValidationResult(f"{REPORTS}/index.html"), _START, figures)
    return (lake.files.read(f"{REPORTS}/index.html") or b"").decode()


def test_what_a_record_brings_is_text_on_the_page(spark: SparkSession, tmp_path: Path) -> None:
    lake, strange = open_lake(str(tmp_path / "lake")), f"{_STRANGE}\x00\u202e"
    row = _record(1, strange, strange, _START, raw=strange, reason=strange, source=strange)
    append(spark, lake, BRONZE_EVENTS, [row, _record(2, "malformed_json", "web", _START, raw="é" * 301)])
    page = _page(lake, count_rejected(OpenLake.of(lake, Settings(), spark), 3))
    assert "<script" not in page
    assert "<img" not in page
    assert "\x00" not in page, "nor did it end the process: the renderer of charts cannot take it"
    assert "\u202e" not in page
    # The source is there in the chart and the table, the verdict in both and the legend; then reason, place and record.
    assert page.count("alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(2)&gt;") >= 6
    assert f"<pre>{'é' * 300}…</pre>" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "https://" not in page


def test_a_lake_of_an_older_version_has_reports_too(spark: SparkSession, tmp_path: Path, settings: Settings) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    rows = good_rows("bronze")
    rows[0]["event_time"] = rows[0]["ingest_time"] + timedelta(days=1)  # breaks a rule, so the row is kept
    old = frame(spark, "bronze", rows).drop(*_NEW_COLUMNS)
    old.write.format("delta").option("delta.enableChangeDataFeed", "true").save(lake.table(BRONZE_EVENTS))
    result = validate_lake(OpenLake.of(lake, settings, spark))
    assert {one.expectation for one in result.failures if one.table == "bronze"} == {"event_time_not_in_future"}
    page = (lake.files.read(result.report) or b"").decode()
    assert "<strong>1</strong> of 29 records received (3.45%) did not fit" in page
    assert "<pre>{</pre>" in page
    assert 'class="reason"' not in page
    assert ">Requeued</th>" not in page


def test_a_lake_in_which_every_record_fits_says_so_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    assert count_rejected(OpenLake.of(lake, Settings(), spark), 3) is None
    assert "Records that did not fit" not in _page(lake, None)
    append(spark, lake, BRONZE_EVENTS, [row for row in good_rows("bronze") if row["verdict"] == "ok"])
    page = _page(lake, count_rejected(OpenLake.of(lake, Settings(), spark), 3))
    assert "All 28 records received fit" in page
    assert "<details" not in page
