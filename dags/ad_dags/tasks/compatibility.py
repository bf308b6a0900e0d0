"""What a release changes for checkpoints and for the contract, and resetting the checkpoints that it cannot use."""

import json
import logging
from pathlib import Path
from typing import Any

from ad_dags.place import Place
from ad_dags.programs import CommandError
from ad_dags.tasks.commands import run_adloom
from spark_jobs.contracts.releases import Deployment
from spark_jobs.runtime.releases import read_release, unpack

_BREAKING = 1
"""Exit code of `adloom preflight` and `adloom contract check` if a change is breaking."""
_USAGE = 2
"""Exit code of a command that does not exist."""
_log = logging.getLogger(__name__)


def code_of(place: Place, version: str) -> Path:
    """The folder with the code of release ``version``.

    Raises:
        LakeError: there is no such release, or its wheel is damaged.
    """
    return unpack(place.lake, read_release(place.lake, version))


def breaking_changes(place: Place, code: Path | None) -> list[dict[str, str]]:
    """The changes that keep ``code`` (None: the installed code) from using the lake's checkpoints.

    Each has the fields that `adloom preflight --json` prints: query, setting, before, now, verdict and why.

    Raises:
        CommandError: the checkpoints could not be compared; the text says why.
    """
    _, output = run_adloom(place, ["preflight"], ["--json"], allowed=(0, _BREAKING), code=code)
    lines = output.splitlines()
    if not lines or not lines[-1].startswith("["):
        # Earlier releases end with exit code 1 for errors too.
        raise CommandError(f"adloom preflight could not compare: {lines[-1] if lines else 'it printed nothing'}")
    changes: list[dict[str, str]] = json.loads(lines[-1])
    return [change for change in changes if change["verdict"] == "breaking"]


def contract_changes(place: Place, code: Path | None) -> dict[str, Any]:
    """How the contract of ``code`` and the settings differs from the one that the lake is in use with.

    Returns what `adloom contract check --json` prints: ``changes`` and ``version``; nothing if the release is older
    than the command.

    Raises:
        CommandError: they could not be compared; the text says why.
    """
    command = ["contract", "check"]
    exit_code, output = run_adloom(place, command, ["--json"], allowed=(0, _BREAKING, _USAGE), code=code)
    last = output.splitlines()[-1] if output else "it printed nothing"
    if exit_code == _USAGE and "No such command" in output:
        _log.warning("this release is older than `adloom contract`; its contract was not compared")
        return {}
    if exit_code == _USAGE or not last.startswith("{"):
        raise CommandError(f"adloom contract check could not compare: {last}")
    found: dict[str, Any] = json.loads(last)
    return found


def unusable(place: Place, before: Deployment | None, queries: list[str]) -> list[str]:
    """Those of ``queries`` whose checkpoints cannot be used by the code that was deployed ``before``.

    Raises:
        CommandError: the checkpoints could not be compared.
    """
    if not queries:
        return []
    broken = {change["query"] for change in breaking_changes(place, _code_before(place, before))}
    return [query for query in queries if query in broken]


def reset(place: Place, version: str, queries: list[str], before: Deployment | None) -> None:
    """Resets the checkpoints of ``queries``, so that ``version`` can use them.

    Raises:
        CommandError: one could not be reset. Those that were are usable for the code deployed ``before`` again.
    """
    done: list[str] = []
    try:
        for query in queries:
            _reset(place, query, code_of(place, version))
            done.append(query)
    except CommandError:
        for query in unusable(place, before, done):
            _reset(place, query, _code_before(place, before))
        raise


def _reset(place: Place, query: str, code: Path | None) -> None:
    run_adloom(place, ["checkpoints", "reset", query], code=code, changes_lake=True)


def _code_before(place: Place, before: Deployment | None) -> Path | None:
    return code_of(place, before.version) if before else None
