"""Running the command ``adloom`` as a process of its own, outside of Airflow's."""

import logging
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

_COMMAND = "ADLOOM_COMMAND"
"""Names the command adloom; by default it is the one beside Airflow's own Python."""
_PASSED_ON = re.compile(r"(?:AWS|ADLOOM|SPARK|JAVA|HADOOP|YARN|LC|SSL|XDG)_\w+|PATH|HOME|LANG|TMPDIR|TZ|USER")
_KEPT_BACK = {"ADLOOM_SUPERVISOR_PASSWORD", "ADLOOM_ALERT_URL"}
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LINES_KEPT = 200
_log = logging.getLogger(__name__)


class CommandError(Exception):
    """Raised when a command ends with an exit code that is not expected; the text is its last line."""


def run_program(
    words: Sequence[str], *, allowed: Sequence[int] = (0,), variables: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Runs ``adloom WORDS`` and logs what it tells, line by line.

    Args:
        words: the command and its arguments.
        allowed: exit codes that are no error.
        variables: of its environment, beside those of Airflow's that it needs.

    Returns:
        The exit code, and the last lines that it told.

    Raises:
        CommandError: it ended with another exit code.
    """
    whole = [*_program(os.environ), *words]
    _log.info("%s", " ".join(whole))
    told: deque[str] = deque(maxlen=_LINES_KEPT)
    with subprocess.Popen(
        whole,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**environment_of_commands(os.environ), **(variables or {})},
    ) as process:
        assert process.stdout is not None  # noqa: S101 it was asked for
        try:
            for line in process.stdout:
                plain = _COLOURS.sub("", line).rstrip()
                if plain:
                    _log.info("%s", plain)
                    told.append(plain)
        except BaseException:
            process.terminate()  # Airflow ends the task: so must what it started
            raise
    if process.returncode not in allowed:
        last = told[-1] if told else "it told nothing"
        raise CommandError(f"adloom {words[0]} ended with exit code {process.returncode}: {last}")
    return process.returncode, "\n".join(told)


def environment_of_commands(environment: Mapping[str, str]) -> dict[str, str]:
    """What of Airflow's ``environment`` a command needs: not Airflow's own secrets, nor the supervisor's password."""
    return {
        **{name: value for name, value in environment.items() if _PASSED_ON.fullmatch(name) and name not in _KEPT_BACK},
        "COLUMNS": "160",
    }


def _program(environment: Mapping[str, str]) -> list[str]:
    told = environment.get(_COMMAND)
    return [told] if told else [str(Path(sys.executable).with_name("adloom"))]
