"""The job ``attribute``: silver into gold/attributions and gold/sessions."""

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import ATTRIBUTIONS, SESSIONS, SILVER_EVENTS
from spark_jobs.operators.attribute import attribute
from spark_jobs.operators.sessionize import sessionize
from spark_jobs.sinks.delta import create_table, start_query
from spark_jobs.sources.delta import stream_table

JOB = "attribute"
ATTRIBUTE_QUERY = "attribute"
SESSIONIZE_QUERY = "sessionize"


def start_attribute(spark: SparkSession, settings: Settings, lake: Lake) -> StreamingQuery:
    """Starts joining clicks to impressions."""
    create_table(spark, lake, SILVER_EVENTS)
    attributions = attribute(stream_table(spark, lake, SILVER_EVENTS), settings.attribute)
    return start_query(attributions, lake, ATTRIBUTIONS, job=JOB, query=ATTRIBUTE_QUERY)


def start_sessionize(spark: SparkSession, settings: Settings, lake: Lake) -> StreamingQuery:
    """Starts grouping events into sessions."""
    create_table(spark, lake, SILVER_EVENTS)
    sessions = sessionize(stream_table(spark, lake, SILVER_EVENTS), settings.sessionize)
    return start_query(sessions, lake, SESSIONS, job=JOB, query=SESSIONIZE_QUERY)
