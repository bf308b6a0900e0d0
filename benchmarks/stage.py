"""Runs one query on the output of the previous one, or all of them, one after the other; no ledger is taken.

`python -m benchmarks.stage NAME|all SOURCE LAKE [CONFIG]`
"""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.ingest.arriving import arriving_files
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.output import ASAP, AVAILABLE_NOW
from spark_jobs.queries.registry import QUERIES, find_query
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.session import start_session
from spark_jobs.streams.start import start


def main(stage: str, source: Path, location: str, config: Path | None = None) -> None:
    """Runs ``stage`` until its source is exhausted."""
    settings, lake = load_settings(config, os.environ), open_lake(location)
    spark = start_session(settings)
    for name in [query.name for query in QUERIES] if stage == "all" else [stage]:
        query = _start(name, spark, settings, lake, source)
        query.processAllAvailable()
        query.stop()
    spark.stop()


def _start(stage: str, spark: SparkSession, settings: Settings, lake: Lake, source: Path) -> StreamingQuery:
    query = find_query(stage)
    records = None if query.reads else arriving_files(spark, settings, source)
    return start(
        query, OpenLake.of(lake, settings, spark), records=records, trigger=ASAP if query.reads else AVAILABLE_NOW
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], *map(Path, sys.argv[4:]))
