"""The golden cases, run through the pipeline. A failure names the case; its timeline shows the input."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import Ledger
from spark_jobs.queries.registry import TABLES
from tests.golden.cases import GOLDEN, cases_of
from tests.golden.late_cases import TWICE
from tests.golden.runs import LATE, RUNS, STANDARD, UNDRAINED
from tests.support.lakes import RunLake, read_ledger, read_table
from tests.support.oracle import Expected, Row, assert_same_accounts, assert_same_rows, comparable, expected_tables
from tests.support.source_files import read_files
from tests.support.timeline import Case, Run, due, found, merge_cases


@dataclass(frozen=True)
class _Outcome:
    """The tables a run wrote, by name and with all columns, and what the oracle computes from its input."""

    tables: dict[str, list[Row]]
    ledger: Ledger
    expected: Expected


OutcomeOf = Callable[[Run], _Outcome]
_OUTCOMES: dict[str, _Outcome | None] = {}


@pytest.fixture
def outcome_of(run_lake: RunLake, tmp_path_factory: pytest.TempPathFactory) -> OutcomeOf:
    """The outcome of a run, computed once for all cases that share it."""

    def of(run: Run) -> _Outcome:
        if run.name not in _OUTCOMES:
            _OUTCOMES[run.name] = None
            folder = tmp_path_factory.mktemp(run.name)
            source = merge_cases(cases_of(run), folder / "source")
            expected = expected_tables(source, run.settings, datetime.now(UTC), batches=read_files(source))
            place = open_lake(str(folder / "lake"))
            lake = run_lake(source, settings=run.settings, drain=run.drain, measure=run.measure, lake=place)
            tables = {table.name: read_table(lake, table) for table in TABLES}
            _OUTCOMES[run.name] = _Outcome(tables, read_ledger(lake), expected)
        outcome = _OUTCOMES[run.name]
        return outcome or pytest.fail(f"the run {run.name!r} failed in an earlier test")

    return of


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case.run.name}-{case.slug}")
def test_the_lake_has_the_rows_of_the_timeline(case: Case, outcome_of: OutcomeOf) -> None:
    tables = outcome_of(case.run).tables
    assert found(case, {table.name: comparable(tables[table.name], table) for table in TABLES}) == due(case)


@pytest.mark.parametrize(
    ("run", "table"),
    [
        *((STANDARD, table) for table in TABLES),
        *((run, table) for run in (LATE, UNDRAINED) for table in (BRONZE_EVENTS, SILVER_EVENTS)),
    ],
    ids=lambda value: value.name,
)
def test_every_row_equals_the_oracle(run: Run, table: Table, outcome_of: OutcomeOf) -> None:
    outcome = outcome_of(run)
    assert_same_rows(outcome.tables[table.name], outcome.expected.rows(table), table)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_accounts_equal_the_oracle(run: Run, outcome_of: OutcomeOf) -> None:
    outcome = outcome_of(run)
    assert_same_accounts(outcome.ledger, outcome.expected.ledger, gold=run == STANDARD)


def test_the_late_rows_of_the_accounts_are_those_of_the_cases(outcome_of: OutcomeOf) -> None:
    assert outcome_of(LATE).ledger.late == sum(case.late for case in cases_of(LATE))


def test_an_undrained_run_emits_no_row_that_a_drained_one_would_not(outcome_of: OutcomeOf) -> None:
    outcome = outcome_of(UNDRAINED)
    for table in (ATTRIBUTIONS, SESSIONS):
        rows = comparable(outcome.tables[table.name], table)
        assert set(rows) < set(outcome.expected.rows(table)), table.name


def test_a_session_has_the_same_id_in_every_lake(outcome_of: OutcomeOf) -> None:
    def session_ids(run: Run) -> dict[Any, str]:
        rows = [dict(zip(SESSIONS.column_names, row, strict=True)) for row in outcome_of(run).tables["sessions"]]
        return {tuple(row["events"]): row["session_id"] for row in rows if row["user_id"].startswith(TWICE.prefix)}

    assert len(session_ids(STANDARD)) == 2
    assert session_ids(STANDARD) == session_ids(UNDRAINED)
