"""Running the command ``adloom`` on the lake: whatever needs Spark runs in a process of its own."""

from collections.abc import Sequence
from pathlib import Path

from ad_dags.place import Place
from ad_dags.programs import run_program
from spark_jobs.runtime.releases import settings_in

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
        code: the folder of the release whose code is to run, with its settings if it has some; by default the
            installed code, with those of ``place``.
        changes_lake: whether it writes to tables or checkpoints. If so, it runs with the keys of
            ``ADLOOM_CARE_PROFILE``, if that is set, because Airflow's own keys may not do so.
    """
    config = (settings_in(code) if code else None) or place.config
    settings = ["--config", str(config)] if config else []
    variables = {**place.variables, **({"PYTHONPATH": str(code)} if code else {})}
    if changes_lake and (profile := place.environment.get(_CARE_PROFILE)):
        variables["ADLOOM_S3__PROFILE"] = profile
    return run_program([*command, "--lake", place.location, *settings, *options], allowed=allowed, variables=variables)
