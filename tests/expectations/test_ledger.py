"""The ledger in the suite `lake` and on the page; no Spark."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from expectations.counts import COMPARED, compare, covers_present, measure
from expectations.landing import write_landing_page
from expectations.ledger import ledger_part
from expectations.results import TableResult, ValidationResult
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.advance import advance
from spark_jobs.ledger.model import Ledger
from tests.expectations.good_rows import good_ledger
from tests.support.written_lakes import GOOD, Record, WrittenLake

_NOW = datetime(2026, 3, 1, 13, tzinfo=UTC)
_NOTHING = {table.name: measure(table, None) for table in COMPARED}


@pytest.fixture
def written(tmp_path: Path) -> WrittenLake:
    return WrittenLake(open_lake(str(tmp_path / "lake")))


def _ledger(written: WrittenLake, records: Sequence[Record], kept: Sequence[Record]) -> Ledger:
    written.batch(BRONZE_EVENTS, "ingest", records)
    written.batch(SILVER_EVENTS, "deduplicate", kept, reached=0)
    (ledger,) = advance(Settings(), written.lake, lambda: _NOW)
    return ledger


def test_the_numbers_of_the_ledger_say_whether_it_balances(written: WrittenLake) -> None:
    ledger = _ledger(written, [GOOD, {**GOOD, "event_id": "lost"}], [GOOD])
    assert compare(_NOTHING, None, None).ledger_received is None
    counts = compare(_NOTHING, ledger, None)
    found = (
        counts.ledger_received,
        counts.received_difference,
        counts.ok_difference,
        counts.unaccounted,
        counts.surplus,
    )
    assert found == (2, 0, 0, 1, 0)


def test_tables_are_compared_with_a_ledger_that_counts_them_alone(written: WrittenLake) -> None:
    ledger = _ledger(written, [GOOD], [GOOD])
    assert covers_present(written.lake, ledger)
    written.commit(SILVER_EVENTS, [{**GOOD, "event_id": "by hand"}])
    assert covers_present(written.lake, ledger), "rows that are in no batch are what a ledger is to find"
    written.batch(BRONZE_EVENTS, "ingest", [{**GOOD, "event_id": "newer"}])
    assert not covers_present(written.lake, ledger)
    assert compare(_NOTHING, ledger, None, is_current=False).silver_events_difference is None
    assert compare(_NOTHING, ledger, None).silver_events_difference == -1


def test_events_that_a_repair_brought_are_not_missing_from_silver() -> None:
    repaired = good_ledger().model_copy(update={"repair": 1})
    assert compare(_NOTHING, good_ledger(), None).unsessioned_difference is not None
    assert compare(_NOTHING, repaired, None).unsessioned_difference is None
    assert compare(_NOTHING, repaired, None).silver_events_difference is not None


@pytest.mark.parametrize(("lost", "said"), [(0, "Balances to the row"), (1, "Does not balance:")])
def test_the_page_says_whether_it_balances(lost: int, said: str, written: WrittenLake) -> None:
    broken = {**GOOD, "verdict": "event_time_in_future", "event_time": datetime(9999, 12, 31, tzinfo=UTC)}
    _ledger(written, [GOOD, GOOD, broken, *[{**GOOD, "event_id": "lost"}] * lost], [GOOD])
    result = ValidationResult("_reports/index.html", (TableResult(BRONZE_EVENTS.name, passed=1),))
    write_landing_page(written.lake, result, _NOW)
    page = (written.lake.files.read(result.report) or b"").decode()
    assert said in page
    assert "1 unaccounted (records)" in page or not lost
    part = ledger_part(written.lake)
    assert part
    lines = {line.name: line.rows for line in part.lines}
    assert (lines["received"], lines["kept"], lines["duplicates"], lines["unaccounted"]) == (3 + lost, 1, 1, lost)


def test_a_lake_without_a_ledger_has_no_such_part(written: WrittenLake) -> None:
    assert ledger_part(written.lake) is None
