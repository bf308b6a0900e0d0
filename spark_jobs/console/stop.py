"""``adloom stop``: ends running jobs, and moves no time."""

import os
from datetime import timedelta
from pathlib import Path

from spark_jobs.console.terminal import terminal
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.jobs import JOB_NAMES
from spark_jobs.contracts.settings import load_settings
from spark_jobs.runtime.lakes import open_existing
from spark_jobs.runtime.stop_jobs import stop_jobs

_AFTER_STOP_TIMEOUT = timedelta(minutes=1)


def stop(jobs: list[str], location: str, *, config: Path | None) -> None:
    """Stops ``jobs`` (all if none are named) of the lake at ``location``, and prints each as it ends.

    Raises:
        SettingsError: there is no such job.
        LakeError: there is no lake, or a job did not stop in time.
    """
    if unknown := [job for job in jobs if job not in JOB_NAMES]:
        raise SettingsError(f"no job {unknown[0]!r}; the jobs are {', '.join(JOB_NAMES)}")
    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    patience_s = (settings.job.stop_timeout + _AFTER_STOP_TIMEOUT).total_seconds()
    with console.status("stopping …"):
        for job, has_run in stop_jobs(lake, jobs or list(JOB_NAMES), settings.s3, patience_s=patience_s):
            console.print(f"{job}: {'stopped' if has_run else 'was not running'}")
