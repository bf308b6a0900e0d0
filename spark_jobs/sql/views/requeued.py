"""The records that were refused first and fitted later."""

from spark_jobs.sql.views.description import View

VIEW = View(
    "requeued",
    "One row per record that was in quarantine until `adloom requeue` judged it again.",
    (
        ("requeued_from", "ingest_time of the quarantined row"),
        ("requeued_at", "when it was requeued"),
        ("source_name", "the source in the settings that it belongs to"),
        ("raw", "the record as received"),
        ("source", "origin: file and byte range, or topic, partition and offset"),
    ),
    """
SELECT requeued_from, ingest_time AS requeued_at, source_name, raw, source
FROM bronze
WHERE requeued_from IS NOT NULL
""",
)
