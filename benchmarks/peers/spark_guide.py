"""PySpark as its Structured Streaming guide writes it: `python spark_guide.py SOURCE OUT CORES PARTITIONS`.

Spark's defaults except for the heap and PARTITIONS. Open results are emitted because the input ends with events a year
later; README.md says more.
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import array_sort, coalesce, col, collect_list, count, expr, session_window, struct, when
from pyspark.sql.functions import max as latest
from pyspark.sql.functions import min as earliest

_SCHEMA = (
    "event_type STRING, event_id STRING, event_time TIMESTAMP, user_id STRING, campaign_id STRING, ad_id STRING, "
    "cost_micros BIGINT, impression_id STRING"
)


def main(source: Path, out: Path, cores: int, partitions: int) -> None:
    """Runs both queries to the end of the input."""
    spark = (
        SparkSession.builder.appName("guide")
        .master(f"local[{cores}]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(partitions))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    tables = {"attributions": _attributions(_events(spark, source)), "sessions": _sessions(_events(spark, source))}
    started = [
        rows.writeStream.format("parquet")
        .option("path", str(out / name))
        .option("checkpointLocation", str(out / "checkpoints" / name))
        .trigger(availableNow=True)
        .start()
        for name, rows in tables.items()
    ]
    for query in started:
        query.awaitTermination()
    spark.stop()


def _events(spark: SparkSession, source: Path) -> DataFrame:
    events = spark.readStream.schema(_SCHEMA).json(str(source))
    return events.withWatermark("event_time", "3 hours").dropDuplicatesWithinWatermark(["event_type", "event_id"])


def _attributions(events: DataFrame) -> DataFrame:
    impressions = events.where("event_type = 'impression'").select(
        col("event_id").alias("shown_id"),
        col("event_time").alias("impression_time"),
        col("user_id").alias("shown_to"),
        "campaign_id",
        "ad_id",
        "cost_micros",
    )
    clicks = events.where("event_type = 'click'").select(
        col("event_id").alias("click_id"),
        col("event_time").alias("click_time"),
        col("user_id").alias("clicked_by"),
        col("impression_id").alias("clicked_id"),
    )
    pairs = impressions.join(
        clicks,
        expr(
            "clicked_id = shown_id AND click_time >= impression_time "
            "AND click_time <= impression_time + INTERVAL 1 HOUR"
        ),
        "full_outer",
    )
    is_orphan, is_unclicked = col("shown_id").isNull(), col("click_id").isNull()
    return pairs.select(
        when(is_orphan, "orphan_click").when(is_unclicked, "unclicked").otherwise("clicked").alias("status"),
        coalesce("shown_id", "clicked_id").alias("impression_id"),
        "impression_time",
        "campaign_id",
        "ad_id",
        coalesce("shown_to", "clicked_by").alias("user_id"),
        "cost_micros",
        "click_id",
        "click_time",
    )


def _sessions(events: DataFrame) -> DataFrame:
    return (
        events.groupBy(session_window("event_time", "5 minutes"), "user_id")
        .agg(
            earliest("event_time").alias("session_start"),
            latest("event_time").alias("session_end"),
            count("*").alias("event_count"),
            array_sort(collect_list(struct("event_time", "event_id", "event_type"))).alias("events"),
        )
        .drop("session_window")
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
