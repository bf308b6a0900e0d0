"""The version of a time, where the clocks of those who commit differ."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_jobs.contract.tables import ATTRIBUTIONS
from spark_jobs.errors import LakeError
from spark_jobs.lake.as_of import AsOf, version_as_of
from spark_jobs.lake.layout import commit_key
from spark_jobs.lake.open import open_lake

_START = datetime(2026, 3, 1, tzinfo=UTC)


@given(jumps=st.lists(st.integers(-300, 300), min_size=1, max_size=12))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_later_time_never_has_an_earlier_version(jumps: list[int], tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    for file in list(lake.files.walk("")):
        lake.files.delete([file.key])
    clocks = [_START + timedelta(seconds=60 * version + jump) for version, jump in enumerate(jumps)]
    for version, clock in enumerate(clocks):
        info = {"commitInfo": {"timestamp": int(clock.timestamp()) * 1000}}
        lake.files.write(commit_key(ATTRIBUTIONS, version), json.dumps(info).replace(": ", ":").encode())

    def at(time: datetime) -> int:
        try:
            return version_as_of(lake, ATTRIBUTIONS, AsOf(time)) or 0
        except LakeError:
            assert time < clocks[0]
            return -1

    times = sorted({*clocks, *(clock - timedelta(seconds=1) for clock in clocks)})
    found = [at(time) for time in times]
    assert all(one <= next_one for one, next_one in pairwise(found))
    for time, version in zip(times, found, strict=True):
        # All up to it were committed by then, by every clock; the next one was not.
        assert all(clock <= time for clock in clocks[: version + 1])
        assert version + 1 == len(clocks) or max(clocks[: version + 2]) > time
