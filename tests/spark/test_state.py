"""Reading a query's state yields the rows the query reports."""

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from spark_jobs.cli import state
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.choices import JoinState
from spark_jobs.config.settings import Settings
from spark_jobs.errors import CheckpointError, SettingsError
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CHECKPOINTS
from spark_jobs.queries.places import checkpoint_key
from spark_jobs.queries.registry import JOB_OF_QUERY
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.reports import read_report
from spark_jobs.streams.state_reader import find_stores, read_state
from tests.support.equality import generate_source
from tests.support.runs import ONE_BY_ONE, run_in

_STATEFUL = [query for query in JOB_OF_QUERY if query != INGEST]


@pytest.fixture(scope="module", params=[JoinState.BY_TIME, pytest.param(JoinState.BY_KEY, marks=pytest.mark.slow)])
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Lake:
    """A lake in the middle of a day, for each format of join state; state rows were not counted at first."""
    folder = tmp_path_factory.mktemp("state")
    source = generate_source(folder / "source", events=1000, seed=31, files=2)
    first, _second = sorted(source.iterdir())
    own = open_lake(str(folder / "lake"))
    settings = Settings.model_validate({"ingest": ONE_BY_ONE, "spark": {"join_state": request.param}})
    arrived = folder / "arrived"
    arrived.mkdir()
    shutil.copy2(first, arrived)
    run_in(spark, settings, own, arrived, drain=False, measure=True)
    rows = {query: report.state_rows for query in _STATEFUL if (report := read_report(own, query))}
    assert [query for query in _STATEFUL if rows[query] is None] == ["deduplicate", "attribute", "sessionize"]
    for file in source.iterdir():
        shutil.copy2(file, arrived)
    run_in(spark, settings, own, arrived, drain=False, measure=True, count_state=True)
    return own


def test_every_query_has_the_state_rows_it_reports_and_nothing_changes(spark: SparkSession, lake: Lake) -> None:
    before = {file.key: file.bytes for file in lake.files.walk(CHECKPOINTS)}
    for query in _STATEFUL:
        read = sum(
            read_state(OpenLake.of(lake, Settings(), spark), store).count() for store in find_stores(lake, [query])
        )
        report = read_report(lake, query)
        assert report is not None
        assert read == report.state_rows, query
        assert read > 0, query
    assert {file.key: file.bytes for file in lake.files.walk(CHECKPOINTS)} == before


@pytest.mark.parametrize("query", _STATEFUL)
def test_the_oldest_entry_is_not_older_than_the_day_nor_newer_than_it(
    query: str, spark: SparkSession, lake: Lake
) -> None:
    for store in find_stores(lake, [query]):
        rows = read_state(OpenLake.of(lake, Settings(), spark), store)
        (oldest,) = rows.agg(F.date_format(F.min("oldest"), "yyyy-MM-dd")).first() or (None,)
        assert oldest in ("2025-01-05", "2025-01-06"), store


def test_a_query_that_has_not_run_has_no_state(tmp_path: Path) -> None:
    assert find_stores(open_lake(str(tmp_path / "lake")), ["attribute"]) == []


@pytest.mark.parametrize("content", [b"", b"v1", b"v1\n{}", b'v1\n{"operatorInfo":[]}'])
def test_an_operator_whose_description_is_damaged_is_an_error(content: bytes, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    checkpoint = checkpoint_key("sessionize", 1)
    lake.files.write(f"{checkpoint}/commits/0", b"v1")
    lake.files.write(f"{checkpoint}/state/0/_metadata/metadata", content)
    with pytest.raises(CheckpointError, match="does not describe an operator"):
        find_stores(lake, ["sessionize"])


def test_the_commands_print_sizes_keys_and_entries(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(record=True, width=200)
    monkeypatch.setattr(state, "_open", lambda *_: _Opened(console, OpenLake.of(lake, Settings(), spark)))
    state.summary(lake.shown(), [], None)
    printed = console.export_text(clear=True)
    assert re.search(r"attribute +0 symmetricHashJoin left +\d+ +\d+ ", printed)
    assert all(query in printed for query in _STATEFUL)
    state.keys("user_status", lake.shown(), 3, None)
    assert console.export_text(clear=True).count('{"user_id":"u-') == 3
    state.read("user_status", lake.shown(), "key.user_id = 'u-000001'", 5, None)
    assert console.export_text().count('{"user_id":"u-000001"}') == 1
    with pytest.raises(SettingsError, match="no query 'ingest' keeps state; those that do: deduplicate"):
        state.keys("ingest", lake.shown(), 3, None)


@pytest.mark.slow
def test_an_empty_state_is_shown_as_zeros_with_all_columns_where_there_is_no_terminal(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = generate_source(tmp_path / "source", events=300, seed=32, files=1)
    lake = open_lake(str(tmp_path / "a lake in a folder whose name is longer than the lines of most terminals"))
    run_in(spark, Settings(), lake, source, measure=True)
    console = terminal(is_uncut=True)
    monkeypatch.setattr(state, "_open", lambda *_: _Opened(console, OpenLake.of(lake, Settings(), spark)))
    state.summary(lake.shown(), [], None)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    (heading,) = (line for line in lines if line[:2] == ["query", "operator"])
    assert heading[-2:] == ["oldest", "(UTC)"]
    rows = {line[0]: line for line in lines if line and line[0] in _STATEFUL}
    assert rows.keys() == set(_STATEFUL)
    for query in ("attribute", "sessionize", "moving_average", "user_status"):
        assert rows[query][-4:] == ["0", "0.0", "none", "0%"], rows[query]


class _Opened:
    """Passes the open lake to the commands."""

    def __init__(self, *opened: object) -> None:
        self._opened = opened

    def __enter__(self) -> tuple[object, ...]:
        return self._opened

    def __exit__(self, *_: object) -> None:
        pass
