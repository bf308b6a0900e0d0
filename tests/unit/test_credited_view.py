"""What conversions are credited with, summed by the SQL that all views of credit share."""

import duckdb

from spark_jobs.contract.tables import CREDITS, PATHS
from spark_jobs.sql.views.credited import credited


def test_two_conversions_of_one_id_on_a_day_count_once_each() -> None:
    with duckdb.connect() as sql:
        key = "conversion_id VARCHAR, conversion_time TIMESTAMP, event_date DATE"
        sql.execute(f"CREATE TABLE paths ({key}, revokes VARCHAR)")
        sql.execute(f"CREATE TABLE credits ({key}, campaign_id VARCHAR, weight_ppm BIGINT, credit_micros BIGINT)")
        for hour in (8, 13):
            own = f"'o9', '2026-03-01 {hour:02}:00:00', '2026-03-01'"
            sql.execute(f"INSERT INTO paths VALUES ({own}, NULL)")
            sql.execute(f"INSERT INTO credits VALUES ({own}, 'c1', 1000000, 100)")
        assert sql.execute(credited(CREDITS, PATHS, "campaign_id")).fetchall() == [("c1", 2.0, 0.0, 200)]
