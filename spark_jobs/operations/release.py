"""The records of releases in a lake, and of the one that each job runs."""

import re
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from spark_jobs.places import RELEASES

VERSION = re.compile(r"\d{1,4}\.\d{1,4}\.\d{1,4}(?:\+[0-9a-z]{1,40})?")
"""Pattern of a release's version; as a folder name it cannot point anywhere else."""
SETTINGS = "spark_jobs/settings.toml"
"""Place of a release's settings in its wheel, whose SHA-256 covers them."""


class Release(BaseModel):
    """A wheel of this package and its settings in a lake, as described by ``_releases/<version>/release.json``."""

    model_config = ConfigDict(frozen=True)

    version: str = Field(pattern=f"^{VERSION.pattern}$")
    wheel: str = Field(pattern=r"^[A-Za-z0-9_.+-]+\.whl$")
    """File name of the wheel, in the same folder."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    built_at: datetime
    signature: str = ""
    """Over version and SHA-256, in Base64; empty: it is not signed."""


class Deployment(BaseModel):
    """The release that a job runs from its next start on."""

    model_config = ConfigDict(frozen=True)

    job: str
    version: str = Field(pattern=f"^{VERSION.pattern}$")
    previous: str | None = None
    """The version deployed before, which a rollback returns to."""
    deployed_at: datetime


def release_key(version: str) -> str:
    """Key of the description of a release (JSON)."""
    return f"{RELEASES}/{version}/release.json"


def wheel_key(release: Release) -> str:
    """Key of the wheel of a release."""
    return f"{RELEASES}/{release.version}/{release.wheel}"


def deployment_key(job: str) -> str:
    """Key of the deployment of ``job`` (JSON)."""
    return f"{RELEASES}/deployed/{job}.json"
