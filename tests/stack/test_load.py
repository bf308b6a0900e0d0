"""The short form of `make soak`: a steady load leaves nothing growing, and a burst drains."""

from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.soak import run_soak, soaking
from spark_jobs.contract.tables import BRONZE_EVENTS
from tests.support.lakes import read_table

pytestmark = [pytest.mark.stack, pytest.mark.slow]


@pytest.mark.timeout(2400)
def test_five_minutes_of_load_leave_nothing_growing_and_a_burst_drains(tmp_path: Path) -> None:
    with soaking(tmp_path / "soak") as soak:
        result = run_soak(soak, minutes=5, share=0.7, preload=100_000, burst_s=15, console=Console())
        assert len(read_table(soak.lake, BRONZE_EVENTS)) == soak.sent
    print({name: value for name, value in result.items() if name != "samples"})
    assert result["flat"] == {"backlog": True, "state_rows": True, "memory_mib": True}, result["samples"]
