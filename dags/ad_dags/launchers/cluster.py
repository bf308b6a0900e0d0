"""Drivers on a cluster, put there by ``adloom submit``; no signal reaches them, so the lake asks them to stop."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from ad_dags.launchers.launcher import Driver, DriverState
from spark_jobs.contracts.lake import Lake
from spark_jobs.queries import QUERIES_OF_JOB
from spark_jobs.runtime.reports import read_reports
from spark_jobs.runtime.wanted import ask_to_stop, asked_to_stop, forget_wish_to_stop


class Cluster(Protocol):
    """What a cluster tells of the driver of a job, and does with it; a method that cannot raises a LauncherError."""

    def look(self, job: str) -> Driver:
        """The latest driver of ``job``."""
        ...

    def kill(self, job: str) -> None:
        """Ends the driver of ``job`` at once, if there is one, and clears away what is left of it."""
        ...

    def log(self, job: str, last_bytes: int) -> str:
        """The end of what the latest driver of ``job`` told."""
        ...


class ClusterLauncher:
    """Drivers on ``cluster``; see :class:`ad_dags.launchers.Launcher`.

    A driver that does not stop within ``patience`` of being asked is killed when it is asked again: nothing is lost by
    that, its last batch is done again.
    """

    def __init__(self, cluster: Cluster, lake: Lake, submit: Callable[[str], object], patience: timedelta) -> None:
        """Takes what has the cluster start the driver of a job in ``submit``; it returns when that is taken on."""
        self._cluster, self._lake, self._submit, self._patience = cluster, lake, submit, patience

    def start(self, job: str) -> None:
        """Has the driver of ``job`` started, unless it is."""
        if self._cluster.look(job).state.is_alive:
            return
        self._cluster.kill(job)
        forget_wish_to_stop(self._lake, job)
        self._submit(job)

    def drain(self, job: str) -> None:
        """Asks the driver of ``job`` to finish its batches and stop, if there is one."""
        if not self._cluster.look(job).state.is_alive:
            return
        now, asked_at = datetime.now(UTC), asked_to_stop(self._lake, job)
        if asked_at is None:
            ask_to_stop(self._lake, job, now)
        elif now - asked_at > self._patience:
            self._cluster.kill(job)

    def look(self, job: str) -> Driver:
        """The driver of ``job``; its process is the one that its queries tell of."""
        found = self._cluster.look(job)
        if not found.state.is_alive:
            return found
        reports = list(read_reports(self._lake, QUERIES_OF_JOB[job]))
        newest = max(reports, key=lambda report: report.started_at, default=None)
        is_asked = asked_to_stop(self._lake, job) is not None
        return replace(
            found,
            state=DriverState.DRAINING if is_asked else found.state,
            process_id=newest.process_id if newest else None,
        )

    def log(self, job: str, last_bytes: int = 20_000) -> str:
        """The end of what the driver of ``job`` told."""
        return self._cluster.log(job, last_bytes)
