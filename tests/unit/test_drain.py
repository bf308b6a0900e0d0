"""A drain closes the last event for everyone who asks whether something is closed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_jobs.config.durations import EPOCH, ROUNDING, milliseconds
from spark_jobs.config.settings import Settings
from spark_jobs.queries.registry import QUERIES
from spark_jobs.streams.drain import drain_lead

_LAST = datetime(2026, 3, 1, 12, tzinfo=UTC)
_LONGEST: dict[str, dict[str, Any]] = {
    "attribute": {},
    "sessionize": {"sessionize": {"gap": "6h"}},
    "campaign_stats": {"campaign_stats": {"window": "6h"}},
    "moving_average": {"moving_average": {"timeout": "6h"}},
    "user_status": {"user_status": {"idle_after": "6h"}},
}
"""Settings under which each of the queries holds rows the longest."""


@pytest.mark.parametrize("name", _LONGEST)
@pytest.mark.parametrize("fraction_us", [0, 1, 500, 999])
def test_after_a_drain_the_last_event_is_closed_whatever_its_fraction_of_a_millisecond(
    name: str, fraction_us: int
) -> None:
    settings, last = Settings.model_validate(_LONGEST[name]), _LAST + timedelta(microseconds=fraction_us)
    longest = max(QUERIES, key=lambda query: query.closes_after(settings))
    assert longest.name == name
    for query in QUERIES:
        delay = query.watermark(settings)
        if delay is None or not query.closes_after(settings):
            continue
        beat = last + drain_lead(settings)
        # Spark takes the newest time in whole milliseconds.
        watermark = EPOCH + timedelta(milliseconds=milliseconds(beat - EPOCH)) - delay
        held = query.closes_after(settings) - delay
        # Strictly, because some ask whether it has passed and some whether it has come so far.
        assert last < watermark - held - ROUNDING, query.name
