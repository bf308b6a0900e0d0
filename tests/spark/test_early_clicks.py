"""A click a moment before its impression, and before midnight, counts as any other: in credit, and if one is late."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, CREDITS, NET_CREDITS, Table
from spark_jobs.credit.run import credit
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from tests.golden.runs import STANDARD
from tests.support.credited import mark
from tests.support.lakes import read_table
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.source_files import write_files
from tests.support.timeline import Case

pytestmark = pytest.mark.slow

_SETTINGS = Settings.model_validate(
    {"ingest": ONE_BY_ONE, "attribute": {"tolerance": "5s"}, "credit": {"models": "last_click"}}
)
_CASE = Case(
    "early",
    """
2024-05-01T23:59:58    clk  k1 u1 ->i1
2024-05-01T23:59:59    cnv  p1 u1 purchase 25 EUR
2024-05-02T00:00:01    imp  i1 u1 c1
2024-05-01T23:59:58    clk  k2 u2 ->i2
2024-05-01T23:59:59    cnv  p2 u2 purchase 40 EUR
2024-05-01T23:59:50    clk  k3 u3 ->i3
2024-05-01T23:59:59    cnv  p3 u3 purchase 70 EUR
2024-05-02T00:00:01    imp  i3 u3 c3
---
2024-05-04T00:00:00    act  a1 u4
---
2024-05-04T00:00:00    act  a2 u4
---
2024-05-02T00:00:01    imp  i2 u2 c2
2024-05-04T00:00:01    act  a3 u4
""",
    STANDARD,
)


def _rows(lake: Lake, table: Table, *names: str) -> set[tuple[Any, ...]]:
    columns = [table.column_names.index(name) for name in names]
    # Without the name of the case.
    values = [[row[column] for column in columns] for row in read_table(lake, table)]
    return {tuple(value and value.rpartition("/")[2] for value in row) for row in values}


def _pairs(lake: Lake) -> set[tuple[str, ...]]:
    return _rows(lake, ATTRIBUTIONS, "status", "impression_id", "click_id")


def _credited(lake: Lake, table: Table = CREDITS) -> dict[str, str | None]:
    return dict(_rows(lake, table, "conversion_id", "campaign_id"))


def test_an_early_click_is_credited_on_the_day_before_its_impression(spark: SparkSession, tmp_path: Path) -> None:
    arriving = sorted(write_files(tmp_path / "arriving", _CASE.files()).iterdir())
    source, lake = tmp_path / "source", open_lake(str(tmp_path / "lake"))
    source.mkdir()
    for file in arriving[:3]:
        file.rename(source / file.name)
    run_in(spark, _SETTINGS, lake, source, drain=False)
    opened = OpenLake.of(lake, _SETTINGS, spark)
    assert credit(opened)
    assert ("clicked", "i1", "k1") in _pairs(lake)
    assert ("orphan_click", "i3", "k3") in _pairs(lake), "eleven seconds early"
    assert _credited(lake) == {"p1": "c1", "p2": None, "p3": None}

    arriving[3].rename(source / arriving[3].name)
    run_in(spark, _SETTINGS, lake, source, drain=False)
    assert repair(opened)
    assert ("clicked", "i2", "k2") in _pairs(lake)
    assert credit(opened)
    assert _credited(lake) == {"p1": "c1", "p2": "c2", "p3": None}, "the impression of the next day was late"

    mark(spark, lake, frozenset({("impression", "early/i1")}))
    assert credit(opened)
    assert _credited(lake, NET_CREDITS)["p1"] is None
