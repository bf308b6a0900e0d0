"""The events that count, computed from bronze date by date."""

from datetime import date, timedelta

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.contract.events import OK
from spark_jobs.queries.facts import BronzeTruth, events_of
from tests.support.invalid import NOON_US, event, frame

pytestmark = pytest.mark.derived
_DAY_S = 86_400.0
_FIRST = date(2026, 3, 1)


def test_dates_that_are_asked_for_piece_by_piece_have_all_their_events(spark: SparkSession) -> None:
    """An event on each of five days and a copy of each a day later, for which the id is used again."""
    events = [event("imp", f"i{day % 4}", day * _DAY_S, user_id="u") for day in range(5)]
    received = F.timestamp_micros(F.lit(NOON_US) + F.monotonically_increasing_id())
    silver = frame(spark, events).withColumn("ingest_time", received).localCheckpoint()
    of_record = {"verdict": F.lit(OK), "source": F.lit("file:1"), "requeued_from": F.lit(None).cast("timestamp")}
    copies = silver.withColumn("ingest_time", F.col("ingest_time") + F.expr("INTERVAL 1 HOUR"))
    bronze = silver.unionByName(copies).drop("event_date").withColumns(of_record)
    truth = BronzeTruth(bronze, silver, None, timedelta(hours=3))
    for asked in ([0], [2], [1, 2], [0, 1, 2, 3], [3, 4], [0, 4]):
        dates = [_FIRST + timedelta(days=day) for day in asked]
        found = [(row.event_date, row.event_id) for row in truth.of_dates(dates).collect()]
        due = [(row.event_date, row.event_id) for row in events_of(silver, None, None, None)(dates).collect()]
        assert sorted(found) == sorted(due) == [(day, f"i{place % 4}") for place, day in zip(asked, dates, strict=True)]
    truth.forget()
