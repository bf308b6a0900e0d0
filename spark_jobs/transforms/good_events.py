"""The events among the records of bronze."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contracts.events import OK

_OF_RECORDS = ("raw", "source", "verdict", "source_name", "reason", "received_time", "requeued_from")
"""The columns of bronze about the record that an event came in."""


def good_events(bronze: DataFrame) -> DataFrame:
    """The rows of bronze with verdict ok, with the columns of an event and ``ingest_time``."""
    return bronze.where(F.col("verdict") == OK).drop(*_OF_RECORDS)
