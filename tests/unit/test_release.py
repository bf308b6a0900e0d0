"""A release is made of a commit, and names each jar as Maven does."""

import subprocess
from pathlib import Path

import pytest

from infra.release import ReleaseError, release
from infra.sbom import _component
from spark_jobs.spark.jars.lock import Jar


def test_what_is_not_committed_is_refused_by_name_and_nothing_is_made(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "init", "--quiet", str(checkout)], check=True)
    for number in range(7):
        (checkout / f"new{number}.py").touch()
    with pytest.raises(
        ReleaseError, match=r"^new0.py, new1.py, new2.py, new3.py, new4.py and 2 more not committed: .*"
    ):
        release(checkout, tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_a_folder_without_git_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ReleaseError, match=r"git status failed in .*not a git repository"):
        release(tmp_path, tmp_path / "made")


@pytest.mark.parametrize(
    ("jar", "purl"),
    [
        pytest.param(Jar("org.acme", "tool", "1.0", "", "0"), "pkg:maven/org.acme/tool@1.0", id="plain"),
        pytest.param(
            Jar("org.acme", "tool_2.13", "1+2", "linux", "0"),
            "pkg:maven/org.acme/tool_2.13@1%2B2?classifier=linux",
            id="classifier",
        ),
        pytest.param(
            Jar("org.acme", "tool", "1.0", "all", "0", "tar.gz"),
            "pkg:maven/org.acme/tool@1.0?classifier=all&type=tar.gz",
            id="archive",
        ),
    ],
)
def test_a_jar_has_its_package_url(jar: Jar, purl: str) -> None:
    assert _component(jar)["purl"] == purl
