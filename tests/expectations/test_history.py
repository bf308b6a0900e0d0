"""The results of validations that are kept in the lake."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from expectations.history import KEPT_RUNS, keep
from expectations.results import ValidationResult
from spark_jobs.contract.validation import VALIDATIONS, validation_key
from spark_jobs.lake.open import open_lake

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_only_the_latest_validations_keep_their_results(tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    times = [_NOON + timedelta(minutes=minute) for minute in range(KEPT_RUNS + 3)]
    for time in times:
        keep(lake, ValidationResult("_reports/index.html"), time)
    kept = [f"{VALIDATIONS}/{name}" for name in lake.files.names(VALIDATIONS)]
    assert kept == [validation_key(time) for time in times[3:]]
