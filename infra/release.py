"""``make release``: what is given to users, in ``build/release``, the same bytes whenever it is made of a commit.

It holds the wheel and the sdist, the locked requirements with their hashes, a bill of materials, and ``SHA256SUMS``.
All is made from the last commit, whose time is the time of each file. Another zlib may compress to other bytes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

from infra.sbom import sbom
from infra.uv import exported
from spark_jobs.spark.jars.lock import digest

_SUMS = "SHA256SUMS"
_MOST_NAMED = 5


class ReleaseError(Exception):
    """Raised when a release cannot be made of a checkout as it is."""


def release(checkout: Path, target: Path) -> None:
    """Makes the release of the last commit of ``checkout`` in ``target``, whose content is replaced.

    Raises:
        ReleaseError: something is not committed, or the packages cannot be built.
    """
    _check_clean(checkout)
    time = int(_git(checkout, "log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "source", Path(folder) / "made"
        with tarfile.open(fileobj=BytesIO(_git(checkout, "archive", "--format=tar", "HEAD"))) as archive:
            archive.extractall(source, filter="data")
        version = _build(source, made, time)
        _requirements(source, made / f"adloom-{version}-requirements.txt")
        bill = json.dumps(sbom(source, version, time), indent=2)
        (made / f"adloom-{version}.cdx.json").write_text(f"{bill}\n", encoding="utf-8")
        sums = [f"{digest(file)}  {file.name}\n" for file in sorted(made.iterdir())]
        (made / _SUMS).write_text("".join(sums), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)


def _check_clean(checkout: Path) -> None:
    changed = [line[3:] for line in _git(checkout, "status", "--porcelain").decode().splitlines()]
    if changed:
        more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
        raise ReleaseError(
            f"{', '.join(changed[:_MOST_NAMED])}{more} not committed: a release is made of a commit, so that anybody "
            "can make it again; commit or stash first"
        )


def _git(checkout: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]} failed in {checkout}: {done.stderr.decode().strip()}")
    return done.stdout


def _build(source: Path, folder: Path, time: int) -> str:
    """Builds wheel and sdist into ``folder`` with the locked build tool; returns the version."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time)}
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"the packages could not be built: {(done.stderr or done.stdout).strip()}")
    version = re.fullmatch(r"adloom-(.+?)-.*\.whl", next(folder.glob("*.whl")).name)
    assert version  # noqa: S101 a wheel has such a name
    return version[1]


def _requirements(source: Path, file: Path) -> None:
    command = exported("--no-emit-project", "--no-annotate", "--no-header", "--output-file", str(file))
    subprocess.run(command, cwd=source, check=True, stdout=sys.stderr)


def main() -> None:
    """Makes the release of this checkout and prints its sums."""
    checkout = Path(__file__).resolve().parents[1]
    target = checkout / "build" / "release"
    try:
        release(checkout, target)
    except ReleaseError as error:
        sys.exit(f"release: {error}")
    sys.stdout.write(f"{(target / _SUMS).read_text(encoding='utf-8')}release: {target}\n")


if __name__ == "__main__":
    main()
