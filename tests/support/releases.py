"""Releases with next to no code, for tests that only deploy them."""

import zipfile
from datetime import UTC, datetime
from pathlib import Path

from spark_jobs.lake.layout import Lake
from spark_jobs.operations.release import SETTINGS, Release
from spark_jobs.operations.releases import publish


def publish_fake(lake: Lake, folder: Path, version: str, settings: str | None = None) -> Release:
    """Publishes a release with ``settings`` (TOML), whose wheel is written to ``folder`` first."""
    wheel = folder / f"adloom-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as content:
        content.writestr("spark_jobs/__init__.py", f'__version__ = "{version}"\n')
        if settings is not None:
            content.writestr(SETTINGS, settings)
    return publish(lake, wheel, version, datetime.now(UTC))
