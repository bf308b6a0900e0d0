"""A lake that an earlier adloom began, when there were no conversions, addresses or user agents: it goes on."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import CONVERSION, PERSONAL_FIELDS, TYPE_FIELDS
from spark_jobs.contract.tables import BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, USER_STATUS, Table
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.registry import TABLES
from tests.support.lakes import GOLD, read_ledger, read_table
from tests.support.lateness import PATIENT
from tests.support.older import tables_without
from tests.support.oracle import assert_same_accounts, assert_same_rows, compared_columns, expected_tables
from tests.support.runs import run_in
from tests.support.source_files import read_files, write_files
from tests.support.verdicts import judge

pytestmark = pytest.mark.derived

_SETTINGS = Settings.model_validate({"sessionize": {"watermark": "3h"}, **PATIENT})
_SPEC = GeneratorSpec(events=800, seed=3, files=2, hours=1.5, bots=0.2, conversions=0.9, late=0, duplicates=0.1)
_NEW = (*TYPE_FIELDS[CONVERSION], *PERSONAL_FIELDS)


def _is_conversion(record: bytes) -> bool:
    return b'"conversion"' in record


def _without_devices(records: list[bytes]) -> list[bytes]:
    bare = [{name: value for name, value in json.loads(one).items() if name not in PERSONAL_FIELDS} for one in records]
    return [json.dumps(event).encode() for event in bare]


@dataclass
class _Older:
    """The lake, its columns when it began, and its source."""

    lake: Lake
    columns_before: list[str]
    source: Path


@pytest.fixture(scope="module")
def older(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Older:
    folder, now = tmp_path_factory.mktemp("older"), datetime.now(UTC)
    generate(_SPEC, folder / "generated")
    first, second = (
        [one for one in file if judge(one, receipt=now, ingest=_SETTINGS.ingest).event]
        for file in read_files(folder / "generated")
    )
    early = _without_devices([one for one in first if not _is_conversion(one)])
    files = [early, [*filter(_is_conversion, first), *second]]
    whole, source = write_files(folder / "whole", files), folder / "source"
    source.mkdir()
    lake = open_lake(str(folder / "lake"))
    before, after = sorted(whole.iterdir())
    (source / before.name).hardlink_to(before)
    with tables_without(_NEW, BRONZE_EVENTS, SILVER_EVENTS):
        run_in(spark, _SETTINGS, lake, source, drain=False, measure=True)
        columns = spark.read.format("delta").load(lake.table(SILVER_EVENTS)).columns
    (source / after.name).hardlink_to(after)
    run_in(spark, _SETTINGS, lake, source, measure=True)
    return _Older(lake, columns, source)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_goes_on(older: _Older, table: Table) -> None:
    assert not set(_NEW) & set(older.columns_before)
    expected = expected_tables(older.source, _SETTINGS, datetime.now(UTC))
    assert_same_rows(read_table(older.lake, table), expected.rows(table), table)
    assert_same_accounts(read_ledger(older.lake), expected.ledger)
    assert sum(row[0] == CONVERSION for row in expected.rows(SILVER_EVENTS)) > 5
    place = compared_columns(SILVER_EVENTS).index("ip")
    assert {row[place] is None for row in expected.rows(SILVER_EVENTS)} == {True, False}


def test_without_its_devices_it_has_the_same_gold(older: _Older) -> None:
    batches = [_without_devices(file) for file in read_files(older.source)]
    expected = expected_tables(Path(), _SETTINGS, datetime.now(UTC), batches=batches)
    for table in GOLD:
        assert_same_rows(read_table(older.lake, table), expected.rows(table), table)
        assert not set(PERSONAL_FIELDS) & set(table.column_names)


def test_without_its_conversions_it_has_the_same_sessions_and_statuses(older: _Older) -> None:
    records = [record for file in read_files(older.source) for record in file]
    others = [record for record in records if not _is_conversion(record)]
    assert len(others) < len(records)
    expected = expected_tables(Path(), _SETTINGS, datetime.now(UTC), batches=[others])
    for table in (SESSIONS, USER_STATUS):
        assert_same_rows(read_table(older.lake, table), expected.rows(table), table)
