"""What `adloom days` prints, from a lake that has gold/days: without Spark."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.contract.tables import DAYS, Column
from spark_jobs.days.day import Day, DayStatus, read_days
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.open import open_lake

_AT = datetime.fromisoformat("2026-03-05T12:00:00.000001+00:00")
_ROWS = (
    Day("attributions", date(2026, 3, 1), DayStatus.AUDITED, _AT, restated=1, restated_at=_AT, changes=3),
    Day("attributions", date(2026, 3, 2), DayStatus.RESTATED, _AT, restated=12, restated_at=_AT, changes=1200),
    Day("attributions", date(2026, 3, 3)),
    Day("sessions", date(2026, 3, 2), DayStatus.FROZEN, _AT, frozen_at=_AT),
    Day("sessions", date(2026, 3, 3), DayStatus.COMPLETE, _AT),
)
_TYPES = {"STRING": pa.string(), "DATE": pa.date32(), "BIGINT": pa.int64(), "TIMESTAMP": pa.timestamp("us", "UTC")}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake whose gold/days was written by hand, as Delta has it."""
    return _written(tmp_path, DAYS.columns)


def _written(folder: Path, columns: Sequence[Column]) -> Lake:
    own = open_lake(str(folder / "lake"))
    schema = pa.schema([(column.name, _TYPES[column.sql_type]) for column in columns])
    rows: list[dict[str, Any]] = [asdict(day) for day in _ROWS]
    (own.path / DAYS.path).mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), own.path / DAYS.path / "a b.parquet")
    own.files.write(commit_key(DAYS, 0), json.dumps({"add": {"path": "a%20b.parquet"}}).encode())
    return own


def _days(lake: Lake, *options: str) -> str:
    command = [str(Path(sys.executable).with_name("adloom")), "days", "--lake", lake.shown(), *options]
    environment = {**os.environ, "JAVA_HOME": "/nowhere", "COLUMNS": "120"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_days_that_an_earlier_version_has_written_are_of_utc(tmp_path: Path) -> None:
    without = _written(tmp_path, [column for column in DAYS.columns if column.name != "zone"])
    assert read_days(without, zone="UTC") == sorted(_ROWS, key=lambda day: day.key)
    assert read_days(without, zone="Europe/Berlin") == []


@pytest.mark.parametrize("update", ["--update", "--no-update"], ids=["up to date", "as it is"])
def test_the_grid_has_a_row_for_each_date(lake: Lake, update: str) -> None:
    lines = [line.split() for line in _days(lake, update).splitlines()]
    assert ["date", "attributions", "sessions"] in lines
    assert ["2026-03-01", "audited", "(1)"] in lines
    assert ["2026-03-02", "restated", "12", "frozen"] in lines
    assert ["2026-03-03", "open", "complete"] in lines
    assert any(line[:1] == ["2"] and "1,203" in line for line in lines), "what has changed since"


def test_json_has_the_rows_of_the_chosen_dates(lake: Lake) -> None:
    (line,) = _days(lake, "--no-update", "--json", "--from", "2026-03-02", "--to", "2026-03-02").splitlines()
    first, second = json.loads(line)
    assert tuple(first) == DAYS.column_names
    assert (first["table_name"], first["event_date"], first["status"]) == ("attributions", "2026-03-02", "restated")
    assert (first["restated"], first["restated_at"]) == (12, "2026-03-05T12:00:00.000001Z")
    assert (second["table_name"], second["frozen_at"]) == ("sessions", "2026-03-05T12:00:00.000001Z")


def test_dates_without_days_say_which_there_are(lake: Lake) -> None:
    assert "they run from 2026-03-01 to 2026-03-03" in _days(
        lake, "--no-update", "--from", "2027-01-01", "--to", "2027-01-02"
    )
