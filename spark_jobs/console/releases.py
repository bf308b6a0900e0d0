"""``adloom releases`` and ``adloom driver``."""

import ctypes
import os
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from rich.box import SIMPLE_HEAD
from rich.table import Table

from spark_jobs import __version__
from spark_jobs.console.terminal import terminal, utc
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.jobs import DEDUPLICATE_JOB
from spark_jobs.contracts.setting_changes import SettingChange, setting_changes
from spark_jobs.contracts.settings import load_settings
from spark_jobs.queries import QUERIES_OF_JOB
from spark_jobs.runtime.building import build_wheel
from spark_jobs.runtime.lakes import open_lake
from spark_jobs.runtime.releases import (
    deploy,
    list_releases,
    publish,
    read_deployment,
    read_release,
    release_before,
    settings_in,
    settings_of,
    unpack,
)

_PR_SET_PDEATHSIG = 1
_RUN = "from spark_jobs.cli import main; main()"


def build(checkout: Path, location: str, config: Path | None) -> None:
    """Builds the package of ``checkout`` with the settings in ``config``, and publishes it in the lake at ``location``.

    Raises:
        AdloomError: it is not a checkout, the settings hold a secret, the build fails, or the lake cannot be written.
    """
    console, lake = terminal(), open_lake(location, load_settings(config, os.environ).s3)
    with tempfile.TemporaryDirectory() as folder, console.status("building …"):
        wheel, version = build_wheel(checkout, Path(folder), config)
        release = publish(lake, wheel, version, datetime.now(UTC))
    console.print(f"{release.version} is in {lake.place()}, SHA-256 {release.sha256}", soft_wrap=True)


def list_all(location: str, config: Path | None) -> None:
    """Prints the releases of the lake at ``location`` and the jobs they are deployed for.

    Raises:
        LakeError: a record is damaged, or the store does not answer.
    """
    console, lake = terminal(), open_lake(location, load_settings(config, os.environ).s3)
    deployed = [found for job in QUERIES_OF_JOB if (found := read_deployment(lake, job))]
    table = Table(box=SIMPLE_HEAD, title=f"{lake.place()}: releases", title_justify="left")
    for heading in ("release", "built", "SHA-256"):
        table.add_column(heading, no_wrap=True)
    table.add_column("deployed for", overflow="fold")
    for release in list_releases(lake):
        jobs = ", ".join(found.job for found in deployed if found.version == release.version)
        table.add_row(release.version, utc(release.built_at), f"{release.sha256[:12]}…", jobs)
    console.print(table)


def show(version: str, location: str, config: Path | None) -> None:
    """Prints what release ``version`` is, and which of its settings differ from the defaults.

    Raises:
        LakeError: there is no such release, or its wheel is damaged.
    """
    console, lake = terminal(), open_lake(location, load_settings(config, os.environ).s3)
    release, settings = read_release(lake, version), settings_of(lake, version)
    console.print(f"{version}: built {utc(release.built_at)}, SHA-256 {release.sha256}", soft_wrap=True)
    if settings is None:
        console.print("It holds no settings: its drivers use those that they are started with.", soft_wrap=True)
        return
    _print_changes(f"{version}: settings", "default", setting_changes(None, settings), "all settings are the defaults")


def show_difference(before: str, now: str, location: str, config: Path | None) -> None:
    """Prints the settings that differ between two releases. One without settings counts as having those in ``config``.

    Raises:
        LakeError: there is no such release, or its wheel is damaged.
    """
    lake = open_lake(location, load_settings(config, os.environ).s3)
    old, new = (settings_of(lake, version) or config for version in (before, now))
    _print_changes(f"{before} and {now}: settings", "was", setting_changes(old, new), "the settings are the same")


def _print_changes(title: str, first: str, changes: list[SettingChange], none: str) -> None:
    console = terminal()
    if not changes:
        console.print(none)
        return
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    for heading in ("setting", first, "is"):
        table.add_column(heading, overflow="fold")
    for change in changes:
        table.add_row(change.setting, change.before, change.now)
    console.print(table)


def choose(job: str, version: str | None, location: str, config: Path | None) -> None:
    """Deploys ``version`` for ``job`` from its next start; None: the previous release.

    Raises:
        LakeError: there is no such release, or no previous one.
    """
    console, lake = terminal(), open_lake(location, load_settings(config, os.environ).s3)
    check_job(job)
    done = deploy(lake, job, version or release_before(lake, job), datetime.now(UTC))
    before = f" (before: {done.previous})" if done.previous else ""
    console.print(f"{job} will run {done.version} from its next start{before}", soft_wrap=True)


def drive(job: str, location: str, source: Path | None, config: Path | None) -> NoReturn:
    """Replaces this process with the deployed release of ``job``, so that a supervisor's signals reach it.

    The release runs with its own settings. Those in ``config`` say where the lake is, and count if it has none.

    If the parent process ends, even by SIGKILL, this one gets SIGTERM: a restarted supervisor never meets a driver that
    it does not know.

    Raises:
        LakeError: the deployed release is missing, or its wheel is not the one that was published.
    """
    check_job(job)
    settings = load_settings(config, os.environ)
    lake = open_lake(location, settings.s3)
    deployment = read_deployment(lake, job)
    environment, own = dict(os.environ), None
    if deployment:
        code = unpack(lake, read_release(lake, deployment.version))
        environment["PYTHONPATH"], own = str(code), settings_in(code)
    version = deployment.version if deployment else f"{__version__}, installed here, because none is deployed"
    with_settings = " with its settings" if own else ""
    terminal(stderr=True).print(f"driver of {job}: process {os.getpid()}, release {version}{with_settings}")
    _stop_with_parent()
    options = options_of_driver(job, location, source, own or config)
    # -P leaves out the current folder, which may hold a package of the same name.
    os.execve(sys.executable, [sys.executable, "-P", "-c", _RUN, "job", job, *options], environment)


def options_of_driver(job: str, location: str, source: Path | None, config: Path | None) -> list[str]:
    """The command-line options of ``adloom driver`` and ``adloom job``."""
    options = ["--lake", location, *(["--source", str(source)] if source and job == DEDUPLICATE_JOB else [])]
    return [*options, *(["--config", str(config)] if config else [])]


def check_job(job: str) -> None:
    """Checks that ``job`` exists.

    Raises:
        SettingsError: it does not.
    """
    if job not in QUERIES_OF_JOB:
        raise SettingsError(f"no job {job!r}; there are {', '.join(QUERIES_OF_JOB)}")


def _stop_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
