"""Generated input, and a lake held against the oracle row by row."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import Table
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.jobs import MEASURE_JOB
from spark_jobs.queries.places import checkpoint_versions
from spark_jobs.queries.registry import TABLES, queries_of
from spark_jobs.queries.user_status.query import NAME as USER_STATUS_QUERY
from tests.support.lakes import read_ledger, read_table
from tests.support.oracle import Expected, Row, assert_same_accounts, assert_same_rows, expected_tables
from tests.support.source_files import read_files, write_files
from tests.support.verdicts import judge

MEASURED = tuple(query.writes for query in queries_of(MEASURE_JOB))


def generate_source(folder: Path, *, events: int, seed: int, files: int = 4, conversions: float = 0.3) -> Path:
    """A day of events with every fault but lateness beyond the watermark."""
    spec = GeneratorSpec(
        events=events, seed=seed, files=files, late=0, duplicates=0.08, malformed=0.02, conversions=conversions
    )
    generate(spec, folder)
    return folder


def good_day(folder: Path, *, events: int, seed: int) -> tuple[Expected, list[list[dict[str, Any]]]]:
    """The good events of a generated day, file by file, and what they give when they come by themselves."""
    now = datetime.now(UTC)
    own = generate_source(folder / "generated", events=events, seed=seed, files=2)
    good = [
        [record for record in file if judge(record, receipt=now, ingest=Settings().ingest).event]
        for file in read_files(own)
    ]
    expected = expected_tables(write_files(folder / "good", good), Settings(), now)
    return expected, [[json.loads(record) for record in file] for file in good]


def assert_lake_equals_oracle(
    lake: Lake, source: Path, settings: Settings | None = None, *, read: Callable[[Lake, Table], list[Row]] = read_table
) -> None:
    """All tables and the ledger of a drained ``lake`` are what the oracle makes of ``source``.

    Those of the job ``measure`` only where it has run. ``read`` gives the rows of a table.
    """
    expected = expected_tables(source, settings or Settings(), datetime.now(UTC))
    has_measured = bool(checkpoint_versions(lake, USER_STATUS_QUERY))
    for table in (table for table in TABLES if has_measured or table not in MEASURED):
        assert_same_rows(read(lake, table), expected.rows(table), table)
    assert_same_accounts(read_ledger(lake), expected.ledger)
