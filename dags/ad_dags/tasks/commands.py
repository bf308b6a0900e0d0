"""Running the command ``adloom`` on the lake: what needs Spark is done by a process of its own."""

import os
from collections.abc import Sequence
from pathlib import Path

from ad_dags.place import Place
from ad_dags.programs import run_program

_CARE_PROFILE = "ADLOOM_CARE_PROFILE"


def run_adloom(
    place: Place,
    command: Sequence[str],
    options: Sequence[str] = (),
    *,
    allowed: Sequence[int] = (0,),
    code: Path | None = None,
    changes_lake: bool = False,
) -> tuple[int, str]:
    """Runs ``adloom COMMAND … --lake LAKE OPTIONS``, as :func:`ad_dags.programs.run_program` tells.

    Args:
        place: the lake and its settings.
        command: words of the command.
        options: what comes last.
        allowed: exit codes that are no error.
        code: the folder of a release whose code is to run; by default that which is installed.
        changes_lake: whether it writes to tables or checkpoints: then with the keys of ``ADLOOM_CARE_PROFILE``, if
            Airflow's own may not.
    """
    settings = ["--config", str(place.config)] if place.config else []
    variables = {"PYTHONPATH": str(code)} if code else {}
    if changes_lake and (profile := os.environ.get(_CARE_PROFILE)):
        variables["ADLOOM_S3__PROFILE"] = profile
    return run_program([*command, "--lake", place.location, *settings, *options], allowed=allowed, variables=variables)
