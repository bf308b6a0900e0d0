"""``adloom driver``: becomes the job with the release that is deployed for it."""

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs import __version__
from spark_jobs.cli.options import ConfigOption, JobArgument, LakeOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import SettingsError
from spark_jobs.lake.open import open_lake
from spark_jobs.operations.releases import hold_code, read_deployment, read_release, settings_in, unpack
from spark_jobs.queries.jobs import DEDUPLICATE_JOB
from spark_jobs.queries.registry import QUERIES_OF_JOB

app = typer.Typer()
_PR_SET_PDEATHSIG = 1
_RUN = "from spark_jobs.cli import main; main()"


@app.command(
    epilog="Example:  adloom driver attribute --lake s3a://ads/lake   The process becomes the job, and stops as on "
    "SIGTERM when its supervisor ends.",
)
def driver(
    job: JobArgument,
    location: LakeOption,
    source: Annotated[str | None, typer.Option(help="As for `adloom job deduplicate`.", metavar="DIR")] = None,
    config: ConfigOption = None,
) -> None:
    """Run a job with the release deployed for it and its settings, or with this installation without one.

    The settings given here say where the lake is. They count for all else if the release holds none.
    """
    # The process is replaced, so that a supervisor's signals reach the job.
    check_job(job)
    settings = load_settings(config, os.environ)
    lake = open_lake(location, settings.s3)
    deployment = read_deployment(lake, job)
    environment, own = dict(os.environ), None
    if deployment:
        code = unpack(lake, read_release(lake, deployment.version))
        hold_code(code)
        environment["PYTHONPATH"], own = str(code), settings_in(code)
    version = deployment.version if deployment else f"{__version__}, installed here, because none is deployed"
    with_settings = " with its settings" if own else ""
    terminal(stderr=True).print(f"driver of {job}: process {os.getpid()}, release {version}{with_settings}")
    _stop_with_parent()
    options = options_of_driver(job, location, source, own or config)
    # -P leaves out the current folder, which may hold a package of the same name.
    os.execve(sys.executable, [sys.executable, "-P", "-c", _RUN, "job", job, *options], environment)


def options_of_driver(job: str, location: str, source: str | None, config: Path | None) -> list[str]:
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
