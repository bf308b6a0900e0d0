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
    """Runs ``adloom COMMAND … --lake LAKE``; see :func:`ad_dags.programs.run_program`.

    Args:
        place: the lake, and the settings.
        command: the words of the command, and its arguments.
        options: more options.
        allowed: exit codes that are no error.
        code: the folder of a release whose code is to run; by default that which is installed.

    Returns:
        The exit code, and the last lines that it told.

    Raises:
        CommandError: it ended with another exit code.
    """
    settings = ["--config", str(place.config)] if place.config else []
    return run_program([*command, "--lake", place.location, *settings, *options], allowed=allowed, code=code)
