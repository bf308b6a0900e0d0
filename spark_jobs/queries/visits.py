"""The events of visits, from which sessions and a user's status are made."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.contract.events import VISIT_TYPES


def is_of_visit() -> Column:
    """Whether a row (``event_type``, ``user_id``) shows that its user was there: no heartbeat and no conversion."""
    return F.col("event_type").isin(*VISIT_TYPES) & F.col("user_id").isNotNull()
