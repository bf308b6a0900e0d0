"""Running the command ``adloom`` on the lake: whatever needs Spark runs in a process of its own."""

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
    """Runs ``adloom COMMAND … --lake LAKE OPTIONS``; returns and raises as :func:`ad_dags.programs.run_program`.

    Args:
        place: the lake and its settings.
        command: the words of the command.
        options: appended at the end.
        allowed: exit codes that are not errors.
        code: the folder of the release whose code is to run; by default the installed code.
        changes_lake: whether it writes to tables or checkpoints. If so, it runs with the keys of
            ``ADLOOM_CARE_PROFILE``, if that is set, because Airflow's own keys may not do so.
    """
    settings = ["--config", str(place.config)] if place.config else []
    variables = {**place.variables, **({"PYTHONPATH": str(code)} if code else {})}
    if changes_lake and (profile := {**os.environ, **place.variables}.get(_CARE_PROFILE)):
        variables["ADLOOM_S3__PROFILE"] = profile
    return run_program([*command, "--lake", place.location, *settings, *options], allowed=allowed, variables=variables)
