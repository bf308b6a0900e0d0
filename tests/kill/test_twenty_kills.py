"""The long form: `make test-kill`."""

from pathlib import Path

import pytest

from spark_jobs.contracts.lake import Lake
from tests.support.drivers import kill_repeatedly
from tests.support.equality import assert_lake_equals_oracle, generate_source


@pytest.mark.kill
def test_twenty_kills_change_no_row(tmp_path: Path) -> None:
    source = generate_source(tmp_path / "source", events=40_000, seed=20, files=60)
    lake = Lake.at(str(tmp_path / "lake"))
    assert kill_repeatedly(source, lake.path, kills=20, longest_work_s=5, seed=21) == 20
    assert_lake_equals_oracle(lake, source)
