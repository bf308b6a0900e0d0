"""Running the command ``adloom``: whatever needs Spark runs in a process of its own, outside of Airflow's."""

import logging
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.config.secret_files import SUFFIX
from spark_jobs.operations.releases import settings_in
from spark_jobs.printable import printable

if TYPE_CHECKING:
    from ad_dags.connection.lake_connection import LakeConnection

_COMMAND = "ADLOOM_COMMAND"
"""Names the command adloom; by default the one next to Airflow's own Python."""
_MAINTENANCE_PROFILE = "ADLOOM_MAINTENANCE_PROFILE"
_PASSED_ON = re.compile(
    r"(?:AWS|ADLOOM|SPARK|JAVA|HADOOP|YARN|LC|SSL|XDG)_\w+|PATH|HOME|LANG|TMPDIR|TZ|USER|(?i:https?_proxy|no_proxy)"
)
_SECRETS = ("ADLOOM_SUPERVISOR_PASSWORD", "ADLOOM_ALERT_URL", "ADLOOM_AIRFLOW_TOKEN", "ADLOOM_RELEASE_KEY")
_KEPT_BACK = {*_SECRETS, *(f"{name}{SUFFIX}" for name in _SECRETS)}
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LINES_KEPT = 200
_log = logging.getLogger(__name__)


class CommandError(Exception):
    """Raised when a command cannot be started, or ends with an unexpected exit code; the text says why."""


def run_program(
    words: Sequence[str], *, allowed: Sequence[int] = (0,), variables: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Runs ``adloom WORDS`` and logs its output, line by line.

    Args:
        words: the command and its arguments.
        allowed: exit codes that are not errors.
        variables: environment variables to add to those that it needs of Airflow's.

    Returns:
        The exit code, and the last lines of its output.

    Raises:
        CommandError: it ended with another exit code, or there is no such command.
    """
    command = [*_program(os.environ), *words]
    _log.info("%s", " ".join(command))
    output: deque[str] = deque(maxlen=_LINES_KEPT)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**environment_of_commands(os.environ), **(variables or {})},
    ) as process:
        assert process.stdout is not None  # noqa: S101 because of PIPE
        try:
            for line in process.stdout:
                plain = printable(_COLOURS.sub("", line)).rstrip()
                if plain:
                    _log.info("%s", plain)
                    output.append(plain)
        except BaseException:
            process.terminate()  # Airflow is ending the task, so its command must end too
            raise
    if process.returncode not in allowed:
        last = output[-1] if output else "it printed nothing"
        raise CommandError(f"adloom {words[0]} ended with exit code {process.returncode}: {last}")
    return process.returncode, "\n".join(output)


def run_adloom(
    connection: "LakeConnection",
    command: Sequence[str],
    options: Sequence[str] = (),
    *,
    allowed: Sequence[int] = (0,),
    code: Path | None = None,
    changes_lake: bool = False,
) -> tuple[int, str]:
    """Runs ``adloom COMMAND … --lake LAKE OPTIONS``; returns and raises as :func:`run_program`.

    Args:
        connection: the lake and its settings.
        command: the words of the command.
        options: appended at the end.
        allowed: exit codes that are not errors.
        code: the folder of the release whose code is to run, with its settings if it has some; by default the
            installed code, with those of ``connection``.
        changes_lake: whether it writes to tables or checkpoints. If so, it runs with the keys of
            ``ADLOOM_MAINTENANCE_PROFILE``, if that is set, because Airflow's own keys may not do so.
    """
    config = (settings_in(code) if code else None) or connection.config
    settings = ["--config", str(config)] if config else []
    variables = {**connection.variables, **({"PYTHONPATH": str(code)} if code else {})}
    if changes_lake and (profile := connection.environment.get(_MAINTENANCE_PROFILE)):
        variables["ADLOOM_S3__PROFILE"] = profile
    return run_program(
        [*command, "--lake", connection.location, *settings, *options], allowed=allowed, variables=variables
    )


def environment_of_commands(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of Airflow's ``environment`` that a command needs: neither Airflow's secrets nor the supervisor's."""
    return {
        **{name: value for name, value in environment.items() if _PASSED_ON.fullmatch(name) and name not in _KEPT_BACK},
        "COLUMNS": "160",
    }


def _program(environment: Mapping[str, str]) -> list[str]:
    if command := environment.get(_COMMAND):
        return [command]
    if find_spec("pyspark") is None:
        raise CommandError(
            f"{sys.executable}, which runs Airflow, has no Spark and {_COMMAND} is not set: install adloom[jobs] into "
            "an environment of its own and set the variable to its command, as in /opt/adloom/bin/adloom"
        )
    return [str(Path(sys.executable).with_name("adloom"))]
