"""Locks of a local lake: whoever is refused takes nothing from the holder, in the same process or in another."""

import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import LakeInUseError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CREDIT, REPAIR
from spark_jobs.queries.jobs import ATTRIBUTE_JOB

_OTHER = """
import sys
from spark_jobs.config.sections import S3Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.lock import hold_job
with hold_job(open_lake(sys.argv[1]), sys.argv[2], S3Settings()):
    print("held")
"""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


def _another_process(lake: Lake, job: str) -> str:
    command = [sys.executable, "-c", _OTHER, str(lake.path), job]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_a_second_who_asks_is_refused_and_the_first_keeps_the_lock(lake: Lake) -> None:
    with hold_job(lake, REPAIR, S3Settings()):
        with pytest.raises(LakeInUseError), hold_job(lake, REPAIR, S3Settings()):
            pytest.fail("held twice")
        assert "LakeInUseError" in _another_process(lake, REPAIR)
        assert _another_process(lake, CREDIT) == "held"
    assert _another_process(lake, REPAIR) == "held"


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (ATTRIBUTE_JOB, "job attribute of lake .* would corrupt its checkpoints"),
        (
            REPAIR,
            "^a repair, a replay, marks that are applied, .* is at work in lake .* wait for it to end",
        ),
        (CREDIT, "^credit, or maintenance or a backup of its tables is at work in lake"),
        ("lineage", "^lineage is at work in lake"),
    ],
)
def test_a_refusal_names_what_is_at_work(lake: Lake, job: str, said: str) -> None:
    with (
        hold_job(lake, job, S3Settings()),
        pytest.raises(LakeInUseError, match=said),
        hold_job(lake, job, S3Settings()),
    ):
        pytest.fail("held twice")
