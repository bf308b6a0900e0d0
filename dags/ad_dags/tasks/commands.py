"""Running the command ``adloom`` on the lake: what needs Spark is done by a process of its own."""

from collections.abc import Sequence
from pathlib import Path

from ad_dags.place import Place
from ad_dags.programs import run_program


def run_adloom(
    place: Place,
    command: Sequence[str],
    options: Sequence[str] = (),
    *,
    allowed: Sequence[int] = (0,),
    code: Path | None = None,
) -> tuple[int, str]:
    """Runs ``adloom COMMAND … --lake LAKE OPTIONS``, as :func:`ad_dags.programs.run_program` tells."""
    settings = ["--config", str(place.config)] if place.config else []
    return run_program([*command, "--lake", place.location, *settings, *options], allowed=allowed, code=code)
