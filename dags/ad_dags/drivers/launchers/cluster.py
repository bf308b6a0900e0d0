"""Drivers on a cluster, started by ``adloom submit``. No signal reaches them: a file in the lake asks them to stop."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from ad_dags.clock import utc_now
from ad_dags.drivers.launchers.launcher import Driver, DriverState
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.registry import QUERIES_OF_JOB
from spark_jobs.streams.desired_state import clear_stop_request, request_stop, stop_requested_at
from spark_jobs.streams.reports import read_driver_report, read_reports


class Cluster(Protocol):
    """A cluster as a launcher needs it. Every method raises a LauncherError if it cannot do what it says."""

    def inspect(self, job: str) -> Driver:
        """The latest driver of ``job``."""
        ...

    def kill(self, job: str) -> None:
        """Ends the driver of ``job`` at once, if there is one, and removes what is left of it."""
        ...

    def log(self, job: str, last_bytes: int) -> str:
        """The end of the log of the latest driver of ``job``."""
        ...


class ClusterLauncher:
    """Drivers on ``cluster``; see :class:`ad_dags.drivers.launchers.Launcher`.

    A driver that has not stopped within ``patience`` is killed by the next call of :meth:`stop`. Nothing is lost: the
    next driver repeats the last batch.
    """

    def __init__(
        self,
        cluster: Cluster,
        lake: Lake,
        submit: Callable[[str], object],
        patience: timedelta,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """``submit`` starts the driver of a job; it returns once the cluster has accepted it."""
        self._cluster, self._lake, self._submit, self._patience = cluster, lake, submit, patience
        self._clock = clock

    def start(self, job: str) -> None:
        """Starts the driver of ``job`` unless there is one."""
        if self._cluster.inspect(job).state.is_alive:
            return
        self._cluster.kill(job)
        clear_stop_request(self._lake, job)
        self._submit(job)

    def stop(self, job: str) -> None:
        """Asks the driver of ``job``, if there is one, to finish its batches and stop."""
        if not self._cluster.inspect(job).state.is_alive:
            return
        now, requested_at = self._clock(), stop_requested_at(self._lake, job)
        if requested_at is None:
            request_stop(self._lake, job, now)
        elif now - requested_at > self._patience:
            self._cluster.kill(job)

    def inspect(self, job: str) -> Driver:
        """The driver of ``job``; its process id is the one in the latest report of it or of its queries."""
        driver = self._cluster.inspect(job)
        if not driver.state.is_alive:
            return driver
        reports = [read_driver_report(self._lake, job), *read_reports(self._lake, QUERIES_OF_JOB[job])]
        newest = max((one for one in reports if one), key=lambda report: report.started_at, default=None)
        is_stopping = stop_requested_at(self._lake, job) is not None
        return replace(
            driver,
            state=DriverState.STOPPING if is_stopping else driver.state,
            process_id=newest.process_id if newest else None,
        )

    def log(self, job: str, last_bytes: int = 20_000) -> str:
        """The end of the log of the driver of ``job``."""
        return self._cluster.log(job, last_bytes)
