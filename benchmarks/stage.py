"""One query of the main job alone, over what the one before it left: `python -m benchmarks.stage NAME SOURCE LAKE`."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import Settings, load_settings
from spark_jobs.jobs.attribute import start_attribute, start_sessionize
from spark_jobs.jobs.deduplicate import start_deduplicate, start_ingest
from spark_jobs.runtime.lakes import open_lake
from spark_jobs.runtime.session import start_session
from spark_jobs.sources.files import read_files


def main(stage: str, source: Path, location: str) -> None:
    """Runs ``stage`` until its source holds nothing more."""
    settings = load_settings(None, os.environ)
    spark = start_session(settings)
    query = _start(stage, spark, settings, open_lake(location), source)
    query.processAllAvailable()
    query.stop()
    spark.stop()


def _start(stage: str, spark: SparkSession, settings: Settings, lake: Lake, source: Path) -> StreamingQuery:
    match stage:
        case "ingest":
            return start_ingest(read_files(spark, source, settings.ingest), settings, lake)
        case "deduplicate":
            return start_deduplicate(spark, settings, lake)
        case "attribute":
            return start_attribute(spark, settings, lake)
        case "sessionize":
            return start_sessionize(spark, settings, lake)
        case _:
            raise SystemExit(f"no stage {stage!r}; there are ingest, deduplicate, attribute and sessionize")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
