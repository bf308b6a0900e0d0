"""The generator's options: refusals and defaults."""

from datetime import UTC, datetime
from typing import Any

import pytest

from spark_jobs.errors import SettingsError
from spark_jobs.generator.spec import GeneratorSpec


@pytest.mark.parametrize(
    ("values", "text"),
    [
        pytest.param({"events": 0}, "events 0", id="no-events"),
        pytest.param({"duplicates": -0.01}, "duplicates -0.01", id="negative-share"),
        pytest.param({"late": 1.01}, "late 1.01", id="share-above-one"),
        pytest.param({"malformed": float("nan")}, "malformed nan", id="share-not-a-number"),
        pytest.param({"orphans": 2}, "orphans 2", id="orphans-above-one"),
        pytest.param({"conversions": -1}, "conversions -1", id="negative-conversions"),
        pytest.param({"bots": 1.5}, "bots 1.5", id="bots-above-one"),
        pytest.param({"hours": 0}, "hours 0", id="no-time"),
        pytest.param({"hours": -1e300}, "hours -1e+300", id="negative-time"),
        pytest.param({"hours": float("nan")}, "hours nan", id="time-not-a-number"),
        pytest.param({"hours": float("inf")}, "hours inf", id="endless"),
        pytest.param({"files": 0}, "files 0", id="no-files"),
        pytest.param({"files": 100_001}, "files 100001", id="too-many-files"),
        pytest.param({"users": 0}, "users 0", id="no-users"),
        pytest.param({"campaigns": 0}, "campaigns 0", id="no-campaigns"),
        pytest.param({"start": datetime(2025, 1, 6)}, "no time zone", id="naive-start"),  # noqa: DTZ001
        pytest.param({"start": datetime(1969, 1, 6, tzinfo=UTC)}, "1969-01-06", id="before-the-epoch"),
        pytest.param({"start": datetime(2099, 1, 6, tzinfo=UTC)}, "2099-01-06", id="far-future"),
    ],
)
def test_a_value_outside_its_limits_is_refused_with_name_and_value(values: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        GeneratorSpec(**({"events": 10} | values))
    assert text in str(refusal.value)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_both_ends_of_a_share_are_allowed(share: float) -> None:
    spec = GeneratorSpec(events=10, duplicates=share, late=share, malformed=share, orphans=share)
    assert spec.record_count == 10 + 2 * round(10 * share)


@pytest.mark.parametrize(("events", "users"), [(1, 50), (1000, 50), (100_000, 5000)])
def test_the_number_of_users_follows_the_number_of_events_by_default(events: int, users: int) -> None:
    assert GeneratorSpec(events=events).user_count == users
    assert GeneratorSpec(events=events, users=7).user_count == 7
