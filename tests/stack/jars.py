"""Jars of servers, fetched once and kept outside the checkout."""

import os
from pathlib import Path

from infra.jars.fetch import fetch
from infra.jars.lock import digest

_INFRA = Path(__file__).parents[2] / "infra"


def jars_of(server: str) -> Path:
    """The folder with the jars that ``infra/<server>/jars.lock`` lists; fetched the first time."""
    cache = Path(os.environ.get("ADLOOM_CACHE", str(Path.home() / ".cache" / "adloom")))
    jars = cache / f"{server}-{digest(_INFRA / server / 'jars.lock')[:16]}"
    fetch(_INFRA / server, jars)
    return jars
