"""Releases of this package in a lake: put there, chosen for a job, and brought to where the job runs."""

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.releases import (
    RELEASES,
    VERSION,
    Deployment,
    Release,
    deployment_key,
    release_key,
    wheel_key,
)
from spark_jobs.runtime.records import read_record, write_record


def publish(lake: Lake, wheel: Path, version: str, now: datetime) -> Release:
    """Puts ``wheel`` into ``lake`` as release ``version``; one that is there already stays as it is.

    Raises:
        LakeError: there is such a release with other contents.
    """
    data = wheel.read_bytes()
    release = Release(version=version, wheel=wheel.name, sha256=_digest(data), built_at=now)
    if known := _find_release(lake, version):
        if known.sha256 != release.sha256:
            raise LakeError(
                f"release {version} of {lake.root} holds other code (SHA-256 {known.sha256[:12]}…, and this is "
                f"{release.sha256[:12]}…): a release never changes; build one with another version"
            )
        return known
    lake.files.write(wheel_key(release), data)
    # Last: what has no such file is no release.
    write_record(lake, release_key(version), release)
    return release


def list_releases(lake: Lake) -> Iterator[Release]:
    """The releases of ``lake``, the newest first."""
    known = [found for name in lake.files.names(RELEASES) if (found := _find_release(lake, name))]
    yield from sorted(known, key=lambda release: release.built_at, reverse=True)


def read_release(lake: Lake, version: str) -> Release:
    """What is known of release ``version``.

    Raises:
        LakeError: there is none, or nobody can tell what it is.
    """
    found = _find_release(lake, version)
    if found is None:
        raise LakeError(f"lake {lake.root} has no release {version!r}; `adloom releases list` shows those it has")
    return found


def unpack(lake: Lake, release: Release, folder: Path | None = None) -> Path:
    """Brings ``release`` into a folder of its own below ``folder``, unless it is there.

    By default that is the user's own cache: what lies there is run, so nobody else may write to it.

    Returns:
        The folder to import it from.

    Raises:
        LakeError: the wheel is not there, or is not the one that was put there.
    """
    folder = folder or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "adloom" / "releases"
    place = folder / f"adloom-{release.sha256}"
    if place.is_dir():
        return place
    data = lake.files.read(wheel_key(release))
    if data is None or _digest(data) != release.sha256:
        found = "is missing" if data is None else f"has SHA-256 {_digest(data)}, not {release.sha256}"
        raise LakeError(
            f"{lake.place(wheel_key(release))} {found}: it is not what was released and is not run; build and deploy "
            "another release"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as draft:
        content = Path(draft) / "content"
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            wheel.extractall(content)
        if not place.is_dir():
            content.rename(place)
    return place


def deploy(lake: Lake, job: str, version: str, now: datetime) -> Deployment:
    """Has ``job`` run release ``version`` from its next start on.

    Raises:
        LakeError: there is no such release.
    """
    read_release(lake, version)
    before = read_deployment(lake, job)
    previous = before.previous if before and before.version == version else before.version if before else None
    deployment = Deployment(job=job, version=version, previous=previous, deployed_at=now)
    write_deployment(lake, deployment)
    return deployment


def write_deployment(lake: Lake, deployment: Deployment) -> None:
    """Says which release a job runs, and which it ran before."""
    write_record(lake, deployment_key(deployment.job), deployment)


def read_deployment(lake: Lake, job: str) -> Deployment | None:
    """Which release ``job`` is to run; None if none was deployed.

    Raises:
        LakeError: nobody can tell.
    """
    return read_record(lake, deployment_key(job), Deployment, remedy="deploy a release anew")


def release_before(lake: Lake, job: str) -> str:
    """The version that ``job`` ran before the present one.

    Raises:
        LakeError: there is none.
    """
    now = read_deployment(lake, job)
    if now is None or now.previous is None:
        raise LakeError(f"job {job} has no release to go back to; `adloom releases deploy {job} VERSION` takes one")
    return now.previous


def _find_release(lake: Lake, version: str) -> Release | None:
    if not VERSION.fullmatch(version):
        return None
    return read_record(lake, release_key(version), Release, remedy="build it anew")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
