"""The records that were refused."""

from spark_jobs.contract.events import INVALID_UTF8, OK, RECORD_TOO_LARGE
from spark_jobs.sql.views.description import View

VIEW = View(
    "quarantine",
    "One row per record that did not fit and was not requeued since.",
    (
        ("verdict", "the first rule that the record breaks"),
        ("reason", "the expression that failed, and what the record has"),
        ("raw", "the record as received; bytes that are not UTF-8 are decoded as ISO-8859-1"),
        ("source", "origin: file and byte range, or topic, partition and offset"),
        ("ingest_time", "when its batch was planned"),
    ),
    f"""
WITH refused AS (
    SELECT
        verdict, reason, raw, source, ingest_time,
        verdict IN ('{INVALID_UTF8}', '{RECORD_TOO_LARGE}') AND contains(source, '#bytes=') AS may_not_fit
    FROM bronze
    WHERE verdict <> '{OK}'
), again AS (
    SELECT raw, source, requeued_from AS ingest_time, count(*) AS times
    FROM bronze
    WHERE requeued_from IS NOT NULL
    GROUP BY ALL
), each AS (
    SELECT
        refused.*, times,
        count(*) OVER (PARTITION BY raw, source, ingest_time) AS same,
        row_number() OVER (PARTITION BY raw, source, ingest_time, may_not_fit) AS nth
    FROM refused LEFT JOIN again USING (raw, source, ingest_time)
)
SELECT verdict, reason, raw, source, ingest_time
FROM each
-- Rows that are equal were requeued together, but for those whose bytes are no text: these stay.
WHERE times IS NULL OR (may_not_fit AND nth <= same - times)
""",
)
