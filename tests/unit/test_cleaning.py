"""Only checkpoints superseded for long enough are removed, and nothing outside their folder."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.errors import CheckpointError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import hold_job
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.manifests import new_manifest, write_manifest
from spark_jobs.queries.places import checkpoint_in_use, checkpoint_key, manifest_key
from spark_jobs.streams.checkpoints import list_checkpoints
from spark_jobs.streams.clean_checkpoints import find_superseded, parse_targets, remove
from tests.support.drivers import ADLOOM

_NOW = datetime.now(UTC)
_WEEK = timedelta(days=7)
_MONTH_AGO = _NOW - timedelta(days=30)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three versions of a checkpoint: v2 was created a month ago, v3 an hour ago."""
    lake = open_lake(str(tmp_path / "lake"))
    for version, created_at in ((1, _MONTH_AGO), (2, _MONTH_AGO), (3, _NOW - timedelta(hours=1))):
        _create(lake, version, created_at)
    return lake


def _create(lake: Lake, version: int, created_at: datetime) -> None:
    lake.files.write(f"{checkpoint_key('sessionize', version)}/offsets/0", b"v1")
    manifest = new_manifest("sessionize", Settings(), "files").model_copy(update={"created_at": created_at})
    write_manifest(lake, manifest, version)


def _leave(lake: Lake, version: int) -> None:
    """What a reset that was killed a month ago left behind."""
    file = f"{checkpoint_key('sessionize', version)}/offsets/0"
    lake.files.write(file, b"v1")
    os.utime(lake.path / file, (_MONTH_AGO.timestamp(), _MONTH_AGO.timestamp()))


def _fates(lake: Lake) -> dict[int, str]:
    return {finding.checkpoint.version: finding.why for finding in find_superseded(lake, _WEEK, _NOW)}


def test_what_was_superseded_long_ago_is_removed_and_the_rest_stays(lake: Lake) -> None:
    fates = _fates(lake)
    assert fates[1] == ""
    assert fates[2].startswith("kept for 6d23h")
    assert fates[3] == "in use"
    first = next(found for found in list_checkpoints(lake) if found.version == 1)
    remove(lake, first, S3Settings(), _WEEK, _NOW)
    assert lake.files.names("_checkpoints/attribute/sessionize") == ["v2", "v2.json", "v3", "v3.json"]


@pytest.mark.parametrize("version", [2, 3])
def test_a_checkpoint_that_must_stay_is_not_removed_on_request(lake: Lake, version: int) -> None:
    found = next(found for found in list_checkpoints(lake) if found.version == version)
    before = sorted(file.key for file in lake.files.walk(""))
    with pytest.raises(CheckpointError, match=f"v{version} stays"):
        remove(lake, found, S3Settings(), _WEEK, _NOW)
    assert [key for key in sorted(file.key for file in lake.files.walk("")) if "lock" not in key] == before


def _clean(lake: Lake, *targets: str) -> subprocess.CompletedProcess[str]:
    # In another process: one is not kept out by its own lock.
    clean = [*ADLOOM, "checkpoints", "clean", *targets, "--lake", str(lake.path), "--delete"]
    return subprocess.run(clean, capture_output=True, text=True, check=False, timeout=60)


def test_what_is_superseded_goes_while_the_job_runs_on_its_successor(lake: Lake) -> None:
    with hold_job(lake, "attribute", S3Settings()):
        done = _clean(lake)
    assert done.returncode == 0, done.stderr
    assert "1 removed" in done.stdout
    assert lake.files.names("_checkpoints/attribute/sessionize") == ["v2", "v2.json", "v3", "v3.json"]


def test_what_a_killed_reset_left_waits_for_the_job_to_stop_and_holds_up_nothing_else(lake: Lake) -> None:
    # A reset, which holds the job's lock, may be writing there.
    _leave(lake, 4)
    with hold_job(lake, "attribute", S3Settings()):
        done, named = _clean(lake), _clean(lake, "attribute/sessionize/v4")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "attribute/sessionize/v4 stays: left by an unfinished reset; job attribute" in text
    assert "is being run by another process" in text
    assert "1 removed" in text
    assert (named.returncode, "attribute/sessionize/v4 stays" in named.stderr) == (1, True)
    names = ["v2", "v2.json", "v3", "v3.json"]
    assert lake.files.names("_checkpoints/attribute/sessionize") == [*names, "v4"]
    assert _clean(lake).returncode == 0
    assert lake.files.names("_checkpoints/attribute/sessionize") == names


def test_a_checkpoint_without_a_manifest_or_with_a_damaged_successor_stays(lake: Lake) -> None:
    lake.files.delete([manifest_key("sessionize", 1)])
    assert _fates(lake)[1] == "it has no manifest, so its owner is unknown"
    _create(lake, 1, _MONTH_AGO)
    lake.files.write(manifest_key("sessionize", 2), b"{half a fi")
    assert _fates(lake)[1] == "the manifest of its successor v2 is damaged"


def test_an_unfinished_reset_is_not_mistaken_for_the_checkpoint_in_use(lake: Lake) -> None:
    lake.files.write(f"{checkpoint_key('sessionize', 4)}/offsets/0", b"v1")
    assert checkpoint_in_use(lake, "sessionize") == 3
    assert _fates(lake)[4].startswith("left by an unfinished reset; kept for ")


def test_what_a_killed_reset_left_is_removed_after_the_retention(lake: Lake) -> None:
    _leave(lake, 4)
    assert _fates(lake)[4] == ""
    left = next(found for found in list_checkpoints(lake) if found.version == 4)
    remove(lake, left, S3Settings(), _WEEK, _NOW)
    assert checkpoint_in_use(lake, "sessionize") == 3
    assert "v4" not in lake.files.names("_checkpoints/attribute/sessionize")


def test_a_symbolic_link_is_not_followed(lake: Lake, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "offsets").mkdir(parents=True)
    (precious / "offsets" / "0").write_text("not to be lost")
    place = lake.path / checkpoint_key("sessionize", 1)
    lake.files.delete([f"{checkpoint_key('sessionize', 1)}/offsets/0"])
    place.symlink_to(precious)
    found = next(found for found in list_checkpoints(lake) if found.version == 1)
    with pytest.raises(CheckpointError, match="it is a symbolic link to"):
        remove(lake, found, S3Settings(), _WEEK, _NOW)
    assert (precious / "offsets" / "0").read_text() == "not to be lost"


@pytest.mark.parametrize(
    "target",
    [
        "",
        "/",
        ".",
        "..",
        "attribute",
        "attribute/sessionize",
        "attribute/sessionize/v0",
        "attribute/sessionize/v1/",
        "attribute/sessionize/v1/state",
        "attribute/sessionize/../sessionize/v1",
        "../attribute/sessionize/v1",
        "/attribute/sessionize/v1",
        "attribute/sessionize/v1\n",
        "attribute/sessionize_old/v1",
        "deduplicate/sessionize/v1",
        "attribute/sessionize/v1.json",
        "attribute/sessionize/v-1",
        "attribute//v1",
        "attribute\\sessionize\\v1",
        "file:///lake/_checkpoints/attribute/sessionize/v1",
    ],
)
def test_only_the_name_of_a_checkpoint_is_accepted(target: str) -> None:
    with pytest.raises(CheckpointError, match="is not the name of a checkpoint"):
        parse_targets([target])


def test_a_name_is_accepted_and_a_missing_checkpoint_is_an_error(lake: Lake) -> None:
    assert parse_targets(["attribute/sessionize/v12"]) == {("sessionize", 12)}
    with pytest.raises(CheckpointError, match="has no checkpoint attribute/sessionize/v12"):
        list(find_superseded(lake, _WEEK, _NOW, {("sessionize", 12)}))
