"""``adloom stop``: ends running jobs, and moves no time."""

import os
from datetime import timedelta
from typing import Annotated

import typer

from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import SettingsError
from spark_jobs.lake.open import open_existing
from spark_jobs.queries.jobs import JOB_NAMES
from spark_jobs.streams.stop_jobs import stop_jobs

app = typer.Typer()


_AFTER_STOP_TIMEOUT = timedelta(minutes=1)


@app.command(
    epilog="Example:  adloom stop attribute --lake s3a://ads/lake   A job that Airflow supervises is no longer wanted "
    "then: trigger its DAG supervise_JOB to start it again. Exit code 1 when a job has not stopped a minute after "
    "job.stop_timeout.",
)
def stop(
    location: LakeOption,
    jobs: Annotated[
        list[str] | None,
        typer.Argument(help="Only these: deduplicate, attribute, measure.", metavar="JOB", show_default=False),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Stop running jobs when their batches are done, wherever they run. Nothing is lost, and event time stays.

    The next start continues where they stopped.
    """
    if unknown := [job for job in jobs or () if job not in JOB_NAMES]:
        raise SettingsError(f"no job {unknown[0]!r}; the jobs are {', '.join(JOB_NAMES)}")
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    patience_s = (settings.job.stop_timeout + _AFTER_STOP_TIMEOUT).total_seconds()
    with console.status("stopping …"):
        for job, has_run in stop_jobs(lake, jobs or list(JOB_NAMES), settings.s3, patience_s=patience_s):
            console.print(f"{job}: {'stopped' if has_run else 'was not running'}")
