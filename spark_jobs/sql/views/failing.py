"""The rows that failed validation."""

from spark_jobs.sql.views.description import View

VIEW = View(
    "failing",
    "One row per row of a table that failed its last validation.",
    (
        ("table", "name of the table"),
        ("reasons", "the expectations that the row fails"),
        ("row", "the row as a JSON object"),
    ),
    sql=None,
)
