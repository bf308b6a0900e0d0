"""The jobs, each a Spark application of its own, and the streaming queries that they run."""

from spark_jobs.contracts.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, Table

DEDUPLICATE_JOB = "deduplicate"
ATTRIBUTE_JOB = "attribute"

INGEST = "ingest"
DEDUPLICATE = "deduplicate"
ATTRIBUTE = "attribute"
SESSIONIZE = "sessionize"

QUERIES_OF_JOB = {DEDUPLICATE_JOB: (INGEST, DEDUPLICATE), ATTRIBUTE_JOB: (ATTRIBUTE, SESSIONIZE)}
"""By job, its queries in the order in which rows flow."""
JOB_OF_QUERY = {query: job for job, queries in QUERIES_OF_JOB.items() for query in queries}
"""By query, its job; in the order in which rows flow."""
READS: dict[str, Table | None] = {
    INGEST: None,
    DEDUPLICATE: BRONZE_EVENTS,
    ATTRIBUTE: SILVER_EVENTS,
    SESSIONIZE: SILVER_EVENTS,
}
"""By query, the table that it reads; ingest reads what comes from outside."""
PASSES = {ATTRIBUTE: 2}
"""By query, how often it reads each row, where that is not once: a join reads its input for either side."""
WRITES: dict[str, Table] = {
    INGEST: BRONZE_EVENTS,
    DEDUPLICATE: SILVER_EVENTS,
    ATTRIBUTE: ATTRIBUTIONS,
    SESSIONIZE: SESSIONS,
}
"""By query, the table that it writes."""
