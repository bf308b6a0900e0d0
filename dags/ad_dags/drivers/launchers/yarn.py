"""Drivers on YARN, through the ResourceManager's REST interface."""

import getpass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from ad_dags.drivers.launchers.launcher import Driver, DriverState
from ad_dags.drivers.launchers.rest import Rest
from spark_jobs.spark.names import application_name

_STATES = {
    "NEW": DriverState.STARTING,
    "NEW_SAVING": DriverState.STARTING,
    "SUBMITTED": DriverState.STARTING,
    "ACCEPTED": DriverState.STARTING,
    "RUNNING": DriverState.RUNNING,
    "FINISHED": DriverState.FAILED,
    "FAILED": DriverState.FAILED,
    "KILLED": DriverState.STOPPED,
}
_NAME = "YARN's ResourceManager"


class YarnCluster:
    """Applications tagged with the name of their driver; see :class:`ad_dags.drivers.launchers.cluster.Cluster`.

    Source: `YARN's ResourceManager REST API
    <https://hadoop.apache.org/docs/stable/hadoop-yarn/hadoop-yarn-site/ResourceManagerRest.html>`_.
    """

    def __init__(self, address: str, root: str, user: str | None = None) -> None:
        """``address`` is the ResourceManager (``http://host:8088``), ``root`` the lake, ``user`` the one to act as."""
        self._rest, self._root = Rest(_NAME, address), root
        self._user = quote(user or getpass.getuser())

    def inspect(self, job: str) -> Driver:
        """The latest application of ``job``."""
        newest = self._newest(job)
        if newest is None:
            return Driver(job, DriverState.STOPPED, None, None, "it has never been started here")
        state = _STATES[newest["state"]]
        if newest["state"] == "FINISHED" and newest["finalStatus"] == "SUCCEEDED":
            state = DriverState.STOPPED
        since = datetime.fromtimestamp((newest["finishedTime"] or newest["startedTime"]) / 1000, UTC)
        detail = f"{newest['id']} {newest['state'].lower()} {newest.get('diagnostics') or ''}".strip()
        return Driver(job, state, None, since, detail)

    def kill(self, job: str) -> None:
        """Ends the application of ``job`` at once, if it has one."""
        newest = self._newest(job)
        if newest and _STATES[newest["state"]].is_alive:
            self._rest.call(
                "PUT", f"/ws/v1/cluster/apps/{newest['id']}/state?user.name={self._user}", {"state": "KILLED"}
            )

    def log(self, job: str, last_bytes: int) -> str:
        """The end of its driver's log, for as long as the machine that it ran on keeps it."""
        newest = self._newest(job)
        if newest is None or not newest.get("amContainerLogs"):
            return ""
        # http://machine:port/node/containerlogs/<container>/<user>; Java passes the output of Python on to stdout.
        url = urlsplit(newest["amContainerLogs"])
        container = url.path.split("/")[3]
        machine = Rest("YARN's NodeManager", f"{url.scheme}://{url.netloc}")
        path = f"/ws/v1/node/containerlogs/{quote(container)}/stdout?size=-{last_bytes}&user.name={self._user}"
        return machine.text("GET", path) or ""

    def _newest(self, job: str) -> dict[str, Any] | None:
        tag = quote(application_name(self._root, job))
        answer = self._rest.call("GET", f"/ws/v1/cluster/apps?applicationTags={tag}&user.name={self._user}")
        apps = ((answer or {}).get("apps") or {}).get("app") or []
        return max(apps, key=lambda app: app["startedTime"], default=None)
