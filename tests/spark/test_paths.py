"""Spaces, %, #, + and letters beyond ASCII in the paths of a lake, of folders of input, and of files in them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from expectations.validate import validate_lake
from spark_jobs.config.sections import S3Settings, TablesSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.ingest.requeue import requeue
from spark_jobs.ingest.requeue_model import Selection
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.store.arrow import row_store
from spark_jobs.operations.backup import back_up, put_back
from spark_jobs.operations.maintain import maintain
from spark_jobs.queries.registry import QUERIES
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.sql.lake_sql import LakeSql
from spark_jobs.streams.reset import reset
from tests.support.equality import MEASURED, assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_table
from tests.support.runs import run_in

pytestmark = [pytest.mark.derived, pytest.mark.slow]

_ODD = "%41#1 100% +\u00fc"
"""Delta and Spark write paths as URIs in some places and as they are in others: ``%41`` would become ``A``."""


@pytest.fixture
def odd(tmp_path: Path) -> Callable[[str], Path]:
    """Gives paths whose names begin with a space and hold all of the characters."""
    folder = tmp_path / f" {_ODD}"
    folder.mkdir()
    return lambda name: folder / f" {name} {_ODD}"


def test_a_lake_lives_in_such_a_folder_and_reads_such_files(
    spark: SparkSession, odd: Callable[[str], Path], tmp_path: Path
) -> None:
    source, settings = generate_source(odd("in"), events=400, seed=3), Settings()
    held_back = max(source.iterdir()).rename(tmp_path / "held back.jsonl")
    for number, file in enumerate(sorted(source.iterdir())):
        file.rename(source / f" {number} {_ODD}.jsonl")
    lake = open_lake(str(odd("lake")))
    run_in(spark, settings, lake, source, drain=False)
    opened = OpenLake.of(lake, settings, spark)
    _maintain(opened)
    repair(opened)
    held_back.rename(source / f" late {_ODD}.jsonl")
    copy, restored = open_lake(str(odd("copy"))), open_lake(str(odd("restored")))
    back_up(lake, copy, S3Settings(), now=datetime.now(UTC), report=lambda *_: None)
    put_back(copy, restored, report=lambda *_: None)
    for one in (lake, restored):
        _reset(OpenLake.of(one, settings, spark), source)
        run_in(spark, settings, one, source)
        assert_lake_equals_oracle(one, source, settings)
    assert validate_lake(opened, whole=True).critical == 0
    assert _counted_by_sql(lake) == len(read_table(lake, SILVER_EVENTS))
    assert {one.name for one in tmp_path.iterdir()} == {f" {_ODD}"}, "nothing was written elsewhere"


def _maintain(lake: OpenLake) -> None:
    at_once = lake.settings.model_copy(
        update={"tables": TablesSettings().model_copy(update={"file_retention": timedelta()})}
    )
    done = list(maintain(OpenLake.of(lake, at_once, lake.spark), [BRONZE_EVENTS, SILVER_EVENTS], remove=True))
    assert [one.skipped or one.not_removed for one in done] == ["", ""]
    assert all(one.files_removed == one.files_joined > 0 for one in done), done


def _reset(lake: OpenLake, source: Path) -> None:
    for query in QUERIES:
        if query.writes not in MEASURED:
            reset(lake, query.name, source)


def _counted_by_sql(lake: Lake) -> int:
    rows = LakeSql(lake, row_store(lake, S3Settings())).run(
        "SELECT count(*) FROM silver WHERE event_type <> 'heartbeat'"
    )
    assert rows
    ((count,),) = rows.fetchall()
    return int(count)


def test_records_of_such_files_belong_to_the_source_of_their_folder_when_they_are_judged_again(
    spark: SparkSession, odd: Callable[[str], Path]
) -> None:
    lines, cells = odd("lines"), odd("cells")
    fields = {"event_id": "$.id", "event_time": "cast($.at as timestamp)", "user_id": "'u'"}
    own: dict[str, Any] = {"event_type": "'activity'", "map": fields}
    sources = {
        "other": {**own, "path": odd("other")},
        "lines": {**own, "path": lines},
        "cells": {**own, "path": cells, "format": "csv"},
    }
    for source in sources.values():
        source["path"].mkdir()
        (source["path"] / f" a {_ODD}.jsonl").write_text(json.dumps({"id": "1", "at": "never"}) + "\n")
    (cells / f" a {_ODD}.jsonl").unlink()
    (cells / f" a {_ODD}.csv").write_text("id,at\n1,never\n")
    settings, lake = Settings.model_validate({"source": sources}), open_lake(str(odd("lake")))
    run_in(spark, settings, lake, None, drain=False)
    judged = requeue(OpenLake.of(lake, settings, spark), Selection(), dry_run=True).judged
    assert sorted((one.source, one.records) for one in judged) == [("cells", 1), ("lines", 1), ("other", 1)]
