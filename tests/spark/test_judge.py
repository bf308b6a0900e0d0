"""Spark's verdicts against those of the strict judge written apart from it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import BRONZE_EVENTS
from tests.support.lakes import RunLake, read_table
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.verdict_cases import VERDICT_CASES


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[bytes, list[str]]:
    """The verdicts of all cases, by the record as received."""
    from pyspark.sql import functions as F

    from spark_jobs.transforms.validate import judge

    file = tmp_path_factory.mktemp("verdicts") / "records.jsonl"
    file.write_bytes(b"\n".join(record for _, record, _ in VERDICT_CASES))
    lines = spark.read.option("lineSep", "\n").text(str(file))
    records = lines.select(
        F.col("value").alias("raw"), F.hex("value").alias("source"), F.current_timestamp().alias("ingest_time")
    )
    verdicts: dict[bytes, list[str]] = {}
    rows: list[Row] = judge(records, Settings().ingest).select("source", "verdict").collect()
    for row in rows:
        verdicts.setdefault(bytes.fromhex(row.source), []).append(row.verdict)
    return verdicts


@pytest.mark.parametrize(("record", "verdict"), [pytest.param(r, v, id=name) for name, r, v in VERDICT_CASES])
def test_the_record_gets_its_verdict(record: bytes, verdict: str, judged: dict[bytes, list[str]]) -> None:
    # A byte order mark at the beginning of a file is gone before the record is seen.
    found = judged.get(record) or judged[record.removeprefix(b"\xef\xbb\xbf")]
    assert set(found) == {verdict}


def test_bronze_holds_every_record_of_every_case(run_lake: RunLake, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "records.jsonl").write_bytes(b"\n".join(record for _, record, _ in VERDICT_CASES))
    expected = expected_tables(source, Settings(), datetime.now(UTC))
    assert_same_rows(read_table(run_lake(source), BRONZE_EVENTS), expected.rows(BRONZE_EVENTS), BRONZE_EVENTS)
