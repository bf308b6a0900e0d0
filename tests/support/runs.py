"""One way to run the pipeline in the process of the tests."""

from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.spark.conf import streaming_conf
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.bounded_run import RunResult, run

ONE_BY_ONE: Final[dict[str, Any]] = {"max_bytes_per_batch": 1, "file_order": "modification_time"}
"""Settings of ``[ingest]``: files follow each other, each a batch, so that a later one may bring late events."""


def run_in(
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    source: Path | None,
    *,
    drain: bool = True,
    measure: bool = False,
    count_state: bool = False,
) -> RunResult:
    """Runs ``source`` into ``lake`` with ``settings``, whatever the session was last used with.

    Without a ``source``, the folders that the settings name.

    Without ``measure`` by default: most tests are about the other two jobs, and a job more costs seconds.
    """
    for key, value in streaming_conf(settings).items():
        spark.conf.set(key, value)
    return run(OpenLake.of(lake, settings, spark), source, drain=drain, measure=measure, count_state=count_state)
