"""Releases of this package in a lake: publishing, deploying for a job, and unpacking where the job runs."""

import fcntl
import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_jobs.errors import LakeError, SettingsError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import read_record, write_record
from spark_jobs.operations.release import SETTINGS, VERSION, Deployment, Release, deployment_key, release_key, wheel_key
from spark_jobs.operations.signatures import PRIVATE_KEY, check_signature, private_key, sign
from spark_jobs.places import RELEASES
from spark_jobs.queries.registry import QUERIES_OF_JOB

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

RELEASES_KEPT: Final = 20
"""How many of the newest releases a lake keeps, and how many of those that ran last a machine keeps unpacked."""


def publish(lake: Lake, wheel: Path, version: str, now: datetime) -> Release:
    """Publishes ``wheel`` in ``lake`` as release ``version``, signed if ``ADLOOM_RELEASE_KEY`` names a key.

    An existing release stays as it is, but for the signature.

    Older ones are deleted: the newest :data:`RELEASES_KEPT` stay, and each that a job runs or can be rolled back to.

    Raises:
        LakeError: the release exists with other contents.
        SettingsError: the key cannot be read.
    """
    data, key = wheel.read_bytes(), private_key(os.environ)
    release = Release(version=version, wheel=wheel.name, sha256=_digest(data), built_at=now)
    if known := _find_release(lake, version):
        if known.sha256 != release.sha256:
            raise LakeError(
                f"release {version} of {lake.root} has other contents (SHA-256 {known.sha256[:12]}…, and this is "
                f"{release.sha256[:12]}…): a release never changes; build another version"
            )
        return _write_signed(lake, known, key) if key else known
    lake.files.write(wheel_key(release), data)
    release = sign(release, key) if key else release
    # Last: without this file it is not a release.
    write_record(lake, release_key(version), release)
    # What is damaged is named to whoever deploys it. Until then nothing is deleted.
    with suppress(LakeError):
        _delete_old(lake)
    return release


def _delete_old(lake: Lake) -> None:
    deployed = [found for job in QUERIES_OF_JOB if (found := read_deployment(lake, job))]
    in_use = {version for one in deployed for version in (one.version, one.previous)}
    for release in islice(list_releases(lake), RELEASES_KEPT, None):
        if release.version not in in_use:
            # First: what is left without this file is no release.
            lake.files.delete([release_key(release.version)])
            lake.files.delete_folder(f"{RELEASES}/{release.version}")


def sign_release(lake: Lake, version: str) -> Release:
    """Signs release ``version`` with the key that ``ADLOOM_RELEASE_KEY`` names, after a look at its wheel.

    Raises:
        LakeError: there is no such release, or its wheel is not the one that was published.
        SettingsError: no key is named, or it cannot be read.
    """
    if (key := private_key(os.environ)) is None:
        raise SettingsError(f"{PRIVATE_KEY} is not set; it names the file that `adloom releases key` has made")
    release = read_release(lake, version)
    _wheel(lake, release)
    return _write_signed(lake, release, key)


def _write_signed(lake: Lake, release: Release, key: "Ed25519PrivateKey") -> Release:
    signed = sign(release, key)
    write_record(lake, release_key(release.version), signed)
    return signed


def list_releases(lake: Lake) -> Iterator[Release]:
    """The releases of ``lake``, newest first."""
    known = [found for name in lake.files.names(RELEASES) if (found := _find_release(lake, name))]
    yield from sorted(known, key=lambda release: release.built_at, reverse=True)


def read_release(lake: Lake, version: str) -> Release:
    """The record of release ``version``.

    Raises:
        LakeError: there is no such release, or its record is damaged.
    """
    found = _find_release(lake, version)
    if found is None:
        raise LakeError(f"lake {lake.root} has no release {version!r}; `adloom releases list` lists them")
    if found.version != version:
        raise LakeError(
            f"{lake.shown(release_key(version))} describes release {found.version}: it was put in the place of "
            f"{version}, and will not be run; deploy another release"
        )
    return found


def unpack(lake: Lake, release: Release, folder: Path | None = None) -> Path:
    """Unpacks ``release`` into its own folder below ``folder``, unless it is there already.

    Where ``ADLOOM_RELEASE_PUBLIC_KEY`` is set, the release must have been signed. The default folder is the user's own
    cache: what lies there is executed, so nobody else may write to it. It keeps the :data:`RELEASES_KEPT` that were
    asked for last, and those that are held (:func:`hold_code`).

    Returns:
        The folder to import it from.

    Raises:
        LakeError: the release is not signed, or its wheel is missing or not the one that was published.
        EnvironmentMissingError: others may write to the folder.
    """
    check_signature(release, os.environ)
    folder = folder or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "adloom" / "releases"
    place = folder / f"adloom-{release.sha256}"
    if place.is_dir():
        os.utime(place)
        return place
    data = _wheel(lake, release)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as draft:
        content = Path(draft) / "content"
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            wheel.extractall(content)
        if not place.is_dir():
            content.rename(place)
    os.utime(place)
    _remove_unused(folder)
    return place


def hold_code(code: Path) -> int:
    """Keeps the release that is unpacked in ``code`` there for as long as this process runs, whatever it becomes.

    Python imports most of it only when it is needed.

    Returns:
        The open file that holds it.
    """
    held = os.open(code, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    os.set_inheritable(held, True)
    return held


def _remove_unused(folder: Path) -> None:
    """Removes the releases in ``folder`` that nobody holds, but for those that were asked for last."""
    with suppress(OSError):  # another process is removing them
        by_use = sorted(folder.glob("adloom-*"), key=lambda place: place.stat().st_mtime, reverse=True)
        for place in by_use[RELEASES_KEPT:]:
            with suppress(BlockingIOError):
                held = os.open(place, os.O_RDONLY)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    with tempfile.TemporaryDirectory(dir=folder) as draft:
                        place.rename(Path(draft) / "content")
                finally:
                    os.close(held)


def _wheel(lake: Lake, release: Release) -> bytes:
    data = lake.files.read(wheel_key(release))
    if data is None or _digest(data) != release.sha256:
        found = "is missing" if data is None else f"has SHA-256 {_digest(data)}, not {release.sha256}"
        raise LakeError(
            f"{lake.shown(wheel_key(release))} {found}: it is not the published wheel and will not be run; build and "
            "deploy another release"
        )
    return data


def settings_in(code: Path) -> Path | None:
    """The settings of the release that is unpacked in ``code``; None: it was built without."""
    file = code / SETTINGS
    return file if file.is_file() else None


def settings_of(lake: Lake, version: str) -> Path | None:
    """The settings of release ``version``, unpacked; None: it was built without.

    Raises:
        LakeError: there is no such release, or its wheel is damaged.
    """
    return settings_in(unpack(lake, read_release(lake, version)))


def settings_of_job(lake: Lake, job: str) -> Path | None:
    """The settings of the release deployed for ``job``; None: it has none, or none is deployed.

    Raises:
        LakeError: a record or the wheel is damaged.
    """
    deployment = read_deployment(lake, job)
    return settings_of(lake, deployment.version) if deployment else None


def settings_in_use(lake: Lake) -> Path | None:
    """The settings of the release that was deployed last, for whichever job; None: it has none, or none is deployed.

    Raises:
        LakeError: a record or the wheel is damaged.
    """
    deployed = [found for job in QUERIES_OF_JOB if (found := read_deployment(lake, job))]
    last = max(deployed, key=lambda one: one.deployed_at, default=None)
    return settings_of(lake, last.version) if last else None


def deploy(lake: Lake, job: str, version: str, now: datetime) -> Deployment:
    """Deploys release ``version`` for ``job``, which runs it from its next start.

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
    """Records which release a job runs, and which it ran before."""
    write_record(lake, deployment_key(deployment.job), deployment)


def read_deployment(lake: Lake, job: str) -> Deployment | None:
    """The release deployed for ``job``; None if it has no release.

    Raises:
        LakeError: the record is damaged.
    """
    return read_record(lake, deployment_key(job), Deployment, remedy="deploy a release again")


def release_before(lake: Lake, job: str) -> str:
    """The version that ``job`` ran before the deployed one.

    Raises:
        LakeError: there is no earlier release.
    """
    now = read_deployment(lake, job)
    if now is None or now.previous is None:
        raise LakeError(f"job {job} has no earlier release; deploy one with `adloom releases deploy {job} VERSION`")
    return now.previous


def _find_release(lake: Lake, version: str) -> Release | None:
    if not VERSION.fullmatch(version):
        return None
    return read_record(lake, release_key(version), Release, remedy="build it again")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
