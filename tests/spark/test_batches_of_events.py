"""Records with several events, through all tables: the same gold as of the same events one by one."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, USER_STATUS
from spark_jobs.ingest.requeue import requeue
from spark_jobs.ingest.requeue_model import Selection
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import RecordKind
from spark_jobs.ledger.update import balance
from spark_jobs.spark.open_lake import OpenLake
from tests.support.equality import good_day
from tests.support.foreign import SOURCE, first_numbers, foreign, settings_for
from tests.support.lakes import read_ledger, read_table, rows_by_name
from tests.support.lateness import PATIENT
from tests.support.oracle import Expected, assert_same_rows
from tests.support.runs import run_in
from tests.support.source_files import write_files

pytestmark = pytest.mark.derived

_EACH = settings_for({**SOURCE, "each": "$.batch"}, **PATIENT)
_WHOLE = settings_for(SOURCE, **PATIENT)
_NOISE: list[object] = [
    {"batch": []},
    {"v": 2},
    {"batch": [{"v": 2, "type": "clk", "id": "no time", "uid": "u"}, {"v": 1}, 7]},
]
_VERDICTS = {"no_source": 3, "missing_event_time": 1, "not_an_object": 1}
Day = tuple[Expected, Path, int, int]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    """What good events give, the folder of records that hold 1 to 20 of them, and how many of both there are."""
    folder = tmp_path_factory.mktemp("day")
    expected, files = good_day(folder, events=1500, seed=40)
    numbers = first_numbers(files)
    batches = [
        [json.dumps({"batch": batch}).encode() for batch in _batches(events, numbers, random.Random(40))]
        for events in files
    ]
    records = sum(map(len, batches))
    batches[0] += [json.dumps(one).encode() for one in _NOISE]
    return expected, write_files(folder / "batches", batches), sum(map(len, files)), records


def _batches(
    events: list[dict[str, Any]], numbers: dict[tuple[str, str], int], rng: random.Random
) -> Iterator[list[dict[str, Any]]]:
    left = list(events)
    while left:
        size = rng.randint(1, 20)
        yield [foreign(event, numbers[event["event_type"], event["event_id"]]) for event in left[:size]]
        left = left[size:]


def _assert_gold(lake: Lake, expected: Expected) -> None:
    for table in (SILVER_EVENTS, ATTRIBUTIONS, SESSIONS, USER_STATUS):
        assert_same_rows(read_table(lake, table), expected.rows(table), table)


@pytest.mark.slow
def test_gold_equals_that_of_the_events_one_by_one(spark: SparkSession, day: Day, tmp_path: Path) -> None:
    expected, source, events, records = day
    lake = open_lake(str(tmp_path / "lake"))
    run_in(spark, _EACH, lake, source, measure=True)
    _assert_gold(lake, expected)
    ledger, rows = read_ledger(lake), rows_by_name(lake, BRONZE_EVENTS)
    assert (ledger.received, ledger.records) == (events + 5, records + 3)
    assert ledger.quarantined == Counter(row["verdict"] for row in rows if row["verdict"] != "ok") == _VERDICTS
    assert sum(row["raw"] is not None for row in rows) == records + 3 + 2, "once a record, and in quarantine"
    again = requeue(OpenLake.of(lake, _EACH, spark), Selection())
    assert (again.looked_at, again.fit) == (5, 0)


def test_records_that_were_whole_are_taken_apart_once_all_in_them_fits(
    spark: SparkSession, day: Day, tmp_path: Path
) -> None:
    expected, source, events, records = day
    lake = open_lake(str(tmp_path / "lake"))
    run_in(spark, _WHOLE, lake, source, measure=False)
    assert (read_ledger(lake).received, read_ledger(lake).ok) == (records + 3, 0)
    found = requeue(OpenLake.of(lake, _EACH, spark), Selection())
    assert (found.looked_at, found.fit) == (events + 3, events)
    assert requeue(OpenLake.of(lake, _EACH, spark), Selection()).fit == 0
    run_in(spark, _EACH, lake, source, measure=True)
    _assert_gold(lake, expected)
    ledger = balance(_EACH, lake, drained=False)
    assert ledger.balances, ledger.wrong
    assert (ledger.received, ledger.records, ledger.rows(RecordKind.REQUEUED)) == (events + 3, records + 3, records)


_GROUPS = settings_for({**SOURCE, "each": "$.groups"}, **PATIENT)
_WITHIN = settings_for({**SOURCE, "each": "$.groups[*].batch"}, **PATIENT)


@pytest.fixture(scope="module")
def groups(day: Day) -> tuple[Path, int]:
    """The same records with each list of events in several groups, and how many groups there are."""
    _, source, _, _ = day
    rng, number, files = random.Random(41), 0, list[list[bytes]]()
    for file in sorted(source.iterdir()):
        records = []
        for batch in (json.loads(line)["batch"] for line in file.read_text().splitlines() if '"batch": [{"v"' in line):
            if any("id" not in one or one["id"] == "no time" for one in batch if isinstance(one, dict)):
                continue
            cuts = sorted({0, *(rng.randrange(len(batch)) for _ in range(3))})
            cut = [batch[start:end] for start, end in zip(cuts, [*cuts[1:], None], strict=True)]
            records.append(json.dumps({"groups": [{"batch": part} for part in cut]}).encode())
            number += len(cut)
        files.append(records)
    return write_files(source.with_name("groups"), files), number


@pytest.mark.slow
def test_elements_that_were_whole_are_taken_apart(
    spark: SparkSession, day: Day, groups: tuple[Path, int], tmp_path: Path
) -> None:
    expected, _, events, records = day
    lake = open_lake(str(tmp_path / "lake"))
    run_in(spark, _GROUPS, lake, groups[0], measure=False)
    assert (read_ledger(lake).received, read_ledger(lake).ok) == (groups[1], 0)
    assert requeue(OpenLake.of(lake, _WITHIN, spark), Selection()).fit == events
    assert requeue(OpenLake.of(lake, _WITHIN, spark), Selection()).fit == 0
    run_in(spark, _WITHIN, lake, groups[0], measure=True)
    _assert_gold(lake, expected)
    ledger = balance(_WITHIN, lake, drained=False)
    assert ledger.balances, ledger.wrong
    assert (ledger.received, ledger.records, ledger.rows(RecordKind.REQUEUED)) == (events, records, groups[1])
