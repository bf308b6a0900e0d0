"""A lake that starts in the middle of a day with the state up to then gives the rows of the whole day from then on.

The state is computed without Spark, from the events before the start. The rows of the whole day, too.
"""

import csv
import json
import shutil
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from expectations.validate import validate_lake
from spark_jobs.config.durations import Window
from spark_jobs.config.settings import Settings
from spark_jobs.contract.compatibility import Compatibility
from spark_jobs.contract.tables import MOVING_AVERAGES, SESSIONS, SILVER_EVENTS, USER_STATUS, Table
from spark_jobs.errors import CheckpointError, SourceError
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import RecordKind
from spark_jobs.places import INITIAL
from spark_jobs.queries.initial_state import read_initial
from spark_jobs.queries.manifest import FILES
from spark_jobs.queries.manifests import read_manifest
from spark_jobs.queries.moving_average.query import NAME as MOVING_AVERAGE
from spark_jobs.queries.places import checkpoint_in_use
from spark_jobs.queries.registry import find_query
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from spark_jobs.queries.user_status.query import NAME as USER_STATUS_QUERY
from spark_jobs.restatements.replay import replay
from spark_jobs.spark.conf import streaming_conf
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.checkpoints import preflight
from spark_jobs.streams.reset import reset
from tests.support.lakes import read_ledger, read_table
from tests.support.oracle import Expected, Row, assert_same_rows, compared_columns, expected_tables
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.source_files import read_files, write_files

if TYPE_CHECKING:
    from collections.abc import Callable

_START = datetime(2025, 1, 6, 4, 41)  # noqa: DTZ001 as DuckDB gives times
_QUERIES = (SESSIONIZE, MOVING_AVERAGE, USER_STATUS_QUERY)
# After the second file, the watermark of sessionize lies a bit after the start: some sessions that were open then
# have ended, others have not.
_FILES_END = (timedelta(minutes=14), timedelta(minutes=16), timedelta(minutes=40), timedelta(days=1))
_HOUR = timedelta(hours=1)
_LATER = ("0002.jsonl", "0003.jsonl")


@dataclass(frozen=True)
class Day:
    """A day in two parts, its rows, the settings of the second part, and how many events its sessions begin with."""

    before: Expected
    whole: Expected
    source: Path
    settings: Settings
    initial_events: int


def _time(record: bytes) -> datetime:
    return datetime.fromisoformat(json.loads(record)["event_time"]).astimezone(UTC).replace(tzinfo=None)


def _columns(table: Table, *names: str) -> tuple[int, ...]:
    return tuple(compared_columns(table).index(name) for name in names)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("day")
    spec = GeneratorSpec(events=3000, seed=29, files=2, hours=6, users=600, late=0, duplicates=0, malformed=0)
    generate(spec, folder / "all")
    records = sorted((one for file in read_files(folder / "all") for one in file), key=_time)
    early = [record for record in records if _time(record) < _START]
    later, bounds = records[len(early) :], [timedelta(), *_FILES_END]
    files = [[record for record in later if begin <= _time(record) - _START < end] for begin, end in pairwise(bounds)]
    before = expected_tables(write_files(folder / "before", [early]), Settings(), datetime.now(UTC))
    whole = expected_tables(folder / "all", Settings(), datetime.now(UTC))
    events = _open_sessions(before, folder / "sessions.parquet")
    settings = {
        "ingest": ONE_BY_ONE,
        "sessionize": {"initial_state": str(folder / "sessions.parquet")},
        "moving_average": {"initial_state": _last_values(before, folder / "values.jsonl").as_uri()},
        "user_status": {"initial_state": str(_users(before, folder / "users.csv"))},
    }
    source = write_files(folder / "source", files)
    return Day(before, whole, source, Settings.model_validate(settings), events)


def _open_sessions(before: Expected, file: Path) -> int:
    user, end, by, found = _columns(SESSIONS, "user_id", "session_end", "ended_by", "events")
    is_open = [
        row for row in before.sessions if row[by] == "timeout" and row[end] + Settings().sessionize.gap >= _START
    ]
    rows = [
        {"user_id": row[user], "event_time": time, "event_type": event_type, "event_id": event_id, "is_last": False}
        for row in is_open
        for time, event_type, event_id in row[found]
    ]
    pq.write_table(pa.Table.from_pylist(rows), file)
    return len(rows)


def _last_values(before: Expected, file: Path) -> Path:
    """All values of the campaigns that have not timed out: the query must find the last ones itself."""
    key, time, value = _columns(SILVER_EVENTS, "campaign_id", "event_time", "cost_micros")
    series = defaultdict(list)
    for row in before.silver:
        if row[key] is not None:
            series[row[key]].append((row[time], row[value]))
    timeout = Settings().moving_average.timeout
    lines = [
        {"key": campaign, "measure": "cost_micros", "event_time": at.isoformat(), "value": cost}
        for campaign, values in series.items()
        if max(values)[0] + timeout >= _START
        for at, cost in values
    ]
    assert lines
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def _users(before: Expected, file: Path) -> Path:
    user, status, since = _columns(USER_STATUS, "user_id", "status", "since")
    last: dict[str, datetime] = {}
    by_user, at = _columns(SILVER_EVENTS, "user_id", "event_time")
    for row in before.silver:
        last[row[by_user]] = max(row[at], last.get(row[by_user], row[at]))
    found = {}
    for row in sorted(before.user_status, key=lambda row: (row[since], row[status] == "active")):
        if row[status] != "inactive":
            found[row[user]] = row[status]
    idle = Settings().user_status.idle_after
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(["last_event_time", "user_id", "status"])
        writer.writerows([f"{last[u]}Z", u, found[u]] for u in found if last[u] + idle >= _START)
    assert {found[user] for user in found if last[user] + idle >= _START} == {"online", "active"}
    return file


def _of_second_part(day: Day) -> dict[Table, list[Row]]:
    """The rows of the whole day that a lake must have that starts with the state of its middle."""
    last, end = _columns(MOVING_AVERAGES, "is_last", "window_end")
    (since,) = _columns(USER_STATUS, "since")
    session_end, by = _columns(SESSIONS, "session_end", "ended_by")
    timeout, gap = Settings().moving_average.timeout, Settings().sessionize.gap
    is_due: dict[Table, Callable[[Row], bool]] = {
        MOVING_AVERAGES: lambda row: row[end] + (timeout if row[last] else timedelta()) >= _START,
        USER_STATUS: lambda row: row[since] >= _START,
        SESSIONS: lambda row: row[session_end] + (gap if row[by] == "timeout" else timedelta()) >= _START,
    }
    return {table: [row for row in day.whole.rows(table) if due(row)] for table, due in is_due.items()}


def _assert_as_expected(day: Day, lake: Lake) -> None:
    for table, rows in _of_second_part(day).items():
        assert_same_rows(read_table(lake, table), rows, table)
    assert read_ledger(lake).rows(RecordKind.INITIAL, account="sessionize") == day.initial_events > 0


@pytest.fixture(scope="module")
def half_way(day: Day, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Path]:
    """A lake that has taken the initial states, and the first files; and the folder of these."""
    folder = tmp_path_factory.mktemp("half")
    source = Path(shutil.copytree(day.source, folder / "source", ignore=shutil.ignore_patterns(*_LATER)))
    lake = open_lake(str(folder / "lake"))
    run_in(spark, day.settings, lake, source, drain=False, measure=True)
    assert read_table(lake, SESSIONS)
    return lake, source


@pytest.mark.slow
def test_the_state_is_taken_once_and_the_rows_are_those_of_the_whole_day(
    day: Day, half_way: tuple[Lake, Path], spark: SparkSession, tmp_path: Path
) -> None:
    lake = open_lake(str(shutil.copytree(half_way[0].path, tmp_path / "lake")))
    changed = {name: {"initial_state": "/another/table"} for name in _QUERIES}
    settings = Settings.model_validate({"ingest": ONE_BY_ONE, **changed})
    found = preflight(lake, settings, _QUERIES, source=FILES)
    assert [(one.query, one.verdict) for one in found] == [(name, Compatibility.IGNORED) for name in _QUERIES]
    assert all("first start only" in one.why for one in found)
    # Were the setting read again, it would name nothing.
    _finish(spark, settings, lake, day, half_way[1])
    _assert_as_expected(day, lake)
    result = validate_lake(OpenLake.of(lake, settings, spark))
    assert result.succeeded, result.failures
    around_start = Window(*((_START + hours).replace(tzinfo=UTC) for hours in (-_HOUR, _HOUR)))
    again = replay(OpenLake.of(lake, settings, spark), around_start).report
    assert list(again.tables) == ["attributions", "sessions", "campaign_stats"]
    assert again.tables[SESSIONS.name].same > 0 == again.unknown


@pytest.mark.slow
def test_a_reset_keeps_the_initial_state(
    day: Day, half_way: tuple[Lake, Path], spark: SparkSession, tmp_path: Path
) -> None:
    lake = open_lake(str(shutil.copytree(half_way[0].path, tmp_path / "lake")))
    for key, value in streaming_conf(day.settings).items():
        spark.conf.set(key, value)
    for name in _QUERIES:
        began_with = _initial_state(lake, name)
        assert reset(OpenLake.of(lake, day.settings, spark), name).version == 2
        assert _initial_state(lake, name) == began_with != ""
    _finish(spark, day.settings, lake, day, half_way[1])
    _assert_as_expected(day, lake)


def _initial_state(lake: Lake, query: str) -> str:
    manifest = read_manifest(lake, query, checkpoint_in_use(lake, query))
    assert manifest
    return manifest.initial_state


def _finish(spark: SparkSession, settings: Settings, lake: Lake, day: Day, source: Path) -> None:
    """Runs the other files of the day; ``source`` is the folder of the first ones."""
    for name in _LATER:
        shutil.copy2(day.source / name, source)
    run_in(spark, settings, lake, source, measure=True)


@pytest.mark.slow
def test_a_reset_without_the_copy_is_refused(
    day: Day, half_way: tuple[Lake, Path], spark: SparkSession, tmp_path: Path
) -> None:
    lake = open_lake(str(shutil.copytree(half_way[0].path, tmp_path / "lake")))
    shutil.rmtree(lake.path / INITIAL)
    with pytest.raises(CheckpointError, match=r"sessionize began with an initial state, .*_initial/sessionize is gone"):
        reset(OpenLake.of(lake, day.settings, spark), SESSIONIZE)


def test_a_missing_file_ends_the_run_before_it_begins(day: Day, spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    settings = Settings.model_validate({"user_status": {"initial_state": str(tmp_path / "none.csv")}})
    with pytest.raises(SourceError, match=r"initial state .*none\.csv cannot be read: .*PATH_NOT_FOUND"):
        run_in(spark, settings, lake, day.source, measure=True)
    assert not lake.has(SILVER_EVENTS)


_USERS = "user_id,status,last_event_time\n"


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        pytest.param("u.csv", "user_id,status\nu1,online\n", "has no column last_event_time; it has", id="column"),
        pytest.param("u.csv", f"{_USERS}u1,away,2025-01-06\n", "status is away in 1 row.*online, active", id="status"),
        pytest.param("u.csv", f"{_USERS}u1,online,\n", "last_event_time is null in 1 row", id="null"),
        pytest.param("u.csv", f"{_USERS}u1,online,soon\n", "last_event_time is soon in 1 row", id="no-time"),
        pytest.param(
            "u.jsonl",
            '{"user_id": "u1", "status": "online", "last_event_time": 1736121600000000}\n',
            "last_event_time is 1736121600000000 in 1 row",
            id="number-for-a-time",
        ),
        pytest.param("u.jsonl", '{"user_id": "u1", \n', "cannot be read", id="broken-json"),
        pytest.param("u.txt", "u1", "cannot be read: .*Not a directory", id="neither-file-nor-table"),
        pytest.param("u/1.txt", "u1", r"is neither the folder of a Delta table nor named \.parquet", id="no-table"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    name: str, text: str, why: str, spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    with pytest.raises(SourceError, match=why):
        _read(spark, file if file.parent == tmp_path else file.parent)


def test_a_delta_table_is_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = [("u1", "online", datetime(2025, 1, 6, 1, 2, 3, 456789, tzinfo=UTC))]
    table = spark.createDataFrame(rows, "user_id STRING, status STRING, last_event_time TIMESTAMP")
    table.write.format("delta").save(str(tmp_path / "users"))
    assert _read(spark, tmp_path / "users") == [("u1", "online", 1736125323456789)]


def _read(spark: SparkSession, path: Path) -> list[Row]:
    what = find_query(USER_STATUS_QUERY).initial_state
    assert what
    rows = read_initial(spark, path.as_uri(), what.columns, what.choices(Settings()))
    return list(map(tuple, rows.selectExpr("user_id", "status", "unix_micros(last_event_time)").collect()))
