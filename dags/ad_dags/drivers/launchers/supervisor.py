"""Drivers under supervisord."""

import base64
import http.client
from datetime import UTC, datetime
from typing import Any
from xmlrpc.client import Fault, ProtocolError, ServerProxy

from ad_dags.drivers.launchers.launcher import Driver, DriverState, LauncherError

_USER = "adloom"
_BAD_NAME, _SPAWN_ERROR, _ALREADY_STARTED, _NOT_RUNNING = 10, 50, 60, 70
"""Fault codes of supervisord."""
_STATES = {
    "STARTING": DriverState.STARTING,
    "RUNNING": DriverState.RUNNING,
    "STOPPING": DriverState.STOPPING,
    "STOPPED": DriverState.STOPPED,
    "EXITED": DriverState.STOPPED,
    "BACKOFF": DriverState.STARTING,
    "FATAL": DriverState.FAILED,
}


class SupervisorLauncher:
    """Drivers under supervisord, as ``infra/supervisor/drivers.conf`` sets it up; see :class:`Launcher`.

    Source: `supervisord's XML-RPC API <https://supervisord.org/api.html>`_.
    """

    def __init__(self, address: str, password: str) -> None:
        """``address`` is the supervisor's host:port; nothing is sent to it yet."""
        self.address = address
        # Sent as a header: in the address, the password would appear in error messages.
        login = base64.b64encode(f"{_USER}:{password}".encode()).decode()
        self._headers = [("Authorization", f"Basic {login}")]

    def start(self, job: str) -> None:
        """Starts the driver of ``job`` unless there is one."""
        self._ask("startProcess", job, False, ignoring=_ALREADY_STARTED)

    def stop(self, job: str) -> None:
        """Asks the driver of ``job``, if there is one, to finish its batches and stop.

        One that takes longer than ``stopwaitsecs`` is killed by supervisord itself.
        """
        self._ask("stopProcess", job, False, ignoring=_NOT_RUNNING)

    def inspect(self, job: str) -> Driver:
        """The driver of ``job``."""
        process = self._ask("getProcessInfo", job)
        state = _STATES.get(process["statename"])
        if state is None:
            raise LauncherError(
                f"supervisord at {self.address} reports an unknown state of {job}: {process['statename']}"
            )
        detail = process["spawnerr"] or process["description"]
        if process["statename"] == "EXITED" and process["exitstatus"]:
            state, detail = DriverState.FAILED, f"exit code {process['exitstatus']}"
        entered = process["start"] if state.is_alive else process["stop"]
        since = datetime.fromtimestamp(entered, UTC) if entered else None
        return Driver(job, state, process["pid"] or None, since, str(detail))

    def log(self, job: str, last_bytes: int = 20_000) -> str:
        """The end of the log of the driver of ``job``."""
        return str(self._ask("readProcessStdoutLog", job, -last_bytes, 0))

    def _ask(self, method: str, job: str, *arguments: Any, ignoring: int | None = None) -> Any:
        try:
            with ServerProxy(f"http://{self.address}/RPC2", headers=self._headers) as server:
                return getattr(server.supervisor, method)(job, *arguments)
        except Fault as fault:
            if fault.faultCode == ignoring:
                return None
            why = {
                _BAD_NAME: f"it has no program {job}: does it run with infra/supervisor/drivers.conf?",
                _SPAWN_ERROR: f"{job} cannot be started; see its log",
            }.get(fault.faultCode, fault.faultString)
        except ProtocolError as error:
            why = (
                "it refuses the password; set the same ADLOOM_SUPERVISOR_PASSWORD for supervisord and Airflow"
                if error.errcode == http.client.UNAUTHORIZED
                else f"it answers {error.errcode} {error.errmsg}"
            )
        except (OSError, http.client.HTTPException) as error:
            why = f"it does not answer ({error}); check that it is running and that ADLOOM_SUPERVISOR_ADDRESS is right"
        raise LauncherError(f"supervisord at {self.address}: {why}") from None
