"""Starting Spark for a command."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from spark_jobs.config.encoding import COMPRESSED
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.lake.layout import Lake
from spark_jobs.spark.java import Lifetime
from spark_jobs.spark.logs import spark_log

if TYPE_CHECKING:
    from spark_jobs.ingest.input_files import FoundFile
    from spark_jobs.spark.open_lake import OpenLake

_COMPRESSED = (*COMPRESSED, ".parquet")
_DEFLATED = 8
"""Approximate compression ratio of event files."""
_DEFLATED_IN_BRONZE = 3
"""The same for bronze, which holds records and their fields."""
_SHORT_BYTES = 16 << 20
"""About 100,000 events."""


@contextmanager
def session(
    console: Console, settings: Settings, lake: Lake, files: "Iterable[FoundFile]" = ()
) -> Iterator["OpenLake"]:
    """The lake with a Spark session, tuned for its size and that of the ``files`` to read; stopped on exit.

    Raises:
        QueryFailedError: Spark failed inside the block.
    """
    from spark_jobs.spark.failures import naming_the_cause
    from spark_jobs.spark.open_lake import OpenLake
    from spark_jobs.spark.session import start_session, stop_session

    with console.status("starting Spark …"):
        log_file, lifetime = spark_log(lake, settings.job), lifetime_of(lake, files)
        spark = start_session(settings, lake=lake, log_file=log_file, lifetime=lifetime)
    try:
        with naming_the_cause(list):
            yield OpenLake.of(lake, settings, spark)
    finally:
        stop_session(spark)


def lifetime_of(lake: Lake, files: "Iterable[FoundFile]" = ()) -> Lifetime:
    """The expected duration of work on ``lake`` that reads ``files``, from their size and that of bronze."""
    size = sum(file.bytes * (_DEFLATED if file.name.endswith(_COMPRESSED) else 1) for file in files)
    for file in lake.files.walk(BRONZE_EVENTS.path):
        size += file.bytes * _DEFLATED_IN_BRONZE
        if size >= _SHORT_BYTES:
            return Lifetime.RUN  # a large table has more files than are worth listing
    return Lifetime.SHORT if size < _SHORT_BYTES else Lifetime.RUN
