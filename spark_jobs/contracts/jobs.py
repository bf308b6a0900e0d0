"""The jobs, each a Spark application of its own, and the streaming queries that they run."""

from spark_jobs.contracts.tables import (
    ATTRIBUTIONS,
    BRONZE_EVENTS,
    CAMPAIGN_STATS,
    MOVING_AVERAGES,
    SESSIONS,
    SILVER_EVENTS,
    USER_STATUS,
    Table,
)

DEDUPLICATE_JOB = "deduplicate"
ATTRIBUTE_JOB = "attribute"
MEASURE_JOB = "measure"

INGEST = "ingest"
DEDUPLICATE = "deduplicate"
ATTRIBUTE = "attribute"
SESSIONIZE = "sessionize"
CAMPAIGN_STATS_QUERY = "campaign_stats"
MOVING_AVERAGE = "moving_average"
USER_STATUS_QUERY = "user_status"

QUERIES_OF_JOB = {
    DEDUPLICATE_JOB: (INGEST, DEDUPLICATE),
    ATTRIBUTE_JOB: (ATTRIBUTE, SESSIONIZE),
    MEASURE_JOB: (CAMPAIGN_STATS_QUERY, MOVING_AVERAGE, USER_STATUS_QUERY),
}
"""By job, its queries in the order in which rows flow."""
STATE_VALUE = "known"
"""Name of what a state function keeps of each key."""
OPTIONAL_JOBS = (MEASURE_JOB,)
"""Jobs that a lake may do without."""
JOB_OF_QUERY = {query: job for job, queries in QUERIES_OF_JOB.items() for query in queries}
"""By query, its job; in the order in which rows flow."""
READS: dict[str, Table | None] = {
    INGEST: None,
    DEDUPLICATE: BRONZE_EVENTS,
    ATTRIBUTE: SILVER_EVENTS,
    SESSIONIZE: SILVER_EVENTS,
    CAMPAIGN_STATS_QUERY: SILVER_EVENTS,
    MOVING_AVERAGE: SILVER_EVENTS,
    USER_STATUS_QUERY: SILVER_EVENTS,
}
"""By query, the table that it reads; ingest reads what comes from outside."""
FOLLOWING = (DEDUPLICATE, ATTRIBUTE)
"""Queries on the way of a row from outside to gold/attributions, where somebody may be waiting for it. What the others
put out is due minutes after its events."""
PASSES = {ATTRIBUTE: 2, CAMPAIGN_STATS_QUERY: 3}
"""By query, how often it reads each row, where that is not once: a join reads its input for either side."""
WRITES: dict[str, Table] = {
    INGEST: BRONZE_EVENTS,
    DEDUPLICATE: SILVER_EVENTS,
    ATTRIBUTE: ATTRIBUTIONS,
    SESSIONIZE: SESSIONS,
    CAMPAIGN_STATS_QUERY: CAMPAIGN_STATS,
    MOVING_AVERAGE: MOVING_AVERAGES,
    USER_STATUS_QUERY: USER_STATUS,
}
"""By query, the table that it writes."""


def jobs_of_run(*, measure: bool) -> tuple[str, ...]:
    """The jobs of a bounded run, with the optional ones or without."""
    return tuple(job for job in QUERIES_OF_JOB if measure or job not in OPTIONAL_JOBS)
