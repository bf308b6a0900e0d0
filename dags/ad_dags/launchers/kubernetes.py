"""Drivers on Kubernetes, through its API."""

import ssl
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ad_dags.launchers.launcher import Driver, DriverState
from ad_dags.launchers.rest import Rest
from spark_jobs.contracts.submission import application_name

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds the token and the authority of its own account."""
_STATES = {
    "Pending": DriverState.STARTING,
    "Running": DriverState.RUNNING,
    "Succeeded": DriverState.STOPPED,
    "Failed": DriverState.GIVEN_UP,
    # Its machine does not answer: it may well go on, and must not be started a second time.
    "Unknown": DriverState.RUNNING,
}


class KubernetesCluster:
    """Pods that are named after their driver; see :class:`ad_dags.launchers.cluster.Cluster`.

    Source: `Kubernetes' API of pods <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/>`_.
    """

    def __init__(self, address: str, root: str, namespace: str, account: Path = _ACCOUNT) -> None:
        """Names the API (``https://host:port``), the lake whose drivers are meant, and the folder of the account."""
        self._root, self._namespace = root, quote(namespace)
        token, authority = account / "token", account / "ca.crt"
        self._rest = Rest(
            "Kubernetes",
            address,
            token.read_text(encoding="utf-8").strip() if token.exists() else "",
            ssl.create_default_context(cafile=str(authority)) if authority.exists() else None,
        )

    def inspect(self, job: str) -> Driver:
        """The pod of ``job``."""
        pod: dict[str, Any] | None = self._rest.call("GET", self._pod(job))
        if pod is None:
            return Driver(job, DriverState.STOPPED, None, None, "it has no pod")
        status = pod["status"]
        state = DriverState.STOPPING if pod["metadata"].get("deletionTimestamp") else _STATES[status["phase"]]
        began = status.get("startTime") or pod["metadata"].get("creationTimestamp")
        detail = f"pod {pod['metadata']['name']} {status['phase'].lower()} {_why(status)}".strip()
        return Driver(job, state, None, datetime.fromisoformat(began) if began else None, detail)

    def kill(self, job: str) -> None:
        """Deletes the pod of ``job``, if there is one."""
        self._rest.call("DELETE", f"{self._pod(job)}?gracePeriodSeconds=0")

    def log(self, job: str, last_bytes: int) -> str:
        """The end of its driver's log, for as long as the pod exists."""
        log = self._rest.text("GET", f"{self._pod(job)}/log?tailLines=1000") or ""
        return log[-last_bytes:]

    def _pod(self, job: str) -> str:
        return f"/api/v1/namespaces/{self._namespace}/pods/{quote(application_name(self._root, job))}"


def _why(status: dict[str, Any]) -> str:
    """Why a pod is where it is: its own reason, or that of its container."""
    states = [state for one in status.get("containerStatuses") or [] for state in one.get("state", {}).values()]
    reasons = [status.get("reason"), status.get("message")]
    reasons += [state.get(name) for state in states for name in ("reason", "message")]
    reasons += [f"exit code {state['exitCode']}" for state in states if state.get("exitCode")]
    return ", ".join(reason for reason in reasons if reason)
