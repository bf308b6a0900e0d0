"""The oracle against expectations written by hand, and against a second computation by plain loops."""

import gzip
import os
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.config.choices import JoinType
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.ledger.model import RECORDS, Figure, Ledger, RecordKind
from spark_jobs.queries.registry import TABLES
from tests.golden.cases import GOLDEN, cases_of
from tests.golden.runs import LATE, STANDARD
from tests.support.oracle import (
    Accounts,
    Expected,
    Row,
    assert_same_accounts,
    assert_same_rows,
    compared_columns,
    expected_tables,
)
from tests.support.scenarios import Scenario, records_of, scenarios
from tests.support.source_files import read_files, write_files
from tests.support.timeline import Case, Run, due, found, merge_cases, write_case

_RECEIPT = datetime(2024, 6, 1, tzinfo=UTC)
_NO_FOLDER = Path("batches-are-given")
_DRAINED = [case for case in GOLDEN if case.run.drain]


@cache
def _expected(run: Run) -> Expected:
    with TemporaryDirectory() as folder:
        source = merge_cases(cases_of(run), Path(folder) / "source")
        return expected_tables(source, run.settings, _RECEIPT, batches=read_files(source))


def _of(files: list[list[bytes]], chosen: Settings | None = None) -> Expected:
    return expected_tables(_NO_FOLDER, chosen or Settings(), _RECEIPT, batches=[[r for file in files for r in file]])


def _named(rows: list[Row], table: Table) -> list[dict[str, Any]]:
    return [dict(zip(compared_columns(table), row, strict=True)) for row in rows]


@pytest.mark.parametrize("case", _DRAINED, ids=lambda case: f"{case.run.name}-{case.slug}")
def test_the_oracle_says_what_the_timeline_says(case: Case) -> None:
    expected = _expected(case.run)
    assert found(case, {table.name: expected.rows(table) for table in TABLES}) == due(case)


@pytest.mark.parametrize("case", [c for c in _DRAINED if c.run == STANDARD], ids=lambda case: case.slug)
def test_a_case_means_the_same_alone_as_among_the_others(case: Case, tmp_path: Path) -> None:
    expected = expected_tables(write_case(case, tmp_path / "source"), case.run.settings, _RECEIPT)
    assert found(case, {table.name: expected.rows(table) for table in TABLES}) == due(case)


def test_golden_titles_are_unique_within_a_run_and_leave_room_for_ids() -> None:
    prefixes = [(case.run.name, case.prefix) for case in GOLDEN]
    assert len(set(prefixes)) == len(prefixes)
    assert max(len(prefix) for _, prefix in prefixes) < 120


def test_late_rows_are_exactly_those_that_the_cases_count() -> None:
    assert _expected(LATE).ledger.late == sum(case.late for case in cases_of(LATE)) > 0
    assert _expected(LATE).ledger.duplicates == 2
    assert _expected(STANDARD).ledger.late == 0


def test_nothing_is_late_without_batches(tmp_path: Path) -> None:
    source = merge_cases(cases_of(LATE), tmp_path / "source")
    assert expected_tables(source, LATE.settings, _RECEIPT).ledger.late == 0


def test_late_rows_under_forever_are_refused_since_the_contract_is_silent() -> None:
    forever = Settings.model_validate({"deduplicate": {"mode": "forever"}})
    with pytest.raises(ValueError, match="forever"):
        _of([[]], forever)


def test_no_input_gives_no_rows(tmp_path: Path) -> None:
    expected = expected_tables(tmp_path, Settings(), _RECEIPT)
    assert expected == Expected([], [], [], [], [], [], [], Accounts(0, {}, 0, 0, 0, 0))


def test_files_are_read_by_modification_time_then_name_and_unpacked(tmp_path: Path) -> None:
    for name, content, mtime in (
        ("a.jsonl", b"third\n", 20),
        ("c.jsonl.gz", gzip.compress(b"\xef\xbb\xbfsecond\n") + gzip.compress(b"and more"), 10),
        ("b.jsonl", b"first", 10),
        ("d.txt", b"not read", 5),
    ):
        (tmp_path / name).write_bytes(content)
        os.utime(tmp_path / name, (mtime, mtime))
    assert read_files(tmp_path) == [[b"first"], [b"second", b"and more"], [b"third"]]


@pytest.mark.parametrize(
    ("join", "statuses"),
    [
        ("full_outer", {"clicked", "unclicked", "orphan_click"}),
        ("left_outer", {"clicked", "unclicked"}),
        ("right_outer", {"clicked", "orphan_click"}),
        ("inner", {"clicked"}),
    ],
)
def test_the_join_type_decides_which_rows_come_out_beside_pairs(join: str, statuses: set[str]) -> None:
    files = [record for case in cases_of(STANDARD) for record in case.files()]
    rows = _of(files, Settings.model_validate({"attribute": {"join": join}})).attributions
    assert {row[0] for row in rows} == statuses


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(scenario=scenarios(), join=st.sampled_from(JoinType))
def test_sql_and_plain_loops_agree(scenario: Scenario, join: JoinType) -> None:
    chosen = Settings.model_validate({"attribute": {"join": join}})
    expected = _of(records_of([scenario]), chosen)
    events = _named(expected.silver, SILVER_EVENTS)
    assert len(events) == len({(e["event_type"], e["event_id"]) for file in scenario for e in file})
    assert sorted(_attributed_by_loops(events, join)) == sorted(
        (row["status"], row["impression_id"], row["click_id"] or "", row["click_delay_ms"] or 0)
        for row in _named(expected.attributions, ATTRIBUTIONS)
    )
    users = {(e["event_type"], e["event_id"]): e["user_id"] for e in events}
    for row in _named(expected.attributions, ATTRIBUTIONS):
        side = ("impression", row["impression_id"]) if row["impression_time"] else ("click", row["click_id"])
        assert row["user_id"] == users[side]
        assert row["event_date"] == (row["impression_time"] or row["click_time"]).date()
        assert row["cost_micros"] == (7 if row["impression_time"] else None)
    assert sorted(_sessions_by_loops(events)) == sorted(
        (row["user_id"], row["ended_by"], row["events"], row["event_count"], row["session_start"], row["session_end"])
        for row in _named(expected.sessions, SESSIONS)
    )


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(scenario=scenarios(), data=st.data())
def test_order_of_arrival_changes_no_row_beyond_bronze(scenario: Scenario, data: st.DataObject) -> None:
    files = records_of([scenario])
    records = [record for file in files for record in file]
    expected, shuffled = _of(files), _of([data.draw(st.permutations(records))])
    assert shuffled == expected


def test_a_difference_is_shown_row_by_row() -> None:
    expected = _expected(STANDARD).silver
    actual = [(*row[:-1], None, row[-1]) for row in expected]
    assert_same_rows(actual, expected, SILVER_EVENTS)
    changed = [(*actual[0][:3], "somebody else", *actual[0][4:]), *actual[1:]]
    with pytest.raises(AssertionError, match=r"1 missing:\n  - .*\n1 extra:\n  \+ .*'somebody else'"):
        assert_same_rows(changed, expected, SILVER_EVENTS)
    with pytest.raises(AssertionError, match="0 missing:\n1 extra:"):
        assert_same_rows([*actual, actual[0]], expected, SILVER_EVENTS)
    with pytest.raises(AssertionError, match="1 missing:"):
        assert_same_rows(actual[1:], expected, SILVER_EVENTS)


def test_repeated_session_ids_are_refused() -> None:
    expected = _expected(STANDARD).sessions
    assert_same_rows([(str(number), *row) for number, row in enumerate(expected)], expected, SESSIONS)
    with pytest.raises(AssertionError, match="session_id null, empty or repeated"):
        assert_same_rows([("same", *row) for row in expected], expected, SESSIONS)


def test_accounts_that_differ_are_refused() -> None:
    def cut(pending: int, **rows: int) -> Ledger:
        counted = [Figure(account=RECORDS, kind=RecordKind(kind), rows=number) for kind, number in rows.items()]
        waiting = Figure(account="attribute", kind=RecordKind.PENDING, rows=pending)
        return Ledger(number=1, taken_at=_RECEIPT, figures=(*counted, waiting))

    accounts = Accounts(1, {}, 1, 1, 0, 0)
    assert_same_accounts(cut(0, received=1, ok=1, kept=1), accounts)
    assert_same_accounts(cut(3, received=1, ok=1, kept=1), accounts, gold=False)
    with pytest.raises(AssertionError, match=r"gold lacks events: \{'attribute': 3\}"):
        assert_same_accounts(cut(3, received=1, ok=1, kept=1), accounts)
    with pytest.raises(AssertionError):
        assert_same_accounts(cut(0, received=2, ok=2, kept=2), accounts)


def _attributed_by_loops(events: list[dict[str, Any]], join: JoinType) -> list[tuple[str, str, str, int]]:
    rows, matched = [], set()
    impressions = [event for event in events if event["event_type"] == "impression"]
    clicks = [event for event in events if event["event_type"] == "click"]
    for click in clicks:
        for impression in impressions:
            delay = click["event_time"] - impression["event_time"]
            if click["impression_id"] == impression["event_id"] and timedelta() <= delay <= timedelta(hours=1):
                matched |= {("impression", impression["event_id"]), ("click", click["event_id"])}
                whole = delay // timedelta(milliseconds=1)
                rows.append(("clicked", impression["event_id"], click["event_id"], whole))
    if join in (JoinType.FULL_OUTER, JoinType.LEFT_OUTER):
        alone = [i["event_id"] for i in impressions if ("impression", i["event_id"]) not in matched]
        rows += [("unclicked", event_id, "", 0) for event_id in alone]
    if join in (JoinType.FULL_OUTER, JoinType.RIGHT_OUTER):
        alone = [click for click in clicks if ("click", click["event_id"]) not in matched]
        rows += [("orphan_click", click["impression_id"], click["event_id"], 0) for click in alone]
    return rows


def _sessions_by_loops(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    sessions: list[list[dict[str, Any]]] = []
    previous: dict[str, Any] | None = None
    visits = [event for event in events if event["event_type"] != "conversion"]
    for event in sorted(visits, key=lambda e: (e["user_id"], e["event_time"], e["event_id"], e["event_type"])):
        same_user = previous is not None and previous["user_id"] == event["user_id"]
        if (
            previous is None
            or not same_user
            or previous["is_last"]
            or event["event_time"] > previous["event_time"] + timedelta(minutes=5)
        ):
            sessions.append([])
        sessions[-1].append(event)
        previous = event
    return [
        (
            session[0]["user_id"],
            "is_last" if session[-1]["is_last"] else "timeout",
            tuple((event["event_time"], event["event_type"], event["event_id"]) for event in session),
            len(session),
            session[0]["event_time"],
            session[-1]["event_time"],
        )
        for session in sessions
    ]


def test_write_files_keeps_the_order_of_files(tmp_path: Path) -> None:
    files = [[b"a", b"b"], [], [b"c"]]
    assert read_files(write_files(tmp_path / "source", files)) == files
