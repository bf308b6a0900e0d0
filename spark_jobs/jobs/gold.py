"""The jobs that read silver: what starts their queries."""

from spark_jobs.contracts.jobs import ATTRIBUTE_JOB, MEASURE_JOB
from spark_jobs.jobs.attribute import start_attribute, start_sessionize
from spark_jobs.jobs.measure import start_campaign_stats, start_moving_average, start_user_status

STARTS = {
    ATTRIBUTE_JOB: (start_attribute, start_sessionize),
    MEASURE_JOB: (start_campaign_stats, start_moving_average, start_user_status),
}
"""By job, what starts each of its queries, in their order."""
