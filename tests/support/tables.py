"""Tables of a lake, read where no settings matter."""

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import Table
from spark_jobs.lake.layout import Lake
from spark_jobs.spark.open_lake import OpenLake


def read_table(spark: SparkSession, lake: Lake, table: Table, *, version: int | None = None) -> DataFrame:
    """The rows of ``table``, as :meth:`OpenLake.read` gives them."""
    return OpenLake.of(lake, Settings(), spark).read(table, version=version)
