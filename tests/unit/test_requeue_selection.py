"""What cannot be selected for a requeue is refused, and the message says why."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_jobs.errors import SettingsError
from spark_jobs.ingest.requeue_model import Selection

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        pytest.param({"verdicts": ("missing_user_id", "bad")}, "verdict 'bad' is no verdict; there are", id="unknown"),
        pytest.param({"verdicts": ("ok",)}, "verdict 'ok' is never in quarantine", id="ok"),
        pytest.param({"since": _NOON.replace(tzinfo=None)}, "since 2026-03-01 12:00:00 has no zone", id="since"),
        pytest.param({"until": _NOON.replace(tzinfo=None)}, "until 2026-03-01 12:00:00 has no zone", id="until"),
        pytest.param({"since": _NOON, "until": _NOON}, "is not before until", id="nothing between"),
        pytest.param({"since": _NOON, "until": _NOON - timedelta(hours=1)}, "is not before until", id="backwards"),
    ],
)
def test_a_selection_of_nothing_is_refused(selection: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Selection(**selection)
