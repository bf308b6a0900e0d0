"""What conversions are credited with, summed by the SQL that all views of credit share."""

import duckdb
import pytest

from spark_jobs.config.choices import CreditModel
from spark_jobs.contract.tables import CREDITS, PATHS
from spark_jobs.sql.views import campaign_returns, credit_models, net_returns
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


@pytest.mark.parametrize("models", [[], ["last_click"]], ids=["nothing is credited", "one model"])
def test_a_campaign_that_spent_and_sold_nothing_has_a_row_in_each_view_of_returns(models: list[str]) -> None:
    with duckdb.connect() as sql:
        sql.execute(
            "CREATE TABLE daily_campaigns AS SELECT * FROM (VALUES "
            "('c-spent', 9000000), ('c-sold', 1000000), ('c-free', NULL)) AS t(campaign_id, cost_micros)"
        )
        sql.execute(
            "CREATE TABLE daily_credits (event_date DATE, campaign_id VARCHAR, model VARCHAR, currency VARCHAR, "
            "conversions DOUBLE, refunds DOUBLE, value_micros BIGINT)"
        )
        key = "conversion_id VARCHAR, conversion_time TIMESTAMP, event_date DATE"
        for net in ("", "net_"):
            sql.execute(f"CREATE TABLE {net}paths ({key}, revokes VARCHAR)")
            sql.execute(
                f"CREATE TABLE {net}credits ({key}, campaign_id VARCHAR, model VARCHAR, currency VARCHAR, "
                "weight_ppm BIGINT, credit_micros BIGINT)"
            )
        for model in models:
            sql.execute(f"INSERT INTO daily_credits VALUES ('2026-03-01', 'c-sold', '{model}', 'EUR', 1, 0, 25000000)")
        of_spent = "WHERE campaign_id = 'c-spent'"
        returned = sql.execute(f"SELECT * FROM ({campaign_returns.VIEW.sql}) {of_spent} ORDER BY model").fetchall()
        expected = sorted(models or [model.value for model in CreditModel])
        assert returned == [("c-spent", model, None, 9_000_000, 0, 0, None, 0.0) for model in expected]
        (free,) = sql.execute(
            f"SELECT DISTINCT cost_micros, roas FROM ({campaign_returns.VIEW.sql}) WHERE campaign_id = 'c-free'"
        ).fetchall()
        assert free == (None, None)
        net_rows = sql.execute(f"SELECT * FROM ({net_returns.VIEW.sql}) {of_spent} ORDER BY model").fetchall()
        assert net_rows == [("c-spent", model, None, 0, 0, 0, 0) for model in expected]
        (by_model,) = sql.execute(f"SELECT * FROM ({credit_models.VIEW.sql}) {of_spent}").fetchall()
        assert by_model == ("c-spent", None, *(0 if model in expected else None for model in CreditModel))
