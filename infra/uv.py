"""The uv that set-up uses: the one on the PATH, or the one that it put into the cache."""

import re
import shutil
from pathlib import Path

from spark_jobs.spark.jars.cache import CACHE

_SETUP = Path(__file__).with_name("setup.sh")


def exported(*options: str) -> list[str]:
    """The command that prints the locked packages of the wheel with the extra ``jobs``, as ``options`` say."""
    return [uv(), "export", "--quiet", "--frozen", "--no-default-groups", "--extra", "jobs", *options]


def uv() -> str:
    """The program ``uv``.

    Raises:
        FileNotFoundError: set-up has not run on this machine.
    """
    version = re.search(r"^UV_VERSION=(\S+)$", _SETUP.read_text(encoding="utf-8"), re.MULTILINE)
    assert version, _SETUP  # noqa: S101 set-up has a version
    found = shutil.which("uv") or shutil.which(CACHE / f"uv-{version[1]}" / "bin" / "uv")
    if found is None:
        raise FileNotFoundError(f"no uv on the PATH or in {CACHE}: run `make setup`, which installs it")
    return found
