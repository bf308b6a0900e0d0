"""Drivers under supervisord."""

import base64
import http.client
from datetime import UTC, datetime
from typing import Any
from xmlrpc.client import Fault, ProtocolError, ServerProxy

from ad_dags.launchers.launcher import Driver, DriverState, LauncherError

_USER = "adloom"
_BAD_NAME, _SPAWN_ERROR, _ALREADY_STARTED, _NOT_RUNNING = 10, 50, 60, 70
"""Fault codes of supervisord."""
_STATES = {
    "STARTING": DriverState.STARTING,
    "RUNNING": DriverState.RUNNING,
    "STOPPING": DriverState.DRAINING,
    "STOPPED": DriverState.STOPPED,
    "EXITED": DriverState.STOPPED,
    "BACKOFF": DriverState.RETRYING,
    "FATAL": DriverState.GIVEN_UP,
}


class SupervisorLauncher:
    """Drivers under supervisord, as ``infra/supervisor/drivers.conf`` sets it up; see :class:`Launcher`.

    Source: `supervisord's XML-RPC API <https://supervisord.org/api.html>`_.
    """

    def __init__(self, address: str, password: str) -> None:
        """Names the supervisor at ``address`` (host:port); nothing is asked of it yet."""
        self.address = address
        # As a header: in the address it would stand in the text of errors.
        login = base64.b64encode(f"{_USER}:{password}".encode()).decode()
        self._headers = [("Authorization", f"Basic {login}")]

    def start(self, job: str) -> None:
        """Has the driver of ``job`` started, unless it is."""
        self._ask("startProcess", job, False, ignoring=_ALREADY_STARTED)

    def drain(self, job: str) -> None:
        """Asks the driver of ``job`` to finish its batches and stop, if there is one."""
        self._ask("stopProcess", job, False, ignoring=_NOT_RUNNING)

    def look(self, job: str) -> Driver:
        """The driver of ``job``."""
        found = self._ask("getProcessInfo", job)
        state = _STATES.get(found["statename"])
        if state is None:
            raise LauncherError(f"supervisord at {self.address} cannot tell the state of {job}: {found['statename']}")
        began = found["start"] if state.is_alive else found["stop"]
        since = datetime.fromtimestamp(began, UTC) if began else None
        told = found["spawnerr"] or found["description"]
        return Driver(job, state, found["pid"] or None, since, str(told))

    def log(self, job: str, last_bytes: int = 20_000) -> str:
        """The end of what the driver of ``job`` told."""
        return str(self._ask("readProcessStdoutLog", job, -last_bytes, 0))

    def _ask(self, method: str, job: str, *arguments: Any, ignoring: int | None = None) -> Any:
        try:
            with ServerProxy(f"http://{self.address}/RPC2", headers=self._headers) as server:
                return getattr(server.supervisor, method)(job, *arguments)
        except Fault as fault:
            if fault.faultCode == ignoring:
                return None
            why = {
                _BAD_NAME: f"it has no program {job}: is infra/supervisor/drivers.conf the one it runs with?",
                _SPAWN_ERROR: f"{job} cannot be started; its log tells why",
            }.get(fault.faultCode, fault.faultString)
        except ProtocolError as error:
            why = (
                "it refuses the password; set the same ADLOOM_SUPERVISOR_PASSWORD for it and for Airflow"
                if error.errcode == http.client.UNAUTHORIZED
                else f"it answers {error.errcode} {error.errmsg}"
            )
        except (OSError, http.client.HTTPException) as error:
            why = f"it does not answer ({error}); does it run, and is ADLOOM_SUPERVISOR_ADDRESS right?"
        raise LauncherError(f"supervisord at {self.address}: {why}") from None
