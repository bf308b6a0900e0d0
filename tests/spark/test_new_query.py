"""What a new query costs: a description, which holds its table too, and an operator. Nothing else is touched."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.lake.open import open_lake
from tests.support.ad_hours.query import AD_HOURS
from tests.support.equality import generate_source
from tests.support.lakes import read_table

_ROOT = Path(__file__).parents[2]
_ADDED = _ROOT / "tests" / "support" / "ad_hours"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of adloom with one query more."""
    house = tmp_path_factory.mktemp("house")
    for package in ("spark_jobs", "expectations"):
        shutil.copytree(_ROOT / package, house / package, ignore=shutil.ignore_patterns("__pycache__"))
    for script in ("script.py", "listed.py"):
        shutil.copy(_ADDED / script, house)
    added = house / "spark_jobs" / "queries" / "ad_hours"
    added.mkdir()
    for module in ("__init__.py", "query.py", "operator.py"):
        shutil.copy(_ADDED / module, added)
    return house


def test_a_query_added_by_a_description_is_known_to_jobs_tables_preflight_and_help(house: Path) -> None:
    found = json.loads(_run(house, "listed.py"))
    assert found["queries of measure"] == ["ad_hours", "campaign_stats", "moving_average", "user_status"]
    assert "ad_hours" in found["tables"]
    assert found["manifest"] == "ad_hours"
    assert found["preflight"] == [["attribute.impression_watermark", "breaking"]]
    assert found["closes after"] == 3 * 60 * 60
    assert all("ad_hours" in text for text in found["help"])


@pytest.mark.slow
def test_a_query_added_by_a_description_and_an_operator_takes_part_in_everything(house: Path, tmp_path: Path) -> None:
    source, later, place = tmp_path / "source", tmp_path / "later", tmp_path / "lake"
    later.mkdir()
    for file in sorted(generate_source(source, events=3000, seed=11, files=4).iterdir())[2:]:
        shutil.move(file, later)
    _run(house, "script.py", source, later, place)
    found = json.loads((place / "found.json").read_text())

    assert found["queries"][-4:] == ["ad_hours", "campaign_stats", "moving_average", "user_status"]
    assert (found["job"], found["after_job"] > 0) == ("DONE", True)
    assert found["preflight"] == [["attribute.impression_watermark", "breaking"]]
    assert found["reset"][0] == 2
    assert found["reset"][1] > 0, "hours were open, so the reset had a state to rebuild"
    assert found["validation"] == [3, 0]
    assert found["cared"] == ["ad_hours"]
    assert "ad_hours" in found["status"]
    assert "ad_hours" in found["help"]

    lake = open_lake(str(place))
    silver = read_table(lake, SILVER_EVENTS)
    rows = sorted(read_table(lake, AD_HOURS))
    assert rows == _counted(silver)
    assert len(rows) > found["after_job"]


def _run(house: Path, script: str, *arguments: Path) -> str:
    """What the script prints in the copy of adloom."""
    done = subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        cwd=house,
        env=os.environ | {"PYTHONPATH": str(house)},
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def _counted(silver: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Impressions by hour and ad, counted by DuckDB."""
    wanted = [SILVER_EVENTS.column_names.index(name) for name in ("event_type", "event_time", "ad_id")]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE silver (event_type TEXT, event_time TIMESTAMP, ad_id TEXT)")
        connection.executemany("INSERT INTO silver VALUES (?, ?, ?)", [[row[i] for i in wanted] for row in silver])
        return connection.execute(
            "SELECT date_trunc('hour', event_time), ad_id, count(*) FROM silver WHERE event_type = 'impression' "
            "GROUP BY ALL ORDER BY ALL"
        ).fetchall()
