"""The events among the records of bronze."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contracts.events import OK


def good_events(bronze: DataFrame) -> DataFrame:
    """The rows of bronze with verdict ok, with the columns of an event and ``ingest_time``."""
    return bronze.where(F.col("verdict") == OK).drop("raw", "source", "verdict")
