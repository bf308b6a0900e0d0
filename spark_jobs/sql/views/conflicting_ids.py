"""Ids that came with different contents: more than one event, of which only the first counts."""

from spark_jobs.contract.events import TYPE_FIELDS
from spark_jobs.sql.views.description import View

_FIELDS = ("event_time", "user_id", *(name for names in TYPE_FIELDS.values() for name in names if name != "data"))
_DIFFERING = ",\n        ".join(
    f"CASE WHEN count(DISTINCT coalesce({name}::VARCHAR, '')) > 1 THEN '{name}' END" for name in _FIELDS
)
VIEW = View(
    "conflicting_ids",
    "One row per event type and id whose records are not all alike. Copies differ in nothing that matters, so these "
    "are different events, and those within `deduplicate.watermark` of the first are not in silver. Two sources that "
    "number their events alike show here, and ids that are used again. It reads all of bronze.",
    (
        ("event_type", "impression, click, activity or conversion"),
        ("event_id", "the id"),
        ("sources", "the sources that gave it"),
        ("records", "how many records have it"),
        ("first_time", "the earliest event_time among them"),
        ("last_time", "the latest"),
        ("differing", "the fields in which they differ"),
    ),
    f"""
SELECT
    event_type, event_id, list(DISTINCT source_name ORDER BY source_name) AS sources, count(*) AS records,
    min(event_time) AS first_time, max(event_time) AS last_time,
    list_filter([
        {_DIFFERING}
    ], lambda name: name IS NOT NULL) AS differing
FROM bronze
WHERE verdict = 'ok'
GROUP BY event_type, event_id
HAVING count(*) > 1 AND len(differing) > 0
ORDER BY records DESC, event_type, event_id
""",
)
