"""A folder from which files are moved once they were read: the query forgets them, and no row is lost or doubled."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS, Table
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.places import checkpoint_key
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import GOLD, read_table
from tests.support.runs import ONE_BY_ONE, run_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_SETTINGS = Settings.model_validate({"ingest": ONE_BY_ONE})


def _remembered(lake: Lake, name: str) -> set[str]:
    text = lake.files.read(f"{checkpoint_key(INGEST, 1)}/sources/0/{name}") or b""
    return {json.loads(line)["path"].rpartition("/")[2] for line in text.decode().splitlines()[1:]}


def _rows(lake: Lake, tables: Sequence[Table]) -> dict[str, list[str]]:
    return {table.name: sorted(map(repr, read_table(lake, table))) for table in tables}


def test_files_that_are_moved_away_once_read_are_forgotten_and_may_come_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    made, source, away = (tmp_path / name for name in ("made", "source", "away"))
    files = sorted(generate_source(made, events=400, seed=3, files=22).iterdir())
    source.mkdir()
    away.mkdir()
    lake = open_lake(str(tmp_path / "lake"))

    def run(*arriving: Path, drain: bool = False) -> None:
        for file in arriving:
            shutil.copy2(file, source)
        run_in(spark, _SETTINGS, lake, source, drain=drain)

    run(*files[:20])
    assert _remembered(lake, "19.compact") == {file.name for file in files[:20]}
    for file in files[:9]:
        (source / file.name).rename(away / file.name)
    run(files[20])
    assert _remembered(lake, "19.compact") == {file.name for file in files[9:20]}
    run(files[21], drain=True)
    assert_lake_equals_oracle(lake, made, _SETTINGS)

    repair(OpenLake.of(lake, _SETTINGS, spark))
    tables = (SILVER_EVENTS, *GOLD)
    before, received = _rows(lake, tables), len(read_table(lake, BRONZE_EVENTS))
    run(away / files[0].name, drain=True)  # the ledger of the run balances
    assert len(read_table(lake, BRONZE_EVENTS)) > received, "it was not read again"
    repair(OpenLake.of(lake, _SETTINGS, spark))
    assert _rows(lake, tables) == before
