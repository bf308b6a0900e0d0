"""Polars doing the main job's work in one batch: `python polars_batch.py SOURCE OUT`. An upper bound, not a peer."""

import sys
from pathlib import Path

import polars as pl

_SCHEMA = {
    "event_type": pl.String,
    "event_id": pl.String,
    "event_time": pl.String,
    "user_id": pl.String,
    "campaign_id": pl.String,
    "ad_id": pl.String,
    "cost_micros": pl.Int64,
    "impression_id": pl.String,
}


def main(source: Path, out: Path) -> None:
    """Writes both tables as Parquet."""
    events = (
        pl.scan_ndjson(sorted(source.glob("*.jsonl")), schema=_SCHEMA)
        .with_columns(pl.col("event_time").str.to_datetime("%Y-%m-%dT%H:%M:%S%.3fZ", time_unit="us", time_zone="UTC"))
        .unique(["event_type", "event_id"], keep="any")
        .collect(engine="streaming")
    )
    _attributions(events).write_parquet(out / "attributions.parquet")
    _sessions(events).write_parquet(out / "sessions.parquet")


def _attributions(events: pl.DataFrame) -> pl.DataFrame:
    shown = events.filter(pl.col("event_type") == "impression").select(
        pl.col("event_id").alias("impression_id"),
        pl.col("event_time").alias("impression_time"),
        "campaign_id",
        "ad_id",
        "user_id",
        "cost_micros",
    )
    clicks = events.filter(pl.col("event_type") == "click").select(
        pl.col("event_id").alias("click_id"),
        pl.col("event_time").alias("click_time"),
        "impression_id",
        pl.col("user_id").alias("clicked_by"),
    )
    delay = pl.col("click_time") - pl.col("impression_time")
    clicked = shown.join(clicks, on="impression_id").filter(delay.is_between(pl.duration(), pl.duration(hours=1)))
    unclicked = shown.join(clicked, on="impression_id", how="anti")
    orphans = clicks.join(clicked, on="click_id", how="anti").rename({"clicked_by": "user_id"})
    parts = [
        clicked.drop("clicked_by").with_columns(status=pl.lit("clicked")),
        unclicked.with_columns(status=pl.lit("unclicked")),
        orphans.with_columns(status=pl.lit("orphan_click")),
    ]
    return pl.concat(parts, how="diagonal")


def _sessions(events: pl.DataFrame) -> pl.DataFrame:
    columns = ["user_id", "event_time", "event_id", "event_type"]
    in_order = events.select(columns).sort(columns)
    silence = pl.col("event_time").diff().over("user_id")
    return (
        in_order.with_columns(number=(silence > pl.duration(minutes=5)).fill_null(value=True).cum_sum())
        .group_by("user_id", "number")
        .agg(
            session_start=pl.col("event_time").min(),
            session_end=pl.col("event_time").max(),
            event_count=pl.len(),
            events=pl.struct("event_time", "event_id", "event_type"),
        )
        .drop("number")
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
