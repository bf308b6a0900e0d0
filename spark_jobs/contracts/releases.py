"""Releases of this package that lie in a lake, and which of them each job runs."""

import re
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

RELEASES = "_releases"
"""Folder with one folder for each release, named by its version, and ``deployed/<job>.json``."""
VERSION = re.compile(r"\d{1,4}\.\d{1,4}\.\d{1,4}(?:\+[0-9a-z]{1,40})?")
"""What a version of a release looks like; as a name of a folder it leads nowhere else."""


class Release(BaseModel):
    """A wheel of this package in a lake, as ``_releases/<version>/release.json`` tells of it."""

    model_config = ConfigDict(frozen=True)

    version: str = Field(pattern=f"^{VERSION.pattern}$")
    wheel: str = Field(pattern=r"^[A-Za-z0-9_.+-]+\.whl$")
    """Name of the file, which lies beside."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    built_at: datetime


class Deployment(BaseModel):
    """The release that a job runs from its next start on."""

    model_config = ConfigDict(frozen=True)

    job: str
    version: str = Field(pattern=f"^{VERSION.pattern}$")
    previous: str | None = None
    """The version before it, to which a rollback returns."""
    deployed_at: datetime


def release_key(version: str) -> str:
    """What is known of a release, as JSON."""
    return f"{RELEASES}/{version}/release.json"


def wheel_key(release: Release) -> str:
    """The release itself."""
    return f"{RELEASES}/{release.version}/{release.wheel}"


def deployment_key(job: str) -> str:
    """Which release ``job`` runs, as JSON."""
    return f"{RELEASES}/deployed/{job}.json"
