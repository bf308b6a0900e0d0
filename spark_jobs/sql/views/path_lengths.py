"""How many touches lead to a conversion, and how long it takes."""

from spark_jobs.sql.views.description import View

VIEW = View(
    "path_lengths",
    "One row per number of touches and outcome; refunds are left out.",
    (
        ("path_length", "touches that led to the conversion"),
        ("outcome", "click_through, view_through or organic"),
        ("conversions", "conversions with such a path"),
        ("share", "part of all conversions"),
        ("hours_from_first", "median time from the first touch to the conversion, in hours; null if it has no touch"),
        ("hours_from_last", "median time from the last touch to the conversion, in hours"),
    ),
    """
SELECT
    path_length,
    outcome,
    count(*) AS conversions,
    count(*) / sum(count(*)) OVER () AS share,
    median(epoch_us(conversion_time) - epoch_us(touches[1].touch_time)) / 3.6e9 AS hours_from_first,
    median(epoch_us(conversion_time) - epoch_us(touches[-1].touch_time)) / 3.6e9 AS hours_from_last
FROM paths
WHERE revokes IS NULL
GROUP BY path_length, outcome
ORDER BY path_length, outcome
""",
)
