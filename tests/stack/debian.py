"""Programs of Debian packages, unpacked into the cache: nothing is installed, and no service starts."""

import shutil
import subprocess
from pathlib import Path

from spark_jobs.spark.jars.cache import CACHE

_LONGEST_S = 300


def program(package: str, name: str) -> Path:
    """The path of the program ``name`` of ``package``, which is downloaded the first time.

    Raises:
        subprocess.CalledProcessError: apt has no such package, or cannot download it.
    """
    place = CACHE / f"debian-{package}"
    if not (found := place / "usr" / "bin" / name).exists():
        draft = place.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        download = ["apt-get", "download", "-qq", package]
        if subprocess.run(download, cwd=draft, check=False, capture_output=True, timeout=_LONGEST_S).returncode:
            subprocess.run(["apt-get", "update", "-qq"], check=True, timeout=_LONGEST_S)
            subprocess.run(download, cwd=draft, check=True, timeout=_LONGEST_S)
        (archive,) = draft.glob("*.deb")
        subprocess.run(["dpkg", "-x", archive.name, "."], cwd=draft, check=True, timeout=_LONGEST_S)
        archive.unlink()
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
    return found
