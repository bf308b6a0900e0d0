"""Orders and refunds of which a part comes late: in the end each is judged as if all had come in time."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.choices import LeftOut
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import CREDITS, LEFT_OUT, NET_CREDITS, NET_PATHS, PATHS, RESTATEMENTS, Table
from spark_jobs.credit.run import credit
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from tests.golden.runs import STANDARD
from tests.support.credited import Facts, Key, credit_rows, draw, due_rows, facts_of, mark
from tests.support.lakes import rows_by_name
from tests.support.runs import ONE_BY_ONE, run_in
from tests.support.source_files import write_files
from tests.support.timeline import Case

pytestmark = pytest.mark.slow

_SETTINGS = Settings.model_validate(
    {
        "ingest": ONE_BY_ONE,
        "credit": {
            "repeat_within": "6h",
            "conversion_lookback": "30h",
            "click_lookback": "20h",
            "view_lookback": "6h",
            "models": "linear",
        },
    }
)
_BEGIN = datetime(2024, 5, 1, tzinfo=UTC)
_HOURS = 96


def _line(hours: float, what: str) -> str:
    return f"{_BEGIN + timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}  {what}"


def _files(seed: int) -> list[list[str]]:
    """Three files: the first days, a third of their events late, and with it a last event that makes all due."""
    chance = random.Random(seed)
    drawn: list[tuple[float, str]] = []
    for number in range(60):
        user, hours = f"u{chance.randrange(6)}", chance.randrange(_HOURS)
        drawn.append((hours, f"imp i{number} {user} c{number % 3}"))
        if chance.random() < 0.5:
            drawn.append((hours + chance.random(), f"clk k{number} {user} ->i{number}"))
    for number in range(150):
        kind, currency = chance.choice(("purchase", "lead")), chance.choice(("EUR", "EUR", "GBP"))
        order = f" order=o{chance.randrange(12)}" if chance.random() < 0.7 else ""
        revokes = f" revokes=p{chance.randrange(150)}" if chance.random() < 0.4 else ""
        worth = f"{kind} {chance.choice((10, 50, 99))} {currency}{order}{revokes}"
        drawn.append((number * _HOURS / 150, f"cnv p{number} u{chance.randrange(6)} {worth}"))
    late = [event for event in drawn if chance.random() < 0.3]
    on_time = sorted(event for event in drawn if event not in late)
    first = [_line(*event) for event in on_time]
    return [
        first,
        [_line(_HOURS + 6, "act a1 u0")],
        [*(_line(*event) for event in late), _line(_HOURS + 7, "act a2 u0")],
    ]


class _Orders:
    """A lake after its repair, and what is due."""

    def __init__(self, lake: Lake, facts: Facts, marked: frozenset[Key]) -> None:
        self.lake, self.facts, self.marked = lake, facts, marked


@pytest.fixture(scope="module")
def orders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Orders:
    folder = tmp_path_factory.mktemp("orders")
    source, lake = folder / "source", open_lake(str(folder / "lake"))
    timeline = "\n---\n".join("\n".join(lines) for lines in _files(38))
    arriving = sorted(write_files(folder / "arriving", Case("orders", timeline, STANDARD).files()).iterdir())
    source.mkdir()
    marked = frozenset[Key]()
    for files in (arriving[:2], arriving[2:]):
        for file in files:
            file.rename(source / file.name)
        run_in(spark, _SETTINGS, lake, source, drain=len(files) == 1)
        if not marked:
            marked = draw(lake, 0)
            mark(spark, lake, marked)
        assert credit(OpenLake.of(lake, _SETTINGS, spark))
    repaired = repair(OpenLake.of(lake, _SETTINGS, spark))
    assert repaired
    assert repaired.late_events > 40
    assert credit(OpenLake.of(lake, _SETTINGS, spark))
    return _Orders(lake, facts_of(source, _SETTINGS), marked)


@pytest.mark.parametrize("table", [PATHS, CREDITS, LEFT_OUT, NET_PATHS, NET_CREDITS], ids=lambda table: table.name)
def test_in_the_end_no_order_shows_that_a_part_was_late(table: Table, orders: _Orders) -> None:
    is_net = table in (NET_PATHS, NET_CREDITS)
    expected = orders.facts.credit(_SETTINGS, orders.marked if is_net else frozenset())
    assert credit_rows(orders.lake, table) == due_rows(expected, table)


def test_late_orders_change_what_is_left_out_for_every_reason(orders: _Orders) -> None:
    told = rows_by_name(orders.lake, RESTATEMENTS)
    changed = Counter(
        reason
        for row in told
        if row["table_name"] == LEFT_OUT.name
        for reason in LeftOut
        if reason in (row["after"] or "")
    )
    assert {*changed} == {*LeftOut}
