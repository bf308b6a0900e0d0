"""The last events of a drained lake are settled for everyone: credit, repair, sessions, the ledger."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, PATHS
from spark_jobs.credit.run import credit
from spark_jobs.lake.open import open_lake
from spark_jobs.ledger.model import RecordKind
from spark_jobs.ledger.update import balance
from spark_jobs.restatements.repair import repair
from spark_jobs.spark.open_lake import OpenLake
from tests.golden.runs import STANDARD
from tests.support.lakes import read_ledger, read_table
from tests.support.runs import run_in
from tests.support.source_files import write_files
from tests.support.timeline import Case

pytestmark = pytest.mark.slow

_ALL = """
12:00:00.000999  imp  i1 u1 c1
12:00:00.000999  cnv  p1 u1 purchase 5 EUR
12:00:00.000999  cnv  r1 u1 purchase 5 EUR revokes=p1
---
12:00:00.000999  clk  k1 u1 ->i1    # on time for silver, late for attribute, whose time the drain has moved
"""


def test_the_last_events_of_a_drained_lake_are_credited_and_repaired(spark: SparkSession, tmp_path: Path) -> None:
    lake, source, settings = open_lake(str(tmp_path / "lake")), tmp_path / "source", Settings()
    first, second = Case("end", _ALL, STANDARD).files()
    write_files(source, [first])
    run_in(spark, settings, lake, source)
    plan = credit(OpenLake.of(lake, settings, spark))
    assert plan
    assert (plan.fresh, plan.waiting) == (2, 0)
    assert {row[0]: row[4] for row in read_table(lake, PATHS)} == {"end/p1": 5, "end/r1": -5}
    ledger = read_ledger(lake)
    assert not any(ledger.rows(RecordKind.PENDING, account=name) for name in ledger.accounts)

    (write_files(tmp_path / "more", [second]) / "0000.jsonl").rename(source / "0001.jsonl")
    run_in(spark, settings, lake, source, drain=False)
    repaired = repair(OpenLake.of(lake, settings, spark))
    assert repaired
    assert repaired.tables[ATTRIBUTIONS.name].pending == 0, "the last impression is closed"
    assert [row[0] for row in read_table(lake, ATTRIBUTIONS)] == ["clicked"]
    assert balance(settings, lake, drained=False).balances
