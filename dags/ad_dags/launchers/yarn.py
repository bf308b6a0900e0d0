"""Drivers on YARN, through the ResourceManager's REST interface."""

import getpass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from ad_dags.launchers.launcher import Driver, DriverState
from ad_dags.launchers.rest import Rest
from spark_jobs.contracts.submission import application_name

_STATES = {
    "NEW": DriverState.STARTING,
    "NEW_SAVING": DriverState.STARTING,
    "SUBMITTED": DriverState.STARTING,
    "ACCEPTED": DriverState.STARTING,
    "RUNNING": DriverState.RUNNING,
    "FINISHED": DriverState.GIVEN_UP,
    "FAILED": DriverState.GIVEN_UP,
    "KILLED": DriverState.STOPPED,
}
_NAME = "YARN's ResourceManager"


class YarnCluster:
    """Applications that bear the tag of their driver; see :class:`ad_dags.launchers.cluster.Cluster`.

    Source: `YARN's ResourceManager REST API
    <https://hadoop.apache.org/docs/stable/hadoop-yarn/hadoop-yarn-site/ResourceManagerRest.html>`_.
    """

    def __init__(self, address: str, root: str, user: str | None = None) -> None:
        """Names the ResourceManager (``http://host:8088``), the lake whose drivers are meant, and who asks."""
        self._rest, self._root = Rest(_NAME, address), root
        self._user = quote(user or getpass.getuser())

    def look(self, job: str) -> Driver:
        """The latest application of ``job``."""
        found = self._newest(job)
        if found is None:
            return Driver(job, DriverState.STOPPED, None, None, "it has never been started here")
        state = _STATES[found["state"]]
        if found["state"] == "FINISHED" and found["finalStatus"] == "SUCCEEDED":
            state = DriverState.STOPPED
        since = datetime.fromtimestamp((found["finishedTime"] or found["startedTime"]) / 1000, UTC)
        told = f"{found['id']} {found['state'].lower()} {found.get('diagnostics') or ''}".strip()
        return Driver(job, state, None, since, told)

    def kill(self, job: str) -> None:
        """Ends the application of ``job`` at once, if it has one."""
        found = self._newest(job)
        if found and _STATES[found["state"]].is_alive:
            self._rest.call(
                "PUT", f"/ws/v1/cluster/apps/{found['id']}/state?user.name={self._user}", {"state": "KILLED"}
            )

    def log(self, job: str, last_bytes: int) -> str:
        """The end of what its driver told, while the machine that it ran on keeps it."""
        found = self._newest(job)
        if found is None or not found.get("amContainerLogs"):
            return ""
        # http://machine:port/node/containerlogs/<container>/<user>; Java passes on as stdout what Python tells.
        place = urlsplit(found["amContainerLogs"])
        container = place.path.split("/")[3]
        machine = Rest("YARN's NodeManager", f"{place.scheme}://{place.netloc}")
        path = f"/ws/v1/node/containerlogs/{quote(container)}/stdout?size=-{last_bytes}&user.name={self._user}"
        return machine.text("GET", path) or ""

    def _newest(self, job: str) -> dict[str, Any] | None:
        tag = quote(application_name(self._root, job))
        found = self._rest.call("GET", f"/ws/v1/cluster/apps?applicationTags={tag}&user.name={self._user}")
        apps = ((found or {}).get("apps") or {}).get("app") or []
        return max(apps, key=lambda app: app["startedTime"], default=None)
