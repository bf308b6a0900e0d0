"""Jars of servers, fetched once and kept outside the checkout."""

from pathlib import Path

from spark_jobs.jars.cache import CACHE
from spark_jobs.jars.fetch import fetch
from spark_jobs.jars.lock import digest

_INFRA = Path(__file__).parents[2] / "infra"


def jars_of(server: str) -> Path:
    """The folder with the jars that ``infra/<server>/jars.lock`` lists; fetched the first time."""
    jars = CACHE / f"{server}-{digest(_INFRA / server / 'jars.lock')[:16]}"
    fetch(_INFRA / server, jars)
    return jars
