"""Drivers on Kubernetes, through its official Python client."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ad_dags.drivers.launchers.launcher import Driver, DriverState, LauncherError
from spark_jobs.errors import EnvironmentMissingError
from spark_jobs.spark.names import application_name

# The client is imported late, and only if Kubernetes is used: it takes seconds and some 130 MB.

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds the token and the certificate authority of its own account."""
_TIMEOUT_S = 20
_LOG_LINES = 1000
_NOT_FOUND = 404
_STATES = {
    "Pending": DriverState.STARTING,
    "Running": DriverState.RUNNING,
    "Succeeded": DriverState.STOPPED,
    "Failed": DriverState.FAILED,
    # Its node does not answer. The driver may well be running, and must not be started a second time.
    "Unknown": DriverState.RUNNING,
}


class KubernetesCluster:
    """Pods that are named after their driver; see :class:`ad_dags.drivers.launchers.cluster.Cluster`.

    Source: `Kubernetes' API of pods <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/>`_.
    """

    def __init__(self, address: str, root: str, namespace: str, account: Path = _ACCOUNT) -> None:
        """``address`` is the API (``https://host:port``), ``root`` the lake, ``account`` the folder of the account.

        Raises:
            EnvironmentMissingError: the client is not installed.
        """
        self._address, self._root, self._namespace = address.rstrip("/"), root, namespace
        self._pods = _connect(self._address, account)

    def inspect(self, job: str) -> Driver:
        """The pod of ``job``."""
        pod = self._call("read_namespaced_pod", job)
        if pod is None:
            return Driver(job, DriverState.STOPPED, None, None, "it has no pod")
        phase = pod.status.phase or "Pending"
        state = DriverState.STOPPING if pod.metadata.deletion_timestamp else _STATES[phase]
        detail = f"pod {pod.metadata.name} {phase.lower()} {_reasons(pod.status)}".strip()
        return Driver(job, state, None, pod.status.start_time or pod.metadata.creation_timestamp, detail)

    def kill(self, job: str) -> None:
        """Deletes the pod of ``job``, if there is one."""
        self._call("delete_namespaced_pod", job, grace_period_seconds=0)

    def log(self, job: str, last_bytes: int) -> str:
        """The end of its driver's log, for as long as the pod exists."""
        log: str = self._call("read_namespaced_pod_log", job, tail_lines=_LOG_LINES) or ""
        return log[-last_bytes:]

    def _call(self, method: str, job: str, **options: Any) -> Any:
        """The result of the client's ``method`` for the pod of ``job``; None if there is no such pod."""
        from kubernetes.client import ApiException  # noqa: PLC0415 see above

        pod = application_name(self._root, job)
        with self._explaining(f"{method} of {self._namespace}/{pod}"):
            try:
                return getattr(self._pods, method)(pod, self._namespace, _request_timeout=_TIMEOUT_S, **options)
            except ApiException as error:
                if error.status == _NOT_FOUND:
                    return None
                raise

    @contextmanager
    def _explaining(self, what: str) -> Iterator[None]:
        """Turns whatever the client raises into a LauncherError, without the request, whose headers hold the token."""
        from kubernetes.client import ApiException  # noqa: PLC0415 see above
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            yield
        except ApiException as error:
            why = f"answers {what} with {error.status}: {_message(error)}"
        except HTTPError as error:
            why = f"does not answer: {getattr(error, 'reason', None) or error}"
        except (OSError, ValueError) as error:
            why = f"does not answer {what} as expected: {str(error)[:500]}"
        else:
            return
        raise LauncherError(f"Kubernetes at {self._address} {why}")


def _connect(address: str, account: Path) -> Any:
    """A client of the API, with the account in the folder ``account``, if there is one."""
    try:
        from kubernetes.client import ApiClient, Configuration, CoreV1Api  # noqa: PLC0415 see above
    except ImportError as error:
        raise EnvironmentMissingError(
            f"drivers on Kubernetes need its Python client ({error}); install it in Airflow's environment: "
            "uv sync --group kubernetes, or pip install kubernetes"
        ) from error
    token, authority = account / "token", account / "ca.crt"
    configuration = Configuration(host=address, ssl_ca_cert=str(authority) if authority.exists() else None, retries=0)
    if token.exists():
        configuration.refresh_api_key_hook = partial(_read_token, token)
        configuration.refresh_api_key_hook(configuration)
    return CoreV1Api(ApiClient(configuration))


def _read_token(file: Path, configuration: Any) -> None:
    """Called before each request, because Kubernetes replaces the token in the file long before it expires."""
    configuration.api_key["BearerToken"] = f"Bearer {file.read_text(encoding='utf-8').strip()}"


def _message(error: Any) -> str:
    """The message in the API's answer, if the error is one of Kubernetes' own; otherwise the start of the answer."""
    try:
        return str(json.loads(error.body)["message"])
    except (KeyError, TypeError, ValueError):
        return str(error.body or error.reason)[:500]


def _reasons(status: Any) -> str:
    """Why a pod is in its phase, as it and its containers say."""
    containers = [one.state for one in status.container_statuses or [] if one.state]
    states = [state for one in containers for state in (one.waiting, one.terminated) if state]
    reasons = [status.reason, status.message]
    reasons += [text for state in states for text in (state.reason, state.message)]
    reasons += [f"exit code {code}" for state in states if (code := getattr(state, "exit_code", None))]
    return ", ".join(reason for reason in reasons if reason)
