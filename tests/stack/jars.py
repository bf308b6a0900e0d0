"""Jars of servers, fetched once and kept outside the checkout."""

import fcntl
import shutil
import tarfile
from pathlib import Path

from spark_jobs.spark.jars.cache import CACHE
from spark_jobs.spark.jars.fetch import fetch
from spark_jobs.spark.jars.lock import digest

_INFRA = Path(__file__).parents[2] / "infra"


def jars_of(server: str) -> Path:
    """The folder with the jars that ``infra/<server>/jars.lock`` lists; fetched the first time."""
    jars = CACHE / f"{server}-{digest(_INFRA / server / 'jars.lock')[:16]}"
    fetch(_INFRA / server, jars)
    return jars


def unpacked(server: str) -> Path:
    """The files of the archive that ``infra/<server>/jars.lock`` lists; fetched and unpacked the first time."""
    folder = jars_of(server)
    target = folder.with_name(f"{folder.name}-unpacked")
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            draft = target.with_suffix(".new")
            shutil.rmtree(draft, ignore_errors=True)
            with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
                archive.extractall(draft, filter="data")
            draft.rename(target)
    return target
