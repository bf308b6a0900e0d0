"""OpenLineage: each version and validation is told once, whatever is killed; what an event says; where it goes."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.contract.tables import SESSIONS, SILVER_EVENTS
from spark_jobs.contract.validation import RuleResult, ValidatedTable, Validation, validation_key
from spark_jobs.errors import LakeError, LineageError, SettingsError
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.records import write_record
from spark_jobs.lineage.events import sources_of_columns
from spark_jobs.lineage.facets import Event
from spark_jobs.lineage.naming import name_of_table, names_of_sources
from spark_jobs.lineage.parent import parent_run, within
from spark_jobs.lineage.send import report_new
from spark_jobs.lineage.transport import transport
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import QUERIES
from tests.support.openlineage import check_event

_CANARY = "canary-90b2"
_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_NOON_MS = int(_NOON.timestamp() * 1000)
_RUN_ID = "f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11"


class _KilledError(Exception):
    pass


def _commit(lake: Lake, version: int, *, writer: str = "sessionize", rows: int = 10) -> None:
    """A commit of sessions that added a file, made of silver up to version ``version * 2``."""
    reached = [{"reservoirVersion": version * 2 + 1, "index": -1}]
    own = CommitNote(writer="id-of-the-query", batch=version, query="sessionize", reached=reached)
    note = own if writer == "sessionize" else CommitNote(writer=writer, batch=version)
    info = {"timestamp": _NOON_MS + version, "userMetadata": note.as_metadata()}
    added = {"path": f"part-{version}.parquet", "partitionValues": {}, "stats": json.dumps({"numRecords": rows})}
    lines = ({"commitInfo": info}, {"add": added})
    text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    lake.files.write(commit_key(SESSIONS, version), text.encode())


def _rule(name: str, column: str, *, found: int | None = 0, holds: bool = True, **more: Any) -> RuleResult:
    plain = {"kind": "between", "reason": f"{name} holds.", "is_critical": True, "mostly": 1.0}
    return RuleResult(name=name, column=column, found=found, holds=holds, **{**plain, **more})


def _validate(lake: Lake, minute: int = 0, *rules: RuleResult, together: tuple[RuleResult, ...] = ()) -> None:
    """A validation of sessions up to version 2, and of the tables together, that began at a minute past noon."""
    at = _NOON + timedelta(minutes=minute)
    tables = {"sessions": ValidatedTable(version=2, rows=minute, rules=rules)}
    write_record(lake, validation_key(at), Validation(at=at, tables=tables, together=together))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


def _told(lake: Lake, *, from_now: bool = False, send: Callable[[Event], None] | None = None) -> list[Event]:
    events: list[Event] = []
    list(report_new(lake, Settings(), send or events.append, from_now=from_now))
    for event in events:
        check_event(event)
    return events


def test_an_event_tells_versions_columns_and_rows(lake: Lake) -> None:
    for version in range(3):
        _commit(lake, version)
    (event,) = _told(lake)
    assert event["eventType"] == "COMPLETE"
    assert event["eventTime"] == "2026-03-01T12:00:00.002+00:00"
    assert event["job"]["name"] == "sessionize"
    (source,), (output,) = event["inputs"], event["outputs"]
    assert source["facets"]["version"]["datasetVersion"] == "4"
    assert output["name"] == f"{lake.path}/gold/sessions"
    assert output["facets"]["version"]["datasetVersion"] == "2"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 30
    assert output["outputFacets"]["outputStatistics"]["fileCount"] == 3
    assert [one["name"] for one in output["facets"]["schema"]["fields"]] == list(SESSIONS.column_names)
    fields = output["facets"]["columnLineage"]["fields"]
    assert [one["field"] for one in fields["ended_by"]["inputFields"]] == ["is_last", "event_time"]
    assert {one["name"] for one in fields["user_id"]["inputFields"]} == {source["name"]}
    assert _told(lake) == []


def test_other_writers_are_jobs_of_their_own(lake: Lake) -> None:
    _commit(lake, 0)
    _commit(lake, 1, writer="repair 7", rows=1)
    _commit(lake, 2, writer="repair 8", rows=2)
    by_job = {event["job"]["name"]: event for event in _told(lake)}
    assert by_job.keys() == {"sessionize", "repair.sessions"}
    repaired = by_job["repair.sessions"]["outputs"][0]
    assert repaired["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert "columnLineage" not in repaired["facets"]


def test_from_now_begins_with_what_comes_next(lake: Lake) -> None:
    _commit(lake, 0)
    _validate(lake, 0)
    assert _told(lake, from_now=True) == []
    _commit(lake, 1)
    _validate(lake, 1)
    committed, validated = _told(lake)
    assert committed["outputs"][0]["facets"]["version"]["datasetVersion"] == "1"
    assert validated["eventTime"] == "2026-03-01T12:01:00.000+00:00"


def test_a_validation_tells_what_each_rule_found_in_the_version_that_it_looked_at(lake: Lake) -> None:
    unique = _rule("session_unique", "session_occurrences", found=3, holds=False)
    share = _rule("most_are_long", "event_count", found=1, mostly=0.9, is_critical=False)
    off, unknown = (
        _rule("sessions_match_ledger", "sessions_difference", found=-4, holds=False),
        _rule("x", "y", found=None),
    )
    _validate(lake, 7, _rule("user_id_not_null", "user_id", kind="not_null"), unique, share, together=(off, unknown))
    (event,) = _told(lake)
    assert (event["job"]["namespace"], event["job"]["name"], event["outputs"]) == ("adloom", "validate", [])
    (table,) = event["inputs"]
    assert table["name"] == f"{lake.path}/gold/sessions"
    assert table["facets"]["version"]["datasetVersion"] == "2"
    assert table["inputFacets"]["inputStatistics"]["rowCount"] == 7
    about = {"description": "session_unique holds.", "severity": "error", "actual": "3", "expected": "0"}
    assert table["inputFacets"]["dataQualityAssertions"]["assertions"] == [
        {
            "assertion": "not_null",
            "success": True,
            "column": "user_id",
            "name": "user_id_not_null",
            "description": "user_id_not_null holds.",
            "severity": "error",
            "actual": "0",
            "expected": "0",
        },
        {"assertion": "between", "success": False, "name": "session_unique", **about},
        {
            "assertion": "between",
            "success": True,
            "column": "event_count",
            "name": "most_are_long",
            "description": "most_are_long holds.",
            "severity": "warn",
            "actual": "1",
            "params": {"mostly": 0.9},
        },
    ]
    tests = event["run"]["facets"]["test"]["tests"]
    assert [(one["name"], one["status"], one.get("actual")) for one in tests] == [
        ("sessions_match_ledger", "fail", "-4"),
        ("x", "pass", None),
    ]


def test_a_table_without_new_rows_is_an_input_without_results(lake: Lake) -> None:
    _validate(lake)
    (event,) = _told(lake)
    assert ["inputFacets" in table for table in event["inputs"]] == [False]


def test_a_validation_that_began_earlier_and_ended_later_is_told_too(lake: Lake) -> None:
    _validate(lake, 5)
    assert len(_told(lake)) == 1
    _validate(lake, 0)
    assert [event["eventTime"] for event in _told(lake)] == ["2026-03-01T12:00:00.000+00:00"]
    assert _told(lake) == []


def test_results_that_are_damaged_are_an_error_that_names_the_file(lake: Lake) -> None:
    lake.files.write(validation_key(_NOON), b"{")
    with pytest.raises(
        LakeError, match=r"_reports/validations/20260301T120000\.000000Z\.json is damaged: .*; delete it"
    ):
        _told(lake)


@given(st.lists(st.sampled_from(["commit", "validate", "tell", "killed before", "killed after"]), max_size=12))
def test_each_version_and_validation_is_told_once_and_what_is_sent_again_is_the_same_run(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    lake, sent = open_lake(str(tmp_path_factory.mktemp("lineage") / "lake")), list[Event]()
    committed = validated = 0

    def killed_before(_: Event) -> None:
        raise _KilledError

    def killed_after(event: Event) -> None:
        sent.append(event)
        raise _KilledError

    sends = {"tell": sent.append, "killed before": killed_before, "killed after": killed_after}
    for step in [*steps, "tell", "tell"]:
        if step == "commit":
            _commit(lake, committed, rows=2**committed)
            committed += 1
            continue
        if step == "validate":
            _validate(lake, validated)
            validated += 1
            continue
        try:
            _told(lake, send=sends[step])
        except _KilledError:
            continue
    runs = {event["run"]["runId"]: event for event in sent}
    for event in sent:
        assert event == runs[event["run"]["runId"]], "a run was told in two ways"
    written = [event["outputs"][0]["outputFacets"] for event in runs.values() if event["outputs"]]
    rows = sum(one["outputStatistics"]["rowCount"] for one in written)
    assert rows == 2**committed - 1, "each version counts once, by a bit of its own"
    assert len(runs) - len(written) == validated


@pytest.mark.parametrize("query", [query for query in QUERIES if query.table_read], ids=lambda query: str(query.name))
def test_each_column_says_of_what_it_is_computed(query: Query) -> None:
    assert query.table_read
    found = sources_of_columns(query, Settings())
    constants = {"moving_averages": {"measure"}}.get(query.writes.name, set())
    assert set(query.writes.column_names) - found.keys() == constants, "a name of a column comes of none"
    for columns in found.values():
        assert columns
        assert set(columns) <= set(query.table_read.column_names)
    for column in query.writes.columns:
        assert set(column.of) <= set(query.table_read.column_names), column.name


def test_an_average_is_of_the_columns_in_the_settings() -> None:
    (query,) = [one for one in QUERIES if one.name == "moving_average"]
    other = load_settings(None, {"ADLOOM_MOVING_AVERAGE__KEY": "ad_id"})
    assert sources_of_columns(query, other)["key"] == ("ad_id",)


def test_datasets_have_the_names_that_others_give_them(tmp_path: Path) -> None:
    local, remote = open_lake(str(tmp_path)), open_lake("s3a://ads/some/lake")
    assert (name_of_table(local, SILVER_EVENTS).namespace, name_of_table(remote, SILVER_EVENTS).namespace) == (
        "file",
        "s3://ads",
    )
    assert name_of_table(remote, SILVER_EVENTS).name == "some/lake/silver/events"
    kafka = {"ADLOOM_KAFKA__BOOTSTRAP_SERVERS": "one:9092, two:9092", "ADLOOM_KAFKA__TOPICS": "ads"}
    (topic,) = names_of_sources(load_settings(None, kafka))
    assert (topic.namespace, topic.name) == ("kafka://one:9092", "ads")


def test_events_of_a_process_that_a_task_started_name_the_task_as_their_parent(lake: Lake) -> None:
    parent = parent_run({"OPENLINEAGE_PARENT_ID": f"https://airflow/prod/emit_lineage.emit_lineage/{_RUN_ID}"})
    assert parent
    _commit(lake, 0)
    _validate(lake)
    events: list[Event] = []
    _told(lake, send=within(parent, events.append))
    for event in events:
        check_event(event)
        told = event["run"]["facets"]["parent"]
        assert told["run"] == {"runId": _RUN_ID}
        assert told["job"] == {"namespace": "https://airflow/prod", "name": "emit_lineage.emit_lineage"}
        assert event["run"]["facets"]["processing_engine"]["name"] == "adloom"
    assert len(events) == 2


@pytest.mark.parametrize("named", ["x", f"job/{_RUN_ID}", f"//{_RUN_ID}", f"/job/{_RUN_ID}", "ns/job/manual__2026"])
def test_a_parent_in_another_form_is_refused_and_none_is_fine(named: str) -> None:
    assert parent_run({}) is None
    assert parent_run({"OPENLINEAGE_PARENT_ID": ""}) is None
    with pytest.raises(LineageError, match=rf"OPENLINEAGE_PARENT_ID '{named}' is not NAMESPACE/JOB/RUN_ID"):
        parent_run({"OPENLINEAGE_PARENT_ID": named})


def test_a_file_has_a_line_for_each_event(tmp_path: Path) -> None:
    file = tmp_path / "new" / "events.jsonl"
    send = transport(
        load_settings(None, {"ADLOOM_LINEAGE__TRANSPORT": "file", "ADLOOM_LINEAGE__FILE": str(file)}).lineage
    )
    for number in range(3):
        send({"number": number})
    assert [json.loads(line) for line in file.read_text().splitlines()] == [{"number": number} for number in range(3)]


@pytest.fixture
def server() -> Any:
    """A server that takes events, and refuses those that say so."""
    got = Counter[tuple[str, str]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got[event["name"], self.headers.get("Authorization", "")] += 1
            self.send_response(422 if event["name"] == "bad" else 201)
            self.end_headers()
            self.wfile.write(b"no such field")

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/api/v1/lineage", got
        running.shutdown()


def test_a_server_gets_each_event_with_the_key_and_refusals_are_told_without_it(server: Any) -> None:
    url, got = server
    given_settings = {
        "ADLOOM_LINEAGE__TRANSPORT": "http",
        "ADLOOM_LINEAGE__URL": url,
        "ADLOOM_LINEAGE__API_KEY": _CANARY,
    }
    send = transport(load_settings(None, given_settings).lineage)
    send({"name": "good"})
    assert got == {("good", f"Bearer {_CANARY}"): 1}
    with pytest.raises(LineageError, match="refuses the event with 422: no such field") as error:
        send({"name": "bad"})
    assert _CANARY not in str(error.value)
    away = load_settings(None, {**given_settings, "ADLOOM_LINEAGE__URL": "http://127.0.0.1:1/"})
    with pytest.raises(LineageError, match="does not answer"):
        transport(away.lineage)({"name": "good"})


def test_a_transport_that_lacks_its_place_is_refused_and_none_says_so() -> None:
    with pytest.raises(SettingsError, match=r"lineage\.transport is http and lineage\.url is empty"):
        load_settings(None, {"ADLOOM_LINEAGE__TRANSPORT": "http"})
    with pytest.raises(LineageError, match=r"lineage\.transport is none, so nothing is sent"):
        transport(Settings().lineage)
