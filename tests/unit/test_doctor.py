"""`adloom doctor`: each thing that can be wrong is found, named, and comes with what to do."""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from spark_jobs import __version__
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.contract.tables import SESSIONS
from spark_jobs.errors import LakeError, SourceError
from spark_jobs.ingest import samples
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.records import write_record
from spark_jobs.lake.store.files import json_bytes
from spark_jobs.operations.doctor import CHECKS, Finding, Severity, Subject, examine, findings_of
from spark_jobs.operations.doctor import ledger as ledger_check
from spark_jobs.operations.doctor import machine as machine_check
from spark_jobs.queries.manifest import FILES, KAFKA
from spark_jobs.queries.manifests import new_manifest, write_manifest
from spark_jobs.queries.places import checkpoint_key, progress_key
from spark_jobs.streams.desired_state import DesiredState, RunState, desired_key
from spark_jobs.streams.reports import DriverReport, QueryReport, QueryState, driver_report_key
from tests.unit.test_cli import adloom

_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
_LOG = f"{SESSIONS.path}/_delta_log"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = open_lake(str(tmp_path / "lake"))
    found.files.write("notes.txt", b"a lake")
    return found


def _found(lake: Lake, check: str, settings: Settings | None = None) -> list[Finding]:
    (chosen,) = [one for one in CHECKS if one.name == check]
    return list(findings_of(chosen, Subject(lake, settings or Settings(), _NOW)))


def _worst(findings: list[Finding]) -> Finding:
    (worst,) = [one for one in findings if one.severity is not Severity.FINE]
    return worst


def _report(lake: Lake, **changes: Any) -> None:
    given = {"started_at": _NOW - timedelta(hours=1), "updated_at": _NOW - timedelta(seconds=3), "version": __version__}
    report = QueryReport(job="attribute", query="attribute", process_id=1, **{**given, **changes})
    lake.files.write(progress_key("attribute"), report.model_dump_json().encode())


def test_nothing_is_wrong_with_a_lake_that_is_new(lake: Lake) -> None:
    for check in CHECKS:
        found = _found(lake, check.name)
        assert found, f"{check.name} says nothing"
        assert {one.severity for one in found} == {Severity.FINE}, found


@pytest.mark.parametrize(
    ("changes", "severity", "text", "todo"),
    [
        pytest.param({}, Severity.FINE, "attribute reported 3s ago", "", id="it runs"),
        pytest.param(
            {"updated_at": _NOW - timedelta(minutes=2, seconds=1)},
            Severity.WRONG,
            "should be running and last reported 2min1s ago",
            "adloom job attribute",
            id="silent",
        ),
        pytest.param({"updated_at": _NOW - timedelta(minutes=2)}, Severity.FINE, "2min ago", "", id="still patient"),
        pytest.param(
            {"state": QueryState.STOPPED, "updated_at": _NOW - timedelta(days=3)},
            Severity.FINE,
            "attribute stopped 3d ago",
            "",
            id="stopped long ago",
        ),
        pytest.param(
            {"state": QueryState.FAILED, "last_error": "no space"}, Severity.WRONG, "no space", "runbook", id="failed"
        ),
        pytest.param({"version": "0.0.9"}, Severity.WARNING, "runs adloom 0.0.9", "deploy attribute again", id="older"),
        pytest.param(
            {"updated_at": _NOW + timedelta(seconds=9)}, Severity.WARNING, "in the future", "NTP", id="clock ahead"
        ),
    ],
)
def test_jobs(lake: Lake, changes: dict[str, Any], severity: Severity, text: str, todo: str) -> None:
    _report(lake, **changes)
    found = _found(lake, "jobs")
    worst = _worst(found) if severity is not Severity.FINE else found[0]
    assert worst.severity is severity
    assert text in worst.text
    assert todo in worst.todo


def test_a_longer_interval_makes_it_more_patient(lake: Lake) -> None:
    _report(lake, updated_at=_NOW - timedelta(minutes=9))
    assert _found(lake, "jobs")[0].severity is Severity.WRONG
    slow = load_settings(None, {"ADLOOM_JOB__TRIGGER_INTERVAL": "1min", "ADLOOM_JOB__FOLLOW_INTERVAL": "1min"})
    assert _found(lake, "jobs", slow)[0].severity is Severity.FINE


def _checkpoint(lake: Lake, query: str) -> None:
    write_manifest(lake, new_manifest(query, Settings(), FILES), 1)
    lake.files.write(f"{checkpoint_key(query, 1)}/offsets/0", b"v1")


@pytest.mark.parametrize(
    ("settings", "query", "severity", "todo"),
    [
        ({"ADLOOM_SESSIONIZE__GAP": "7min"}, "sessionize", Severity.WRONG, "adloom checkpoints reset sessionize"),
        ({"ADLOOM_SPARK__JOIN_STATE": "by_key"}, "attribute", Severity.WARNING, "adloom checkpoints reset attribute"),
    ],
)
def test_checkpoints(lake: Lake, settings: dict[str, str], query: str, severity: Severity, todo: str) -> None:
    _checkpoint(lake, query)
    assert {one.severity for one in _found(lake, "checkpoints")} == {Severity.FINE}
    worst = _worst(_found(lake, "checkpoints", load_settings(None, settings)))
    assert worst.severity is severity
    assert todo in worst.todo


@pytest.mark.parametrize(
    ("files", "severity"), [(100_000, Severity.FINE), (100_001, Severity.WARNING)], ids=["many", "too many"]
)
def test_files_that_were_read_are_counted(lake: Lake, files: int, severity: Severity) -> None:
    _checkpoint(lake, "ingest")
    lines = (f'{{"path":"file:///in/{number}.jsonl","timestamp":0,"batchId":0}}' for number in range(files))
    lake.files.write(f"{checkpoint_key('ingest', 1)}/sources/0/0", "\n".join(["v1", *lines]).encode())
    (counted,) = [one for one in _found(lake, "checkpoints") if "files that it has read" in one.text]
    assert counted.severity is severity
    assert f"ingest remembers {files:,} files" in counted.text
    assert ("restart job deduplicate" in counted.todo) == (severity is Severity.WARNING)


def _commit(lake: Lake, version: int, files: int = 0) -> None:
    adds = [
        {"add": {"path": f"part-{version}-{n}.parquet", "partitionValues": {"event_date": "2026-03-01"}}}
        for n in range(files)
    ]
    lines = "\n".join(json.dumps(line) for line in ({"commitInfo": {"operation": "WRITE"}}, *adds))
    lake.files.write(commit_key(SESSIONS, version), lines.encode())


def test_a_table_with_a_gap_in_its_log_or_too_many_files_is_named(lake: Lake) -> None:
    _commit(lake, 0, files=500)
    assert _found(lake, "tables")[0] == Finding(Severity.FINE, "sessions: version 0, 500 files")
    _commit(lake, 1, files=1)
    worst = _worst(_found(lake, "tables"))
    assert (worst.severity, "501 files" in worst.text) == (Severity.WARNING, True)
    assert "adloom maintain" in worst.todo
    _commit(lake, 3)
    worst = _worst(_found(lake, "tables"))
    assert worst.severity is Severity.WRONG
    assert "version 2 is missing" in worst.text


@pytest.mark.parametrize(
    ("free", "total", "severity"),
    [
        pytest.param(2 << 30, 40 << 30, Severity.FINE, id="just enough"),
        pytest.param((2 << 30) - 1, 30 << 30, Severity.WARNING, id="less than 2 GiB"),
        pytest.param(4 << 30, 100 << 30, Severity.WARNING, id="less than 5 percent"),
    ],
)
def test_a_disk_that_fills_up_is_named(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, free: int, total: int, severity: Severity
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free, total=total))
    disks = [one for one in _found(lake, "machine") if "GiB free" in one.text]
    assert {one.severity for one in disks} == {severity}
    assert any("the lake" in one.text for one in disks)


def test_missing_java_missing_jars_and_heaps_beyond_the_memory_are_named(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    huge = load_settings(None, {"ADLOOM_SPARK__DRIVER_MEMORY": "9000g"})
    assert "lower spark.driver_memory" in _worst(_found(lake, "machine", huge)).todo
    monkeypatch.setattr(machine_check, "jars_folder", lambda: tmp_path)
    assert "run `make setup`" in _worst(_found(lake, "machine")).todo
    monkeypatch.setattr(machine_check, "jars_folder", lambda: tmp_path / "cache")
    assert [one.todo for one in _found(lake, "machine") if "not been fetched yet" in one.text] == [
        "Spark's first start fetches them; to fetch them now, run `python -m spark_jobs.spark.jars.install`"
    ]
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "no Java found" in _worst(_found(lake, "machine")).text


def test_a_store_that_is_away_and_a_lake_that_is_not_there_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    away = load_settings(None, {"ADLOOM_S3__ENDPOINT": "http://127.0.0.1:1"})
    worst = _worst(_found(open_lake("s3a://ads/lake", away.s3), "store", away))
    assert (worst.severity, "does not answer" in worst.text) == (Severity.WRONG, True)
    subject = Subject(open_lake("s3a://ads/lake", away.s3), away, _NOW)
    made = {check.name: found for check, found in examine(subject)}
    assert list(made) == [check.name for check in CHECKS], "each runs, and says why it cannot"
    for name in ("checkpoints", "tables", "jobs", "ledger"):
        assert "does not answer" in _worst(made[name][:1]).text, made[name]
    worst = _worst(_found(open_lake(str(tmp_path / "none")), "store"))
    assert (worst.severity, "there is no lake at" in worst.text) == (Severity.WARNING, True)


def test_a_kafka_that_is_away_is_named(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "_ANSWER_S", 2.0)
    away = load_settings(None, {"ADLOOM_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1", "ADLOOM_KAFKA__TOPICS": "ads"})
    worst = _worst(_found(lake, "topics", away))
    assert (worst.severity, "Kafka at 127.0.0.1:1 does not answer" in worst.text) == (Severity.WRONG, True)


def test_a_topic_that_was_created_again_is_named_and_the_others_are_looked_at(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(None, {"ADLOOM_KAFKA__BOOTSTRAP_SERVERS": "k:1", "ADLOOM_KAFKA__TOPICS": "gone,ads,web"})
    reached = {"ads": {"0": 100}, "web": {"0": 100}}
    manifest = new_manifest("ingest", settings, KAFKA, begins_at=json.dumps(reached))
    write_manifest(lake, manifest.model_copy(update={"topic_ids": {"ads": "a1", "web": "w1"}}), 1)

    def ends(_: object, topic: str) -> dict[int, tuple[int, int]]:
        if topic == "gone":
            raise SourceError("has no topic gone")
        return {0: (0, 500)}

    monkeypatch.setattr(samples, "ids_of_topics", lambda _: {"ads": "a2", "web": "w1"})
    monkeypatch.setattr(samples, "ends_of_topic", ends)
    found = _found(lake, "topics", settings)
    wrong = [one for one in found if one.severity is Severity.WRONG]
    assert [one.text.partition(" since")[0] for one in wrong] == [
        "has no topic gone",
        "topic ads was deleted and created again",
    ]
    assert "kafka.fail_on_data_loss = false" in wrong[1].todo
    assert "topic web: 400 records wait to be read" in [one.text for one in found]
    assert not [one for one in found if one.text.startswith("topic ads: ") and "wait" in one.text], "old offsets"


def test_a_ledger_that_does_not_balance_is_named(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def ledger(*, balances: bool) -> Callable[[Lake], object]:
        return lambda _: SimpleNamespace(balances=balances, taken_at=_NOW, rows=lambda *_: 1234)

    monkeypatch.setattr(ledger_check, "last_ledger", ledger(balances=True))
    assert "balances: 1,234 records" in _found(lake, "ledger")[0].text
    monkeypatch.setattr(ledger_check, "last_ledger", ledger(balances=False))
    assert _worst(_found(lake, "ledger")).severity is Severity.WRONG


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(LakeError("then this"), "then this", id="an error of adloom"),
        pytest.param(ValueError("not that"), "the check itself failed: ValueError: not that", id="any other"),
    ],
)
def test_the_other_checks_go_on_when_one_ends_with_an_error(error: Exception, text: str) -> None:
    def look(_: Subject) -> Iterator[Finding]:
        yield Finding(Severity.FINE, "first")
        raise error

    (fine, wrong) = findings_of(SimpleNamespace(look=look), None)  # type: ignore[arg-type]
    assert (fine.text, wrong.severity, wrong.text) == ("first", Severity.WRONG, text)


_HOUR_AGO = _NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    ("wanted", "report", "severity", "text"),
    [
        pytest.param(
            DesiredState(state=RunState.RUNNING, why="release 7 was deployed", since=_HOUR_AGO),
            {"state": QueryState.STOPPED, "updated_at": _NOW - timedelta(minutes=30)},
            Severity.WRONG,
            "attribute stopped 30min ago and should run (release 7 was deployed)",
            id="wanted and stopped",
        ),
        pytest.param(
            DesiredState(state=RunState.RUNNING, why="release 7 was deployed", since=_NOW - timedelta(seconds=30)),
            {"state": QueryState.STOPPED, "updated_at": _NOW - timedelta(minutes=30)},
            Severity.FINE,
            "attribute stopped 30min ago; it should run (release 7 was deployed), and may be starting",
            id="just wanted: it is starting",
        ),
        pytest.param(
            DesiredState(state=RunState.RUNNING, why="release 7 was deployed", since=_HOUR_AGO),
            {"state": QueryState.STOPPED, "updated_at": _NOW - timedelta(seconds=30)},
            Severity.FINE,
            "attribute stopped 30s ago; it should run (release 7 was deployed), and may be starting",
            id="just stopped: it is restarted",
        ),
        pytest.param(
            DesiredState(state=RunState.RUNNING, why="release 7 was deployed", since=_HOUR_AGO),
            None,
            Severity.WRONG,
            "no query of job attribute has ever reported, and it should run since 1h ago (release 7 was deployed)",
            id="wanted and never seen",
        ),
        pytest.param(
            DesiredState(state=RunState.STOPPED, why="marked failed by ann", since=_HOUR_AGO),
            {"state": QueryState.STOPPED, "updated_at": _HOUR_AGO},
            Severity.FINE,
            "job attribute is stopped on purpose since 1h ago: marked failed by ann",
            id="stopped on purpose",
        ),
        pytest.param(
            DesiredState(state=RunState.STOPPED, why="marked failed by ann", since=_HOUR_AGO),
            {"updated_at": _HOUR_AGO},
            Severity.FINE,
            "job attribute is stopped on purpose since 1h ago: marked failed by ann",
            id="killed and not wanted",
        ),
        pytest.param(
            DesiredState(state=RunState.STOPPED, why="maintenance", since=_HOUR_AGO, until=_NOW + timedelta(minutes=5)),
            {"state": QueryState.STOPPED, "updated_at": _HOUR_AGO},
            Severity.FINE,
            "job attribute is paused for 5min more: maintenance",
            id="paused",
        ),
        pytest.param(
            DesiredState(state=RunState.STOPPED, why="maintenance", since=_HOUR_AGO, until=_NOW - timedelta(minutes=5)),
            {"state": QueryState.STOPPED, "updated_at": _HOUR_AGO},
            Severity.WRONG,
            "attribute stopped 1h ago and should run (maintenance)",
            id="its pause is over",
        ),
        pytest.param(
            DesiredState(state=RunState.RUNNING, why="release 7 was deployed", since=_HOUR_AGO),
            {},
            Severity.FINE,
            "attribute reported 3s ago",
            id="wanted and running",
        ),
        pytest.param(
            None, {"state": QueryState.STOPPED}, Severity.FINE, "attribute stopped 3s ago", id="nobody has asked"
        ),
    ],
)
def test_what_is_wanted_of_a_job_decides_whether_it_is_wrong_that_it_does_not_run(
    lake: Lake, wanted: DesiredState | None, report: dict[str, Any] | None, severity: Severity, text: str
) -> None:
    if wanted:
        write_record(lake, desired_key("attribute"), wanted)
    if report is not None:
        _report(lake, **report)
    found = _found(lake, "jobs")
    assert max(found, key=lambda one: list(Severity).index(one.severity)).severity is severity, found
    (said,) = [one for one in found if one.text.startswith(text)]
    assert said.severity is severity
    assert bool(said.todo) is (severity is Severity.WRONG)


def test_a_job_that_has_failed_is_named_with_the_reason(lake: Lake) -> None:
    failed = DesiredState(state=RunState.FAILED, why="it has ended again: exit code 1", since=_HOUR_AGO)
    write_record(lake, desired_key("attribute"), failed)
    assert _worst(_found(lake, "jobs")).text == "job attribute has failed 1h ago: it has ended again: exit code 1"


@pytest.mark.parametrize("has_report", [True, False], ids=["a-batch-of-an-hour", "its-table-is-not-there-yet"])
@pytest.mark.parametrize("is_alive", [True, False])
def test_a_driver_that_says_that_it_is_alive_is_not_silent(lake: Lake, *, has_report: bool, is_alive: bool) -> None:
    write_record(
        lake, desired_key("attribute"), DesiredState(state=RunState.RUNNING, why="a deployment", since=_HOUR_AGO)
    )
    seen = _NOW - (timedelta(seconds=14) if is_alive else timedelta(minutes=50))
    driver = DriverReport(process_id=1, version="1", started_at=_HOUR_AGO, updated_at=seen, progress_at=seen)
    write_record(lake, driver_report_key("attribute"), driver)
    if has_report:
        _report(lake, updated_at=_HOUR_AGO)
    wrong = [one for one in _found(lake, "jobs") if one.severity is Severity.WRONG]
    assert bool(wrong) is not is_alive, wrong


def test_a_damaged_record_of_what_is_wanted_hides_no_report(lake: Lake) -> None:
    lake.files.write(desired_key("attribute"), b"{half a fi")
    _report(lake, state=QueryState.FAILED, last_error="no space")
    texts = [one.text for one in _found(lake, "jobs") if one.severity is Severity.WRONG]
    assert ["is damaged" in texts[0], "no space" in texts[1]] == [True, True], texts


def test_a_store_that_refuses_requests_because_of_the_clock_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    lake = open_lake("s3a://ads/lake")
    said = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
    answer = {"Error": {"Code": "RequestTimeTooSkewed"}, "ResponseMetadata": {"HTTPHeaders": {"date": said}}}

    def refuse(**_: object) -> None:
        raise ClientError(answer, "ListObjectsV2")

    monkeypatch.setattr(lake.files, "client", SimpleNamespace(list_objects_v2=refuse))
    found = _found(lake, "store")[0]
    assert (found.severity, found.todo.startswith("set the clocks, by NTP")) == (Severity.WRONG, True), found


def test_the_command_says_it_by_its_exit_code_and_as_json(lake: Lake) -> None:
    lake.files.write("_progress/x.json", json_bytes({}))
    done = adloom("doctor", "--lake", str(lake.path))
    assert done.returncode == 0, done.stdout
    assert "nothing is wrong" in done.stdout
    _report(lake, state=QueryState.FAILED, last_error="[no] space")
    done = adloom("doctor", "--lake", str(lake.path))
    assert done.returncode == 1
    assert "[no] space" in done.stdout
    assert "→" in done.stdout
    found = json.loads(adloom("doctor", "--lake", str(lake.path), "--json").stdout)
    assert {one["check"] for one in found} == {check.name for check in CHECKS}
    (todo,) = [one["todo"] for one in found if one["severity"] == "wrong"]
    assert todo == "see the log of job attribute; docs/runbook.md"
