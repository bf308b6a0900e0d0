"""Compares a release with the checkpoints and the contract, and resets the checkpoints that it cannot use."""

import json
import logging
from collections import defaultdict
from pathlib import Path
from typing import Any

from ad_dags.commands import CommandError, run_adloom
from ad_dags.connection.lake_connection import LakeConnection
from spark_jobs.config.differences import setting_changes
from spark_jobs.errors import CheckpointError, ContractError
from spark_jobs.operations.release import Deployment
from spark_jobs.operations.releases import read_release, settings_of, settings_of_job, unpack
from spark_jobs.queries.registry import JOB_OF_QUERY

_BREAKING = 1
"""Exit code of `adloom preflight` and `adloom contract check` if a change is breaking."""
_USAGE = 2
"""Exit code of a command that does not exist."""
_log = logging.getLogger(__name__)


def code_of(connection: LakeConnection, version: str) -> Path:
    """The folder with the code of release ``version``.

    Raises:
        LakeError: there is no such release, or its wheel is damaged.
    """
    return unpack(connection.lake, read_release(connection.lake, version))


def log_setting_changes(connection: LakeConnection, jobs: list[str], version: str) -> None:
    """Logs how the settings of release ``version`` differ from those that ``jobs`` run with. Secrets are masked.

    The settings of a release that holds none are those of ``connection``.

    Raises:
        LakeError: there is no such release, or a wheel is damaged.
    """
    own, jobs_by_settings = settings_of(connection.lake, version), defaultdict[Path | None, list[str]](list)
    for job in jobs:
        jobs_by_settings[settings_of_job(connection.lake, job) or connection.config].append(job)
    for in_use, alike in jobs_by_settings.items():
        changes = setting_changes(in_use, own or connection.config)
        for change in changes:
            _log.info("%s: setting %s", ", ".join(alike), change.describe(connection.environment))
        if not changes:
            _log.info("%s: release %s has the settings that are in use", ", ".join(alike), version)
    if own is None:
        _log.warning("release %s holds no settings; its drivers use those that they are started with", version)


def check_checkpoints(connection: LakeConnection, version: str, jobs: list[str], *, is_confirmed: bool) -> list[str]:
    """The queries of ``jobs`` whose checkpoints release ``version``, with its settings, cannot use.

    Raises:
        CheckpointError: there are some, and their reset is not confirmed.
        CommandError: the checkpoints could not be compared.
    """
    changes = breaking_changes(connection, code_of(connection, version))
    broken = [one for one in changes if JOB_OF_QUERY[one["query"]] in jobs]
    queries = list(dict.fromkeys(change["query"] for change in broken))
    if queries and not is_confirmed:
        listed = "; ".join(f"{one['query']}: {one['setting']} was {one['before']}, is {one['now']}" for one in broken)
        raise CheckpointError(
            f"release {version} cannot use the checkpoints: {listed}. Nothing was stopped. Change the settings back, "
            "or deploy with 'confirm reset', which rebuilds these checkpoints without losing or repeating a row"
        )
    return queries


def check_contract(connection: LakeConnection, version: str, *, is_confirmed: bool) -> None:
    """Compares the contract of release ``version``, with its settings, with the one in use in the lake.

    Raises:
        ContractError: it changes in a breaking way, which is not confirmed or which the version hides.
        CommandError: the contracts could not be compared.
    """
    found = contract_changes(connection, code_of(connection, version))
    changes, number = found.get("changes", []), found.get("version", {})
    for one in changes:
        _log.info("contract: %(what)s was %(before)s, is %(now)s: %(verdict)s for %(whom)s: %(why)s", one)
    breaking = [one for one in changes if one["verdict"] == "breaking"]
    listed = "; ".join(f"{one['what']} was {one['before']}, is {one['now']}: {one['why']}" for one in breaking)
    if breaking and not is_confirmed:
        raise ContractError(
            f"release {version} breaks the contract: {listed}. Nothing was stopped. Change the settings back, or "
            "inform those who are concerned and deploy with 'confirm breaking contract'"
        )
    if breaking and number["level"] == "error":
        raise ContractError(
            f"release {version} breaks the contract under its old version {number['now']}, so nobody could see it: "
            f"{listed}. Nothing was stopped. {number['why']}"
        )
    if changes and number["level"] != "ok":
        _log.warning("contract version %s: %s", number["now"], number["why"])


def breaking_changes(connection: LakeConnection, code: Path | None) -> list[dict[str, str]]:
    """The changes that keep ``code`` (None: the installed code) from using the lake's checkpoints.

    Each has the fields that `adloom preflight --json` prints: query, setting, before, now, verdict and why.

    Raises:
        CommandError: the checkpoints could not be compared; the text says why.
    """
    _, output = run_adloom(connection, ["preflight"], ["--json"], allowed=(0, _BREAKING), code=code)
    lines = output.splitlines()
    if not lines or not lines[-1].startswith("["):
        # Earlier releases end with exit code 1 for errors too.
        raise CommandError(f"adloom preflight could not compare: {lines[-1] if lines else 'it printed nothing'}")
    changes: list[dict[str, str]] = json.loads(lines[-1])
    return [change for change in changes if change["verdict"] == "breaking"]


def contract_changes(connection: LakeConnection, code: Path | None) -> dict[str, Any]:
    """How the contract of ``code`` and the settings differs from the one in use in the lake.

    Returns what `adloom contract check --json` prints: ``changes`` and ``version``; nothing if the release is older
    than the command.

    Raises:
        CommandError: they could not be compared; the text says why.
    """
    command = ["contract", "check"]
    exit_code, output = run_adloom(connection, command, ["--json"], allowed=(0, _BREAKING, _USAGE), code=code)
    last = output.splitlines()[-1] if output else "it printed nothing"
    if exit_code == _USAGE and "No such command" in output:
        _log.warning("this release is older than `adloom contract`; its contract was not compared")
        return {}
    if exit_code == _USAGE or not last.startswith("{"):
        raise CommandError(f"adloom contract check could not compare: {last}")
    found: dict[str, Any] = json.loads(last)
    return found


def unusable(connection: LakeConnection, before: Deployment | None, queries: list[str]) -> list[str]:
    """Those of ``queries`` whose checkpoints cannot be used by the code that was deployed ``before``.

    Raises:
        CommandError: the checkpoints could not be compared.
    """
    if not queries:
        return []
    broken = {change["query"] for change in breaking_changes(connection, _code_before(connection, before))}
    return [query for query in queries if query in broken]


def reset(connection: LakeConnection, version: str, queries: list[str], before: Deployment | None) -> None:
    """Resets the checkpoints of ``queries``, so that ``version`` can use them.

    Raises:
        CommandError: one could not be reset. Those that were are usable for the code deployed ``before`` again.
    """
    done: list[str] = []
    try:
        for query in queries:
            _reset(connection, query, code_of(connection, version))
            done.append(query)
    except CommandError:
        for query in unusable(connection, before, done):
            _reset(connection, query, _code_before(connection, before))
        raise


def _reset(connection: LakeConnection, query: str, code: Path | None) -> None:
    run_adloom(connection, ["checkpoints", "reset", query], code=code, changes_lake=True)


def _code_before(connection: LakeConnection, before: Deployment | None) -> Path | None:
    return code_of(connection, before.version) if before else None
