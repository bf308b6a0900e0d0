"""The job ``attribute``: silver into gold/attributions and gold/sessions."""

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contracts.jobs import ATTRIBUTE, SESSIONIZE
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import ATTRIBUTIONS, SESSIONS, SILVER_EVENTS
from spark_jobs.operators.attribute import attribute
from spark_jobs.operators.sessionize import sessionize
from spark_jobs.sinks.delta import ASAP, Start, start_query
from spark_jobs.sources.delta import stream_table


def start_attribute(spark: SparkSession, settings: Settings, lake: Lake, *, start: Start = ASAP) -> StreamingQuery:
    """Starts joining the clicks of silver, which must have been begun, to its impressions."""
    left, right = (stream_table(spark, lake, SILVER_EVENTS) for _side in range(2))
    attributions = attribute(left, right, settings.attribute)
    return start_query(attributions, lake, ATTRIBUTIONS, query=ATTRIBUTE, start=start)


def start_sessionize(spark: SparkSession, settings: Settings, lake: Lake, *, start: Start = ASAP) -> StreamingQuery:
    """Starts grouping the events of silver, which must have been begun, into sessions."""
    sessions = sessionize(stream_table(spark, lake, SILVER_EVENTS), settings.sessionize)
    return start_query(sessions, lake, SESSIONS, query=SESSIONIZE, start=start)
