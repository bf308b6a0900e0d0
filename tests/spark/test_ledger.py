"""The ledger, updated while a lake is written: it balances each time, and the end equals independent counts."""

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import VISIT_TYPES
from spark_jobs.contract.tables import ATTRIBUTIONS, CAMPAIGN_STATS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.errors import LakeError
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import commits
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger import advance as advancing
from spark_jobs.ledger.advance import advance
from spark_jobs.ledger.ledger_files import Row, last_ledger, rows_of
from spark_jobs.ledger.model import ALARMS, DUPLICATES, LATE_KINDS, LEDGERS, RECORDS, Ledger, QueryPosition, RecordKind
from spark_jobs.ledger.update import begin_now, update_ledger
from spark_jobs.queries.registry import TABLES
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.conf import streaming_conf
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.bounded_run import run
from spark_jobs.streams.progress import ProgressFiles
from tests.support.lakes import read_ledger, read_table
from tests.support.oracle import Accounts, expected_tables
from tests.support.runs import ONE_BY_ONE
from tests.support.source_files import read_files

_SOURCES = ("mobile", "web")
_FILES = 8
pytestmark = pytest.mark.slow


@dataclass
class _Day:
    """A day of two sources, run file by file and drained, with the states of the ledger meanwhile."""

    lake: Lake
    settings: Settings
    files: list[Path]
    ledgers: list[tuple[Ledger, list[Row]]] = field(default_factory=list)
    late: dict[str, int] = field(default_factory=dict)
    """By query, the rows that Spark says it dropped as late."""

    @property
    def last(self) -> Ledger:
        return self.ledgers[-1][0]

    def copy(self, place: Path) -> Lake:
        """The lake before any repair, at another place."""
        shutil.copytree(self.lake.path, place)
        return open_lake(str(place))


def _now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Day:
    folder = tmp_path_factory.mktemp("ledger")
    spec = GeneratorSpec(
        events=2500, seed=59, files=_FILES, late=0.05, duplicates=0.05, malformed=0.01, conversions=0.5
    )
    generate(spec, folder / "all")
    files = sorted((folder / "all").glob("*.jsonl"))
    sources: dict[str, Any] = {name: {"format": "adloom", "path": str(folder / name)} for name in _SOURCES}
    for number, file in enumerate(files):
        place = folder / _SOURCES[number % len(_SOURCES)] / file.name
        place.parent.mkdir(exist_ok=True)
        shutil.copy2(file, place)
        os.utime(place, (1_700_000_000 + number, 1_700_000_000 + number))
    settings = Settings.model_validate({"ingest": ONE_BY_ONE, "source": sources})
    found = _Day(open_lake(str(folder / "lake")), settings, files)

    seen: list[int | None] = []

    def update(progress: ProgressFiles) -> None:
        versions = [found.lake.newest_commit(table.path) for table in TABLES]
        if found.lake.has(SILVER_EVENTS) and versions != seen:
            seen[:] = versions
            ledger = update_ledger(found.lake, settings)
            found.ledgers.append((ledger, rows_of(found.lake, ledger)))
        found.late.update({report.query: report.late_rows for report in progress.reports()})

    for key, value in streaming_conf(settings).items():
        spark.conf.set(key, value)
    run(OpenLake.of(found.lake, settings, spark), None, drain=True, measure=True, on_progress=update)
    return found


def _expected(day: _Day) -> Accounts:
    batches = read_files(day.files[0].parent)
    return expected_tables(day.files[0].parent, day.settings, _now(), batches=batches).ledger


def test_each_update_balances_to_the_row(day: _Day) -> None:
    stages = {(ledger.bronze, ledger.silver) for ledger, _ in day.ledgers}
    assert len(stages) >= 4, "hardly an update came between two batches: the test shows nothing"
    assert any(ledger.rows(RecordKind.PENDING, account="sessionize") for ledger, _ in day.ledgers)
    for ledger, _ in day.ledgers:
        assert ledger.balances, (ledger.number, ledger.alarms, ledger.received_difference, ledger.ok_difference)


def test_each_hour_of_each_source_balances(day: _Day) -> None:
    for _, rows in day.ledgers:
        sums: dict[tuple[int | None, str | None], Counter[str]] = defaultdict(Counter)
        for row in rows:
            if row.account == RECORDS:
                sums[row.hour, row.source][row.kind] += row.rows
        for place, counts in sums.items():
            assert counts[RecordKind.RECEIVED] == counts[RecordKind.OK] + counts[RecordKind.QUARANTINED], place
            fates = (RecordKind.KEPT, *DUPLICATES, *LATE_KINDS, RecordKind.UNACCOUNTED)
            assert counts[RecordKind.OK] == sum(counts[kind] for kind in fates), place


def test_each_update_has_received_what_its_files_hold(day: _Day) -> None:
    """A batch is a file, and its records belong to the source of its folder."""
    sizes = [len(records) for records in read_files(day.files[0].parent)]
    for ledger, rows in day.ledgers:
        there = sizes[: ledger.bronze + 1]
        assert ledger.rows(RecordKind.RECEIVED) == sum(there)
        received: Counter[str | None] = Counter()
        for row in rows:
            received[row.source] += row.rows if row.kind == RecordKind.RECEIVED else 0
        # A record that no source can read belongs to none.
        assert received.total() == sum(there)
        for number, name in enumerate(_SOURCES):
            assert received[name] <= sum(there[number :: len(_SOURCES)]) <= received[name] + received[None]


def test_each_update_has_emitted_what_is_in_gold(day: _Day) -> None:
    """Counted by DuckDB from the versions of gold that the ledger covers."""
    counted = 0
    for ledger, _ in day.ledgers:
        position = ledger.positions.get("sessionize", QueryPosition())
        files = _files_up_to(day.lake, SESSIONS, position.version)
        if files:
            counts = f"SELECT sum(event_count)::BIGINT FROM read_parquet({files})"
            ((found,),) = duckdb.execute(counts).fetchall()
            unread = _kept_after(day.lake, position.silver, ledger.silver)
            open_now = ledger.rows(RecordKind.PENDING, RecordKind.LATE, account="sessionize") - unread
            assert ledger.rows(RecordKind.READ, account="sessionize") - open_now == found
            counted += bool(found)
    assert counted >= 2


def test_the_end_equals_the_ledger_of_the_run(day: _Day) -> None:
    assert read_ledger(day.lake).figures == day.last.figures
    assert day.last.rows(RecordKind.LATE, account="sessionize") > 0
    assert not any(day.last.rows(RecordKind.PENDING, account=name) for name in day.last.accounts)


def test_the_end_equals_an_independent_count(day: _Day) -> None:
    expected = _expected(day)
    assert expected.late > 0
    assert expected.duplicates > 0
    ours = (
        day.last.rows(RecordKind.RECEIVED),
        day.last.rows(RecordKind.OK),
        day.last.rows(RecordKind.KEPT),
        day.last.quarantined,
    )
    assert ours == (expected.received, expected.ok, expected.kept, expected.quarantined)
    # No repair has looked yet, so some that came too late may be copies.
    assert day.last.rows(*DUPLICATES) + day.last.late == expected.duplicates + expected.late
    assert day.last.late >= expected.late


def test_late_in_measure_is_what_spark_dropped(day: _Day) -> None:
    assert day.late["user_status"] > 0
    assert day.last.rows(RecordKind.LATE, account="user_status") == day.late["user_status"]


@pytest.mark.parametrize("rows_at_once", [1, 10**9], ids=["batch by batch", "in one step"])
def test_counted_from_the_start_it_is_the_same(rows_at_once: int, day: _Day, tmp_path: Path) -> None:
    lake = day.copy(tmp_path / "lake")
    ledgers = list(advance(day.settings, lake, _now, restart=True, rows_at_once=rows_at_once))
    assert all(ledger.balances for ledger in ledgers)
    assert (len(ledgers) > _FILES - 2) == (rows_at_once == 1)
    assert ledgers[-1].figures == day.last.figures
    assert rows_of(lake, ledgers[-1]) == day.ledgers[-1][1]


def test_an_update_that_is_killed_leaves_the_last_one(
    day: _Day, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = day.copy(tmp_path / "lake")
    shutil.rmtree(tmp_path / "lake" / LEDGERS)
    steps = advance(day.settings, lake, _now, rows_at_once=1)
    before = next(steps)
    with monkeypatch.context() as patched:

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        patched.setattr(advancing, "save_ledger", die)
        with pytest.raises(KeyboardInterrupt):
            next(steps)
    assert last_ledger(lake) == before
    *_, after = advance(day.settings, lake, _now)
    assert after.figures == day.last.figures
    *_, after = advance(day.settings, lake, _now)
    named = {f"{lake.path}/{key}" for key in after.keys}
    written = {str(path) for path in (lake.path / LEDGERS).rglob("*.parquet")}
    assert named <= written
    assert len(written - named) <= 8, "the files of the update that was killed, and of older ones, are deleted"


def test_after_a_repair_each_late_record_has_its_fate(day: _Day, spark: SparkSession, tmp_path: Path) -> None:
    lake = day.copy(tmp_path / "lake")
    plan = repair(OpenLake.of(lake, day.settings, spark))
    assert plan
    assert plan.late_events
    ledger = update_ledger(lake, day.settings)
    assert ledger.balances
    assert (
        ledger.rows(RecordKind.LATE_AWAITING),
        ledger.rows(RecordKind.LATE_PENDING),
        ledger.rows(RecordKind.LATE_FROZEN),
    ) == (0, 0, 0)
    assert ledger.rows(RecordKind.LATE_EXPIRED) == plan.expired
    expected = _expected(day)
    assert (ledger.late, ledger.duplicates) == (expected.late, expected.duplicates)
    *_, again = advance(day.settings, lake, _now, restart=True, rows_at_once=1)
    assert again.figures == ledger.figures


def test_what_others_delete_is_unaccounted(day: _Day, spark: SparkSession, tmp_path: Path) -> None:
    lake = day.copy(tmp_path / "lake")
    (event,) = (row for row in read_table(lake, SILVER_EVENTS)[:1])
    (session,) = (row for row in read_table(lake, SESSIONS)[:1])
    spark.sql(
        f"DELETE FROM delta.`{lake.table(SILVER_EVENTS)}` WHERE event_type = '{event[0]}' AND event_id = '{event[1]}'"
    )
    spark.sql(f"DELETE FROM delta.`{lake.table(SESSIONS)}` WHERE session_id = '{session[0]}'")
    ledger = update_ledger(lake, day.settings)
    events = session[SESSIONS.column_names.index("event_count")]
    assert {(one.account, one.kind, one.rows) for one in ledger.alarms} == {
        (RECORDS, RecordKind.UNACCOUNTED, 1),
        ("sessionize", RecordKind.UNACCOUNTED, events),
    }
    assert not ledger.balances
    assert ledger.ok_difference == 0


def _without_last(rows: pa.Table) -> pa.Table:
    return rows.slice(0, rows.num_rows - 1)


def _with_last_twice(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, rows.slice(rows.num_rows - 1)])


def _one_less(rows: pa.Table) -> pa.Table:
    counts = rows["impressions"].to_pylist()
    counts[0] -= 1
    return rows.set_column(rows.column_names.index("impressions"), "impressions", pa.array(counts, pa.int64()))


@pytest.mark.parametrize(
    ("table", "change", "account", "kind"),
    [
        (SILVER_EVENTS, _without_last, RECORDS, RecordKind.UNACCOUNTED),
        (SILVER_EVENTS, _with_last_twice, RECORDS, RecordKind.SURPLUS),
        (ATTRIBUTIONS, _without_last, "attribute", RecordKind.UNACCOUNTED),
        (SESSIONS, _without_last, "sessionize", RecordKind.UNACCOUNTED),
        (SESSIONS, _with_last_twice, "sessionize", RecordKind.SURPLUS),
        (CAMPAIGN_STATS, _one_less, "campaign_stats", RecordKind.UNACCOUNTED),
    ],
    ids=lambda value: value.name if isinstance(value, Table) else getattr(value, "__name__", str(value)).strip("_"),
)
def test_a_row_that_a_query_lost_or_wrote_twice_is_found(
    table: Table, change: Callable[[pa.Table], pa.Table], account: str, kind: RecordKind, day: _Day, tmp_path: Path
) -> None:
    """The file has other rows than the query computed: as if the query had been wrong."""
    lake = day.copy(tmp_path / "lake")
    file = _first_file(lake, table)
    rows = pq.read_table(pa.BufferReader(file.read_bytes()), coerce_int96_timestamp_unit="us")
    pq.write_table(change(rows), file)
    *_, ledger = advance(day.settings, lake, _now, restart=True)
    found = {(one.account, one.kind): one.rows for one in ledger.alarms}
    assert found.get((account, kind), 0) >= 1
    if account == RECORDS:
        assert found[account, kind] == 1
    assert not ledger.balances
    assert all(one in ALARMS for _, one in found)


def test_a_ledger_can_begin_with_what_comes_from_now_on(day: _Day, tmp_path: Path) -> None:
    lake = day.copy(tmp_path / "lake")
    shutil.rmtree(lake.path / LEDGERS)
    first = lake.path / SILVER_EVENTS.path / "_delta_log" / f"{0:020}.json"
    first.unlink()
    with pytest.raises(LakeError, match="--from-now"):
        list(advance(day.settings, lake, _now))
    begun = begin_now(day.settings, lake, _now(), lambda: None)
    assert begun.balances
    *_, ledger = advance(day.settings, lake, _now)
    assert (ledger.balances, ledger.rows(RecordKind.RECEIVED), ledger.silver) == (True, 0, begun.silver)


def _files_up_to(lake: Lake, table: Table, version: int) -> list[str]:
    return [
        str(lake.path / file.key)
        for change in commits(lake, table, 0, version)
        for file in change.added
        if file.rows != 0
    ]


def _kept_after(lake: Lake, read: int, silver: int) -> int:
    """The events of sessions in silver after version ``read``, up to ``silver``."""
    return sum(
        file.rows or 0
        for change in commits(lake, SILVER_EVENTS, read + 1, silver)
        for file in change.added
        if file.partition["event_type"] in VISIT_TYPES
    )


def _first_file(lake: Lake, table: Table) -> Path:
    """A file of the first commit that holds rows of events."""
    for change in commits(lake, table, 0, lake.newest_commit(table.path) or 0):
        for file in change.added:
            if file.rows and file.partition.get("event_type") != "heartbeat":
                return lake.path / file.key
    raise AssertionError(f"{table.path} has no rows")
