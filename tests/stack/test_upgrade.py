"""The version before and this one on one lake, in turns: each goes on from the checkpoints of the other."""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from spark_jobs.contract.tables import CAMPAIGN_STATS, SUMS, VALID, Table
from spark_jobs.lake.layout import Lake
from tests.support.drivers import ADLOOM
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_table
from tests.support.oracle import Row

pytestmark = pytest.mark.stack

_BEFORE = "4f43fa2af2acc1a6cd5223f0decac2c124130c47"
_ROOT = Path(__file__).parents[2]
_LONGEST_S = 300


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the version before."""
    folder = tmp_path_factory.mktemp("before")
    packed = subprocess.run(
        ["git", "archive", _BEFORE, "spark_jobs", "expectations"], cwd=_ROOT, capture_output=True, check=False
    )
    if packed.returncode:
        pytest.skip(f"the version before is not in the history of this clone: {packed.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _run(code: Path, lake: Lake, source: Path, *arguments: str) -> None:
    """Runs what has arrived by the ``adloom`` of the folder ``code``."""
    # The folder in which Python starts comes first.
    assert ADLOOM[0] == sys.executable
    done = subprocess.run(
        [*ADLOOM, "run", "--lake", lake.root, "--source", str(source), *arguments],
        cwd=code,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_row_is_as_if_one_version_had_run_all_the_time(before: Path, lake: Lake, tmp_path: Path) -> None:
    # Of conversions the version before knows nothing.
    source = generate_source(tmp_path / "source", events=3000, seed=47, conversions=0)
    later = tmp_path / "later"
    later.mkdir()
    files = sorted(source.iterdir())
    for file in files:
        file.rename(later / file.name)
    # Upgraded, rolled back, and upgraded again; each goes on with what the other left open.
    for code, file in zip((before, _ROOT, before, _ROOT), files, strict=True):
        (later / file.name).rename(source / file.name)
        _run(code, lake, source, *(["--drain"] if file == files[-1] else []))
    assert_lake_equals_oracle(lake, source, read=_read)


def _read(lake: Lake, table: Table) -> list[Row]:
    """The rows of ``table``, with net where the version before, which does not know it, has left null: as gross."""
    rows = read_table(lake, table)
    if table != CAMPAIGN_STATS:
        return rows
    gross, net = ([table.column_names.index(name) for name in names] for names in (SUMS, VALID))
    assert None in {row[net[0]] for row in rows}, "the version before has written no window"
    filled = dict(zip(net, gross, strict=True))
    return [
        tuple(row[filled[n]] if n in filled and row[n] is None else row[n] for n in range(len(row))) for row in rows
    ]
