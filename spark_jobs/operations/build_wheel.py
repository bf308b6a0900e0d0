"""Building a wheel from a checkout."""

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from spark_jobs.config.differences import refuse_secrets
from spark_jobs.errors import EnvironmentMissingError, SourceError
from spark_jobs.operations.release import SETTINGS

_PACKAGES = ("spark_jobs", "expectations")
_FILES = ("pyproject.toml", "README.md")
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_TIMEOUT_S = 300


def build_wheel(checkout: Path, folder: Path, settings: Path | None = None) -> tuple[Path, str]:
    """Builds the package of ``checkout``, uncommitted changes included, with the file ``settings`` into ``folder``.

    Returns:
        The wheel, and its version: the package's own plus a digest of its files and, after an ``s``, one of the
        settings. Equal files have equal versions.

    Raises:
        SourceError: ``checkout`` is not a checkout of adloom.
        SettingsError: ``settings`` hold a secret, or cannot be read.
        EnvironmentMissingError: the build fails on this machine.
    """
    marker = checkout / _PACKAGES[0] / "__init__.py"
    found = _VERSION.search(marker.read_text(encoding="utf-8")) if marker.is_file() else None
    if not found or not all((checkout / name).is_file() for name in _FILES):
        raise SourceError(f"{checkout} is not a checkout of adloom: {marker} or {' or '.join(_FILES)} is missing")
    if settings:
        refuse_secrets(settings)
    data = settings.read_bytes() if settings else None
    version = f"{found[1]}+{_digest(checkout)}" + (
        f"s{hashlib.sha256(data).hexdigest()[:8]}" if data is not None else ""
    )
    copy = folder / "source"
    for name in _PACKAGES:
        shutil.copytree(checkout / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _FILES:
        shutil.copy2(checkout / name, copy / name)
    if data is not None:
        (copy / SETTINGS).write_bytes(data)
    init = copy / _PACKAGES[0] / "__init__.py"
    init.write_text(_VERSION.sub(f'__version__ = "{version}"', init.read_text(encoding="utf-8")), encoding="utf-8")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        output = (done.stderr or done.stdout).strip().splitlines()
        raise EnvironmentMissingError(
            f"the package of {checkout} could not be built: {output[-1] if output else 'hatchling gave no reason'}"
        )
    return wheels[0], version


def _digest(checkout: Path) -> str:
    digest = hashlib.sha256()
    for name, data in _contents(checkout):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:12]


def _contents(checkout: Path) -> Iterator[tuple[str, bytes]]:
    files = [file for name in _PACKAGES for file in (checkout / name).rglob("*") if file.is_file()]
    for file in sorted([*files, *(checkout / name for name in _FILES)]):
        if "__pycache__" not in file.parts:
            yield file.relative_to(checkout).as_posix(), file.read_bytes()
