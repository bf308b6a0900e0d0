"""Days in a time zone: where they begin and end, when they are complete, and what the daily views count on them."""

from datetime import UTC, date, datetime, timedelta

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.config.durations import ROUNDING
from spark_jobs.config.settings import Settings
from spark_jobs.days.day import Day, date_in, dates_in, midnight
from spark_jobs.days.status import Evidence, TableProgress, next_days
from spark_jobs.sql.views import daily_campaigns, funnel
from spark_jobs.sql.zones import day_of

_ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",  # its clocks change by half an hour
    "America/Havana",  # they change at midnight
    "Pacific/Kiritimati",
    "Pacific/Pago_Pago",
)
_WALL = datetime(2026, 5, 1, tzinfo=UTC)


@given(
    st.datetimes(datetime(2012, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 it has a zone
    st.sampled_from(_ZONES),
)
def test_each_moment_lies_in_one_day(moment: datetime, zone: str) -> None:
    day = date_in(moment, zone)
    assert midnight(day, zone) <= moment < midnight(day + timedelta(days=1), zone)
    assert day in dates_in([moment.date()], zone)
    assert date_in(midnight(day, zone), zone) == day


def test_a_day_of_utc_lies_in_one_day_of_utc_and_in_two_of_another_zone() -> None:
    day = date(2026, 3, 31)
    assert dates_in([day], "UTC") == {day}
    assert dates_in([day], "Europe/Berlin") == {day, date(2026, 4, 1)}
    assert dates_in([day], "America/New_York") == {date(2026, 3, 30), day}


@pytest.mark.parametrize(
    ("day", "hours"),
    [(date(2026, 3, 28), 24), (date(2026, 3, 29), 23), (date(2026, 10, 25), 25)],
    ids=["no change", "summer begins", "summer ends"],
)
def test_a_day_is_complete_once_the_watermark_has_passed_its_local_end(day: date, hours: int) -> None:
    own = Day("attributions", day, zone="Europe/Berlin")
    assert own.end - own.start == timedelta(hours=hours)
    holds = timedelta(hours=1)
    due = own.end + holds + ROUNDING

    def status(watermark: datetime) -> str:
        standing = TableProgress("attributions", 7, watermark, own.end, has_upstream=True, holds=holds)
        evidence = Evidence([standing], [day], 0, None, (), timedelta(days=35), _WALL, "Europe/Berlin")
        (found,) = next_days([], evidence)
        assert found.zone == "Europe/Berlin"
        return found.status.value

    assert (status(due - timedelta(milliseconds=1)), status(due)) == ("open", "complete")


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", [(date(2026, 3, 31), 2, 2), (date(2026, 4, 1), 1, 0)]),
        ("Europe/Berlin", [(date(2026, 3, 31), 1, 1), (date(2026, 4, 1), 2, 1)]),
        ("America/New_York", [(date(2026, 3, 31), 3, 2)]),
    ],
)
def test_the_daily_views_count_by_the_local_day(zone: str, shown: list[tuple[date, int, int]]) -> None:
    with duckdb.connect() as sql:
        sql.execute("SET TimeZone = 'UTC'")
        sql.execute(day_of(zone))
        sql.execute(
            "CREATE TABLE attributions (status VARCHAR, impression_id VARCHAR, impression_time TIMESTAMPTZ, "
            "click_id VARCHAR, click_time TIMESTAMPTZ, campaign_id VARCHAR, user_id VARCHAR, cost_micros BIGINT, "
            "event_date DATE, invalid VARCHAR[], invalid_impression BOOLEAN)"
        )
        sql.execute("CREATE TABLE sessions (session_start TIMESTAMPTZ, click_count BIGINT, event_date DATE)")
        for number, (time, click) in enumerate(
            [("2026-03-31T21:59:59Z", "k1"), ("2026-03-31T23:30:00Z", "k2"), ("2026-04-01T01:00:00Z", None)]
        ):
            sql.execute(
                "INSERT INTO attributions SELECT $status, $id, $time, $click, $time, 'c1', 'u1', 7, $date, NULL, NULL",
                {
                    "status": "clicked" if click else "unclicked",
                    "id": f"i{number}",
                    "time": time,
                    "click": click,
                    "date": time[:10],
                },
            )
            sql.execute("INSERT INTO sessions VALUES (?, 1, ?)", [time, time[:10]])
        campaigns = sql.execute(f"SELECT event_date, impressions, clicks FROM ({daily_campaigns.VIEW.sql})").fetchall()
        steps = sql.execute(f"SELECT event_date, impressions, clicks, sessions FROM ({funnel.VIEW.sql})").fetchall()
    assert campaigns == shown
    assert steps == [(*row, row[1]) for row in shown]


def test_a_zone_that_nobody_knows_is_refused_with_a_name_that_somebody_does() -> None:
    with pytest.raises(ValueError, match="no time zone has the name 'Berlin'; a name is like Europe/Berlin"):
        Settings.model_validate({"days": {"zone": "Berlin"}})
