"""A small good lake, and a Great Expectations engine shared by the session."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import TABLES
from tests.expectations.good_rows import append, good_rows, write_ledger

if TYPE_CHECKING:
    from expectations.engine import Engine


@pytest.fixture(scope="session")
def settings() -> Settings:
    return Settings()


@pytest.fixture(scope="session")
def engine(spark: SparkSession) -> "Engine":
    assert spark is not None, "Great Expectations would start a session of its own, without Delta"
    from expectations.engine import Engine

    return Engine()


@pytest.fixture
def good_lake(spark: SparkSession, tmp_path: Path) -> Lake:
    lake = open_lake(str(tmp_path / "lake"))
    for table in TABLES:
        append(spark, lake, table, good_rows(table.name))
    write_ledger(lake)
    return lake
