"""Events that came too late for the streams."""

from spark_jobs.sql.views.description import View

VIEW = View(
    "late",
    "One row per event that came too late for silver and that `adloom repair` has found. Unless it is expired, gold "
    "has been corrected for it; `restatements` says how.",
    (
        ("event_type", "impression, click, activity or conversion"),
        ("event_id", "unique within its event type"),
        ("event_time", "when the event happened"),
        ("received_at", "when it was received"),
        ("delay_ms", "received_at - event_time in milliseconds"),
        ("user_id", "user the event belongs to"),
        ("campaign_id", "impressions only"),
        ("cost_micros", "impressions only: cost in micro-units of currency"),
        ("cause", "late_impression, late_click, late_activity, late_conversion, or requeue"),
        ("is_expired", "whether it came later than repair.horizon allows, and so corrected nothing"),
        ("repair", "number of the repair that found it"),
    ),
    """
SELECT
    event_type, event_id, event_time, ingest_time AS received_at,
    epoch_ms(ingest_time) - epoch_ms(event_time) AS delay_ms,
    user_id, campaign_id, cost_micros, cause, is_expired, repair
FROM late_events
""",
)
