"""Records in quarantine, judged anew: each that fits now flows on once, and everything else stays as it is."""

import json
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from expectations.counts import covers_present
from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.contract import events
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.errors import LakeError, LakeInUseError, LedgerError, SettingsError
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.ingest import requeue as requeue_job
from spark_jobs.ingest.quarantine import in_quarantine, requeued
from spark_jobs.ingest.requeue import requeue
from spark_jobs.ingest.requeue_model import Selection
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.places import REQUEUE
from spark_jobs.queries.jobs import DEDUPLICATE_JOB
from spark_jobs.spark.conf import streaming_conf
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import append_rows
from spark_jobs.streams.service import ServiceOutcome, run_job
from spark_jobs.streams.stop_signals import StopRequest
from tests.support.foreign import SOURCE, settings_for, write_foreign
from tests.support.lakes import read_table as read_lake
from tests.support.lakes import rows_by_name
from tests.support.oracle import Expected, assert_same_accounts, assert_same_rows, expected_tables
from tests.support.quarantines import RIGHT, WRONG_TYPES, Record, put
from tests.support.runs import run_in
from tests.support.servers import wait_until
from tests.support.source_files import read_files, write_files
from tests.support.tables import read_table

pytestmark = pytest.mark.derived

_LONGEST_S = 60
_PATIENT = {"attribute": {"impression_watermark": "3h"}, "sessionize": {"watermark": "3h"}}
_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)
_FILE = "file:///in/0000.jsonl#bytes=0-9999"
_FEW_BYTES = 1024
_ADS = {**SOURCE, "topics": ["ads"]}
_NOW = settings_for(_ADS)
_THEN = settings_for({**_ADS, "event_type": WRONG_TYPES}, ingest={"max_record_bytes": _FEW_BYTES})
"""The settings under which the records came in: no click is known, and hardly any record is small enough."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


def _text(event_id: str, time: datetime = _NOON, kind: str = "clk", **fields: Any) -> str:
    record = {"v": 2, "type": kind, "id": event_id, "ts": (time - _EPOCH) // timedelta(microseconds=1), "uid": "u"}
    ad = {"campaign": "c", "creatives": [{"id": "a"}], "price": "0.5"} if kind == "imp" else {"imp": "i"}
    return json.dumps({**record, "ad": ad, **fields}, ensure_ascii=False)


_LARGE = "x" * _FEW_BYTES
_FIT = {
    "a click": Record(_text("c").encode(), _FILE, _NOON),
    "one of two that are equal": Record(_text("twin").encode(), _FILE, _NOON),
    "the other": Record(_text("twin").encode(), _FILE, _NOON),
    "with letters beyond ASCII": Record(_text("\u00e9").encode(), _FILE, _NOON),
    "too large then, with letters beyond ASCII": Record(_text("large", note=f"\u00fc{_LARGE}").encode(), _FILE, _NOON),
    "from Kafka, received before its batch": Record(_text("k").encode(), "ads/0/5", _NOON - _MINUTE, "ads"),
}
_STAY = {
    "broken JSON": Record(b'{"v": 2', _FILE, _NOON),
    "not UTF-8, with the characters of another record": Record(_text("\u00e9").encode("latin-1"), _FILE, _NOON),
    "not UTF-8, and too large": Record(_text("\u00fc", note=_LARGE).encode("latin-1"), _FILE, _NOON),
    "in the future when it was received": Record(_text("f", _NOON + _HOUR, "imp").encode(), _FILE, _NOON),
    "of a topic that no source has": Record(_text("o").encode(), "other/0/7", _NOON, "other"),
    "without a user": Record(_text("n", uid=None).encode(), _FILE, _NOON),
}


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with all these records, and one that was good from the beginning."""
    filled = open_lake(str(tmp_path_factory.mktemp("filled") / "lake"))
    good = Record(_text("good", kind="imp").encode(), _FILE, _NOON)
    put(spark, filled, 0, _NOON, [good, *_FIT.values(), *_STAY.values()], _THEN)
    return filled


@pytest.fixture
def quarantine(filled: Lake, lake: Lake) -> Lake:
    """A copy of it."""
    shutil.copytree(filled.path, lake.path)
    return lake


def test_what_fits_now_is_appended_once_and_nothing_else_changes(spark: SparkSession, quarantine: Lake) -> None:
    before, files = rows_by_name(quarantine, BRONZE_EVENTS), _files(quarantine)
    assert Counter(row["verdict"] for row in before)["ok"] == 1, "all but one must be in quarantine at first"
    tried = requeue(OpenLake.of(quarantine, _NOW, spark), Selection(), dry_run=True)
    assert tried.at is None
    assert _files(quarantine) == files, "a dry run writes nothing"

    found = requeue(OpenLake.of(quarantine, _NOW, spark), Selection())

    assert found.judged == tried.judged
    assert {(one.source, one.before, one.now): one.records for one in found.judged} == {
        (None, "malformed_json", "malformed_json"): 1,
        (None, "no_source", "no_source"): 1,
        (None, "invalid_utf8", "invalid_utf8"): 1,
        (None, "record_too_large", "invalid_utf8"): 1,
        ("ads", "event_time_in_future", "event_time_in_future"): 1,
        ("ads", "missing_event_type", "missing_user_id"): 1,
        ("ads", "missing_event_type", "ok"): 5,
        ("ads", "record_too_large", "ok"): 1,
    }
    (no_user,) = [one for one in found.judged if one.now == "missing_user_id"]
    assert no_user.reason == "user_id = coalesce($.uid, $.device.ifa): $.uid is missing, $.device.ifa is missing"
    received, added = _parted(quarantine)
    assert _same(received, before)
    assert sorted((row["raw"], row["source"]) for row in added) == sorted(
        (one.raw.decode(), one.place) for one in _FIT.values()
    )
    assert {row["event_id"] for row in added} == {"c", "twin", "\u00e9", "large", "k"}
    for row in added:
        assert (row["verdict"], row["reason"], row["source_name"]) == ("ok", None, "ads")
        assert (row["event_type"], row["impression_id"], row["event_time"]) == ("click", "i", _naive(_NOON))
        assert (row["received_time"], row["requeued_from"]) == (None, _naive(_NOON))
        assert found.at is not None
        assert row["ingest_time"] == _naive(found.at)
    again = requeue(OpenLake.of(quarantine, _NOW, spark), Selection())
    assert (again.fit, again.at) == (0, None)
    assert again.looked_at == len(_STAY)
    assert _same(_parted(quarantine)[1], added)


def test_a_time_that_was_in_the_future_fits_once_somebody_says_that_a_clock_was_wrong(
    spark: SparkSession, quarantine: Lake
) -> None:
    assert requeue(OpenLake.of(quarantine, _NOW, spark), Selection(source="ads"), dry_run=True).fit == len(_FIT)
    named = requeue(OpenLake.of(quarantine, _NOW, spark), Selection(verdicts=(events.EVENT_TIME_IN_FUTURE,)))
    assert named.fit == 1
    (added,) = _parted(quarantine)[1]
    assert (added["event_id"], added["event_time"]) == ("f", _naive(_NOON + _HOUR))


@pytest.mark.slow
def test_a_lake_of_an_older_version_is_requeued_too(spark: SparkSession, quarantine: Lake, tmp_path: Path) -> None:
    older, lacking = open_lake(str(tmp_path / "older")), ("received_time", "requeued_from", "reason")
    rows = read_table(spark, quarantine, BRONZE_EVENTS).drop(*lacking)
    rows.write.format("delta").save(older.table(BRONZE_EVENTS))
    with (
        hold_job(older, DEDUPLICATE_JOB, S3Settings(), spark=spark),
        pytest.raises(LakeInUseError, match="no column reason, received_time, requeued_from yet"),
    ):
        requeue(OpenLake.of(older, _NOW, spark), Selection())
    found = requeue(OpenLake.of(older, _NOW, spark), Selection())
    # There nothing says whether the large one was UTF-8; the other stays for the time of its batch.
    added = requeued(read_table(spark, older, BRONZE_EVENTS)).select("event_id").collect()
    assert {row["event_id"] for row in added} == {"c", "twin", "\u00e9", "k"}
    assert found.fit == 5


@pytest.mark.slow
def test_only_what_is_selected_is_looked_at(spark: SparkSession, quarantine: Lake) -> None:
    for selection, looked_at, fit in (
        (Selection(verdicts=("record_too_large", "no_source")), 3, 1),
        (Selection(source="ads", since=_NOON, until=_NOON + _MINUTE), 8, 6),
        (Selection(until=_NOON), 0, 0),
    ):
        found = requeue(OpenLake.of(quarantine, _NOW, spark), selection, dry_run=True)
        assert (found.looked_at, found.fit) == (looked_at, fit), selection


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_row_of_requeues_adds_up(seed: int, spark: SparkSession, lake: Lake) -> None:
    """Selections drawn at random, one after the other; each is held against a count of what must be left by then."""
    chance, left = random.Random(seed), list[tuple[int, str, bool, str]]()
    for batch in range(3):
        records = []
        for number in range(20):
            raw, verdict, fits = chance.choice(_KINDS)(f"{batch}-{number % 15}")
            records.append(Record(raw.encode(), _FILE, _NOON + batch * _HOUR))
            left.append((batch, verdict, fits, raw))
        put(spark, lake, batch, _NOON + batch * _HOUR, records, _THEN)
    due = Counter[str]()
    for _ in range(4):
        first, last = sorted((chance.randint(0, 3), chance.randint(0, 3)))
        verdicts = chance.choice([(), ("missing_event_type",), ("record_too_large", "malformed_json")])
        end = _NOON + last * _HOUR + _MINUTE
        found = requeue(OpenLake.of(lake, _NOW, spark), Selection(verdicts, _NOON + first * _HOUR, end))
        chosen = [one for one in left if first <= one[0] <= last and (not verdicts or one[1] in verdicts)]
        assert (found.looked_at, found.fit) == (len(chosen), sum(one[2] for one in chosen))
        due.update(one[3] for one in chosen if one[2])
        left = [one for one in left if not (one in chosen and one[2])]
        assert Counter(row["raw"] for row in _parted(lake)[1]) == due
        assert _in_quarantine(spark, lake) == Counter((one[1], one[3]) for one in left)


_KINDS: list[Callable[[str], tuple[str, str, bool]]] = [
    lambda name: (_text(name), "missing_event_type", True),
    lambda name: (_text(name, note=_LARGE), "record_too_large", True),
    lambda name: (_text(name, uid=None), "missing_event_type", False),
    lambda name: (_text(name)[:-1], "malformed_json", False),
]
"""Makes a record of a name: its text, its verdict then, and whether it fits now."""


def _in_quarantine(spark: SparkSession, lake: Lake) -> Counter[tuple[str, str]]:
    rows = in_quarantine(read_table(spark, lake, BRONZE_EVENTS)).select("verdict", "raw").collect()
    return Counter((row.verdict, row.raw) for row in rows)


@pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.slow), "after"])
def test_a_requeue_that_dies_around_its_commit_adds_all_or_nothing_and_the_next_one_the_rest(
    moment: str, spark: SparkSession, quarantine: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append_and_die(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
        if moment == "after":
            append_rows(rows, lake, table, note)
        raise RuntimeError("struck")

    monkeypatch.setattr(requeue_job, "append_rows", append_and_die)
    with pytest.raises(RuntimeError, match="struck"):
        requeue(OpenLake.of(quarantine, _NOW, spark), Selection())
    monkeypatch.undo()
    assert len(_parted(quarantine)[1]) == (len(_FIT) if moment == "after" else 0)
    requeue(OpenLake.of(quarantine, _NOW, spark), Selection())
    assert sorted(row["raw"] for row in _parted(quarantine)[1]) == sorted(one.raw.decode() for one in _FIT.values())


def _other_requeue(spark: SparkSession, lake: Lake) -> None:
    assert requeue(OpenLake.of(lake, _NOW, spark), Selection()).fit == len(_FIT)


def _other_batch(spark: SparkSession, lake: Lake) -> None:
    put(spark, lake, 1, datetime.now(UTC), [Record(_text("later").encode(), _FILE, _NOON)], _THEN)


@pytest.mark.parametrize(
    ("moment", "meanwhile"),
    [
        pytest.param("while it writes", _other_requeue, id="requeue while it writes", marks=pytest.mark.slow),
        pytest.param("before the append", _other_requeue, id="requeue before", marks=pytest.mark.slow),
        pytest.param("while it writes", _other_batch, id="batch while it writes", marks=pytest.mark.slow),
        pytest.param("before the append", _other_batch, id="batch before", marks=pytest.mark.slow),
    ],
)
def test_whatever_else_is_appended_meanwhile_each_record_is_requeued_once(
    moment: str,
    meanwhile: Callable[[SparkSession, Lake], None],
    spark: SparkSession,
    quarantine: Lake,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A lock can be lost only in an object store, if it does not answer for long.
    monkeypatch.setattr(requeue_job, "hold_job", lambda *_, **__: nullcontext(lambda: None))
    gate, times = _Gate(quarantine.path.parent), [0]

    def append_with_others(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
        times[0] += 1
        if times[0] > 1:
            append_rows(rows, lake, table, note)
        elif moment == "before the append":
            meanwhile(spark, lake)
            append_rows(rows, lake, table, note)
        else:
            with gate.opened_after(lambda: meanwhile(spark, lake)):
                append_rows(gate.slow(rows), lake, table, note)

    monkeypatch.setattr(requeue_job, "append_rows", append_with_others)
    found = requeue(OpenLake.of(quarantine, _NOW, spark), Selection())
    assert Counter(row["raw"] for row in _parted(quarantine)[1]) == Counter(one.raw.decode() for one in _FIT.values())
    assert (found.at is None) == (meanwhile is _other_requeue), "the other one was faster"
    assert requeue(OpenLake.of(quarantine, _NOW, spark), Selection()).fit == (1 if meanwhile is _other_batch else 0)


class _Gate:
    """Makes a write wait, in the middle of its rows, until something else is done."""

    def __init__(self, folder: Path) -> None:
        self._begun, self._open = folder / "begun", folder / "open"

    def slow(self, rows: DataFrame) -> DataFrame:
        """``rows``, of which none comes before the gate is open."""
        begun, opened = str(self._begun), str(self._open)

        def wait(batches: Iterator[Any]) -> Iterator[Any]:
            Path(begun).touch()
            deadline = time.monotonic() + _LONGEST_S
            while not Path(opened).exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            yield from batches

        return rows.mapInArrow(wait, rows.schema)

    @contextmanager
    def opened_after(self, act: Callable[[], None]) -> Iterator[None]:
        """Opens it once the write has begun and ``act`` is done, in a thread of its own."""
        failures: list[BaseException] = []

        def work() -> None:
            try:
                wait_until(self._begun.exists, _LONGEST_S, "the write never began")
                act()
            except BaseException as error:  # noqa: BLE001 it is raised below
                failures.append(error)
            finally:
                self._open.touch()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            thread.join()
            if failures:
                raise failures[0]


Day = tuple[Expected, Path]
"""What the events of a day give, and these events in another form."""


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("day")
    own = folder / "own"
    # Two hours, and watermarks that are longer, so that nothing is late.
    generate(GeneratorSpec(events=1000, seed=43, files=2, late=0, malformed=0, duplicates=0.05, hours=2), own)
    files = read_files(own)
    source = write_foreign(folder / "source", [[json.loads(record) for record in file] for file in files])
    return expected_tables(own, Settings(), datetime.now(UTC)), source


@pytest.mark.slow
def test_to_requeue_before_the_drain_equals_having_had_the_right_mapping_from_the_beginning(
    spark: SparkSession, day: Day, lake: Lake
) -> None:
    expected, source = day
    then, now = (settings_for(one, **_PATIENT) for one in ({**SOURCE, "event_type": WRONG_TYPES}, SOURCE))
    ledger = run_in(spark, then, lake, source, drain=False).ledger
    clicks = ledger.quarantined["missing_event_type"]
    assert clicks > 0, "the input has no click: the test shows nothing"
    assert covers_present(lake, ledger)
    assert requeue(OpenLake.of(lake, now, spark), Selection()).fit == clicks
    assert not covers_present(lake, ledger), "the ledger of the run does not count what was requeued"
    drained = run_in(spark, now, lake, source, drain=True).ledger
    for table in (SILVER_EVENTS, ATTRIBUTIONS, SESSIONS):
        assert_same_rows(read_lake(lake, table), expected.rows(table), table)
    assert covers_present(lake, drained)
    assert drained.requeued == clicks
    assert_same_accounts(drained, expected.ledger)

    rows = requeued(read_table(spark, lake, BRONZE_EVENTS)).limit(1)
    append_rows(rows, lake, BRONZE_EVENTS, CommitNote(writer="by hand", batch=0))
    with pytest.raises(LedgerError, match="do not balance"):
        run_in(spark, now, lake, source, drain=True)


@pytest.mark.slow
def test_a_running_job_takes_what_is_requeued(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    settings = settings_for({**SOURCE, "event_type": WRONG_TYPES}, job={"trigger": "asap"})
    for key, value in streaming_conf(settings).items():
        spark.conf.set(key, value)
    now = datetime.now(UTC)
    source = write_files(tmp_path / "source", [[_text("i", now, "imp").encode(), _text("k", now).encode()]])
    stop, outcomes = StopRequest(), []
    job = threading.Thread(
        target=lambda: outcomes.append(
            run_job(OpenLake.of(lake, settings, spark), DEDUPLICATE_JOB, stop, source=source)
        )
    )
    job.start()
    try:
        wait_until(lambda: _ids(lake) == {"i"}, _LONGEST_S, "the impression never came")
        assert requeue(OpenLake.of(lake, RIGHT, spark), Selection()).fit == 1
        wait_until(lambda: _ids(lake) == {"i", "k"}, _LONGEST_S, "the click never came")
    finally:
        stop.ask()
        job.join()
    assert outcomes == [ServiceOutcome.STOPPED]


def test_requeues_and_bounded_runs_keep_each_other_away(spark: SparkSession, quarantine: Lake, day: Day) -> None:
    with hold_job(quarantine, REQUEUE, S3Settings(), spark=spark):
        with pytest.raises(LakeInUseError, match="a requeue or a bounded run is at work"):
            requeue(OpenLake.of(quarantine, _NOW, spark), Selection())
        with pytest.raises(LakeInUseError, match="a requeue or a bounded run is at work"):
            run_in(spark, Settings(), quarantine, day[1])
        assert requeue(OpenLake.of(quarantine, _NOW, spark), Selection(), dry_run=True).fit == len(_FIT), "only looks"


def test_what_does_not_exist_is_named(spark: SparkSession, quarantine: Lake, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no source 'adz' in the settings; there are ads"):
        requeue(OpenLake.of(quarantine, _NOW, spark), Selection(source="adz"))
    with pytest.raises(LakeError, match="has no table bronze"):
        requeue(OpenLake.of(open_lake(str(tmp_path / "nothing")), _NOW, spark), Selection())


def _ids(lake: Lake) -> set[str]:
    return {row[SILVER_EVENTS.column_names.index("event_id")] for row in read_lake(lake, SILVER_EVENTS)}


def _files(lake: Lake) -> set[str]:
    # Spark's lock files apart: a lock is held for a moment.
    return {str(path) for path in lake.path.rglob("*") if path.is_file()}


def _parted(lake: Lake) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of bronze as received, and those that a requeue added."""
    rows = rows_by_name(lake, BRONZE_EVENTS)
    received = [row for row in rows if row["requeued_from"] is None]
    return received, [row for row in rows if row["requeued_from"] is not None]


def _same(some: Iterable[dict[str, Any]], others: Iterable[dict[str, Any]]) -> bool:
    first, second = (Counter(repr(sorted(row.items())) for row in rows) for rows in (some, others))
    return first == second


def _naive(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(tzinfo=None)
