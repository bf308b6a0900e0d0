"""Tables are maintained while jobs write them: no batch fails, and no row is lost or doubled."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import CAMPAIGN_STATS, SESSIONS, Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.operations.maintain import Care, maintain
from spark_jobs.queries.campaign_stats.output import add_to_windows
from spark_jobs.queries.output import Write
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.write_delta import append_rows
from tests.expectations.good_rows import frame, good_rows
from tests.support.lakes import read_table

_BATCHES = 8


def _write(spark: SparkSession, lake: Lake, table: Table, write: Write) -> None:
    """Writes the same rows again and again, each time as another batch."""
    own = spark.newSession()  # as each query has one
    for key in ("spark.sql.shuffle.partitions", "spark.sql.session.timeZone"):
        own.conf.set(key, spark.conf.get(key) or "")
    rows = frame(own, table.name, good_rows(table.name)).coalesce(1)
    for batch in range(_BATCHES):
        write(rows, lake, table, CommitNote(writer=table.name, batch=batch, query=table.name, reached=[batch]))


def _care(spark: SparkSession, lake: Lake, number: int) -> list[Care]:
    # Each time the tables also get other properties.
    settings = Settings.model_validate({"tables": {"log_retention": f"{30 + number}d"}})
    return list(maintain(OpenLake.of(lake, settings, spark), [SESSIONS, CAMPAIGN_STATS], remove=True))


@pytest.mark.slow
def test_batches_are_appended_and_merged_while_their_tables_are_compacted(spark: SparkSession, tmp_path: Path) -> None:
    lake, done = open_lake(str(tmp_path / "lake")), list[Care]()
    with ThreadPoolExecutor(2) as pool:
        writing = [
            pool.submit(_write, spark, lake, SESSIONS, append_rows),
            pool.submit(_write, spark, lake, CAMPAIGN_STATS, add_to_windows),
        ]
        for number in count():
            done += _care(spark, lake, number)
            if all(one.done() for one in writing):
                break
        for one in writing:
            one.result()
    assert sum(care.files_joined > care.files_made > 0 for care in done) > 2, done
    assert not any(care.skipped or care.not_removed for care in done)
    assert len(read_table(lake, SESSIONS)) == _BATCHES * len(good_rows(SESSIONS.name))
    at = CAMPAIGN_STATS.column_names.index("impressions")
    once = sorted(row["impressions"] for row in good_rows(CAMPAIGN_STATS.name))
    assert sorted(row[at] for row in read_table(lake, CAMPAIGN_STATS)) == [_BATCHES * rows for rows in once]
