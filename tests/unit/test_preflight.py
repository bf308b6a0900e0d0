"""`adloom preflight` says by its exit code whether a change is breaking, or whether it could not compare at all."""

import json
from pathlib import Path

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.manifest import FILES
from spark_jobs.queries.manifests import new_manifest, write_manifest
from spark_jobs.queries.places import checkpoint_key
from tests.unit.test_cli import adloom


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake with one checkpoint that a batch was planned in."""
    place = tmp_path / "lake"
    lake = open_lake(str(place))
    write_manifest(lake, new_manifest("sessionize", Settings(), FILES), 1)
    lake.files.write(f"{checkpoint_key('sessionize', 1)}/offsets/0", b"v1")
    return place


def test_checkpoints_that_can_be_used_give_exit_code_0(lake: Path) -> None:
    assert adloom("preflight", "--lake", str(lake)).returncode == 0


def test_a_breaking_change_gives_exit_code_1(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADLOOM_SESSIONIZE__GAP", "7min")
    done = adloom("preflight", "--lake", str(lake), "--json")
    assert done.returncode == 1
    (change,) = json.loads(done.stdout)
    assert (change["query"], change["setting"], change["verdict"]) == ("sessionize", "sessionize.gap", "breaking")


@pytest.mark.parametrize(
    ("location", "variables", "why"),
    [
        pytest.param("{tmp}/none", {}, "no lake at", id="no-lake"),
        pytest.param("{tmp}/lake", {"ADLOOM_SESSIONIZE__GAP": "soon"}, "gap", id="wrong-setting"),
        pytest.param(
            "s3a://ads/lake",
            {"ADLOOM_S3__ENDPOINT": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"},
            "does not answer",
            id="store-is-away",
        ),
    ],
)
def test_what_cannot_be_compared_gives_exit_code_2_and_the_reason(
    lake: Path, monkeypatch: pytest.MonkeyPatch, location: str, variables: dict[str, str], why: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = adloom("preflight", "--lake", location.format(tmp=lake.parent), "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error:")
    assert why in done.stderr


def test_the_help_explains_the_exit_codes() -> None:
    text = " ".join(adloom("preflight", "--help").stdout.split())
    assert "1 if a change is breaking; 2 if they could not be compared" in text
