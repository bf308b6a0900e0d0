"""A conversion counts once in credit, whatever copies of it came, and on whatever date."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.durations import Window
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import IMPRESSION
from spark_jobs.contract.tables import (
    CREDITS,
    GROSS_CREDIT_TABLES,
    NET_CREDIT_TABLES,
    NET_CREDITS,
    PATHS,
    RESTATEMENTS,
    Table,
)
from spark_jobs.credit.plan import CreditPlan
from spark_jobs.credit.run import credit
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import append_rows
from tests.golden.runs import STANDARD
from tests.support.credited import copy_lake, mark
from tests.support.lakes import read_table, rows_by_name
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.source_files import write_files
from tests.support.timeline import Case

pytestmark = pytest.mark.slow

_SETTINGS = Settings.model_validate({"ingest": ONE_BY_ONE})
_CASE = Case(
    "copies",
    """
2024-05-01T00:01:00  imp  i1 u1 c1
2024-05-01T00:05:00  cnv  far u1 purchase 25 EUR order=o9
2024-05-01T00:05:00  cnv  unnamed u1 purchase 7 EUR     # it has no order
2024-05-02T00:05:00  cnv  back u1 purchase 25 EUR revokes=far
---
2024-05-03T02:45:00  act  a1 u2                         # moves the watermark to 23:45, for the file after next
---
2024-05-03T02:44:00  act  a0 u2
---
2024-04-30T20:00:00  cnv  far u1 purchase 25 EUR order=o9
2024-04-30T20:00:00  cnv  unnamed u1 purchase 7 EUR
2024-05-02T23:30:00  cnv  near u1 purchase 40 EUR
---
2024-05-03T00:10:00  cnv  near u1 purchase 40 EUR       # on time, and received second
---
2024-05-03T18:00:00  act  a2 u2
---
2024-05-03T23:00:00  act  a3 u2
""",
    STANDARD,
)
_FIRST = {
    ("far", "01 00:05"): 25,
    ("unnamed", "01 00:05"): 7,
    ("back", "02 00:05"): -25,
    ("near", "03 00:10"): 40,
}
_THEN = {
    ("far", "30 20:00"): 25,
    ("unnamed", "30 20:00"): 7,
    ("back", "02 00:05"): -25,
    ("near", "02 23:30"): 40,
}
_Values = dict[tuple[str, str], int]


@dataclass
class _Copies:
    """A lake before its repair and after it, credited, and the plans of the two runs."""

    first: Lake
    then: Lake
    plans: list[CreditPlan]


@pytest.fixture(scope="module")
def copies(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Copies:
    folder = tmp_path_factory.mktemp("copies")
    lake = open_lake(str(folder / "lake"))
    run_in(spark, _SETTINGS, lake, write_files(folder / "source", _CASE.files()), drain=False)
    mark(spark, lake, {(IMPRESSION, "copies/i1")})
    plans = [credit(OpenLake.of(lake, _SETTINGS, spark))]
    first = copy_lake(lake, folder / "first")
    repaired = repair(OpenLake.of(lake, _SETTINGS, spark))
    assert repaired
    assert repaired.late_events == 3
    plans.append(credit(OpenLake.of(lake, _SETTINGS, spark)))
    return _Copies(first, lake, [plan for plan in plans if plan])


def _values(lake: Lake, table: Table) -> _Values:
    """By conversion and time what it is worth; by the linear model if ``table`` has credits."""
    rows = rows_by_name(lake, table)
    value = "value_micros" if "value_micros" in table.column_names else "credit_micros"
    sums: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row.get("model", "linear") == "linear":
            sums[row["conversion_id"].partition("/")[2], f"{row['conversion_time']:%d %H:%M}"] += row[value]
    return dict(sums)


@pytest.mark.parametrize("table", [*GROSS_CREDIT_TABLES, *NET_CREDIT_TABLES], ids=lambda table: table.name)
def test_a_late_copy_with_another_date_replaces_the_credit_of_the_first(table: Table, copies: _Copies) -> None:
    assert _values(copies.first, table) == _FIRST
    assert _values(copies.then, table) == _THEN


@pytest.mark.parametrize("table", [CREDITS, NET_CREDITS], ids=lambda table: table.name)
def test_a_refund_follows_the_conversion_that_is_left(table: Table, copies: _Copies) -> None:
    found = {}
    for lake in (copies.first, copies.then):
        rows = rows_by_name(lake, table)
        found[lake] = {row["impression_id"] for row in rows if row["conversion_id"] == "copies/back"}
    seen = {None} if table is NET_CREDITS else {"copies/i1"}
    assert found == {copies.first: seen, copies.then: {None}}, "nothing was seen before 20:00"


def test_what_a_late_copy_changes_is_told(copies: _Copies) -> None:
    rows = rows_by_name(copies.then, RESTATEMENTS)
    told = Counter(
        (row["event_id"].partition("/")[2], row["change"]) for row in rows if row["table_name"] == PATHS.name
    )
    assert told == {
        ("far", "insert"): 1,
        ("far", "delete"): 1,
        ("far", "update"): 1,  # the refund
        ("unnamed", "insert"): 1,
        ("unnamed", "delete"): 1,
        ("near", "update"): 1,
    }
    first, then = copies.plans
    assert (first.fresh, first.again) == (4, 0)
    assert (then.fresh, then.again) == (0, 6)


@pytest.mark.parametrize(
    ("begin", "ids"),
    [
        pytest.param(1, ("near", "far"), id="a window with the copies that count"),
        pytest.param(3, ("near",), id="a day whose copy counts on the day before"),
    ],
)
def test_a_window_that_is_computed_again_frees_an_older_lake_of_stale_rows(
    begin: int, ids: tuple[str, ...], spark: SparkSession, copies: _Copies, tmp_path: Any
) -> None:
    lake = copy_lake(copies.then, tmp_path)
    stale = [row for row in read_table(copies.first, PATHS) if row[0] in {f"copies/{name}" for name in ids}]
    rows = [tuple(v.replace(tzinfo=UTC) if isinstance(v, datetime) else v for v in row) for row in stale]
    append_rows(spark.createDataFrame(rows, PATHS.ddl), lake, PATHS, CommitNote(writer="a test", batch=1))
    assert _values(lake, PATHS) != _THEN
    window = Window(datetime(2024, 5, begin, tzinfo=UTC), datetime(2024, 5, 4, tzinfo=UTC))
    assert credit(OpenLake.of(lake, _SETTINGS, spark), window=window)
    assert _values(lake, PATHS) == _THEN
