"""Airflow and the drivers on this machine, reachable on loopback only: `make airflow`, `make airflow-stop`."""

import json
import os
import secrets
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from rich.console import Console

CHECKOUT = Path(__file__).resolve().parents[2]
HOME = Path(os.environ.get("ADLOOM_HOME", CHECKOUT / ".airflow")).resolve()
BIN = Path(sys.executable).parent
_CONF = CHECKOUT / "infra" / "supervisor" / "airflow.conf"
_SECRETS = HOME / "secrets.json"
_PASSWORDS = HOME / "passwords.json"
_DATABASE = HOME / "airflow.db"
_PORT = os.environ.get("ADLOOM_AIRFLOW_PORT", "8080")
_EXECUTION_PORT = os.environ.get("ADLOOM_EXECUTION_PORT", "8081")
"""The API for tasks has its own process: in one with the pages, a page waiting for sqlite would block the tasks."""
_PID = HOME / "supervisord.pid"
_USERS = {"admin": "admin", "viewer": "viewer"}
"""By name, the role: an admin may do everything, a viewer may only look."""
_HEALTH = "/api/v2/monitor/health"
_WORKER = b"airflow worker -- LocalExecutor"
"""The process title of a scheduler's workers. Like everything started here, they work in ``HOME``."""
_UP_S, _DOWN_S = 180, 400


def environment() -> dict[str, str]:
    """The environment of the processes; variables that are already set take precedence."""
    known = json.loads(_SECRETS.read_text())
    defaults = {
        "ADLOOM_HOME": str(HOME),
        "ADLOOM_CHECKOUT": str(CHECKOUT),
        "ADLOOM_BIN": str(BIN),
        "ADLOOM_COMMAND": str(BIN / "adloom"),
        "ADLOOM_DRIVERS": str(HOME / "drivers"),
        "ADLOOM_LAKE": str(CHECKOUT / "lake"),
        "ADLOOM_DRIVER_OPTIONS": _driver_options(),
        "ADLOOM_EXECUTION_PORT": _EXECUTION_PORT,
        "ADLOOM_METRICS_DEDUPLICATE": "",
        "ADLOOM_METRICS_ATTRIBUTE": "",
        "ADLOOM_METRICS_MEASURE": "",
        "ADLOOM_POOL": "adloom",
        "ADLOOM_SUPERVISOR_ADDRESS": "127.0.0.1:9001",
        "ADLOOM_SUPERVISOR_PASSWORD": known["supervisor"],
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__DAGS_FOLDER": str(CHECKOUT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "false",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        # The scheduler keeps this many idle workers; the default is 32.
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{_EXECUTION_PORT}/execution/",
        # sqlite's lock timeout in seconds; its default is 5.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_DATABASE}?timeout=20",
        "AIRFLOW__CORE__FERNET_KEY": known["fernet"],
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in _USERS.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(_PASSWORDS),
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": _PORT,
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{_PORT}",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": known["api"],
        "AIRFLOW__API_AUTH__JWT_SECRET": known["jwt"],
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "60",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "false",
    }
    # First on the path, so that the triggerer finds ad_dags before anything of the user's.
    paths = [str(CHECKOUT / "dags"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**defaults, **os.environ, "PYTHONPATH": os.pathsep.join(paths), **_places()}


def _places() -> dict[str, str]:
    """The variables that name a folder or a file, as absolute paths."""
    named = {name: os.environ.get(name) for name in ("ADLOOM_LAKE", "ADLOOM_CONFIG")}
    return {name: _absolute(path) for name, path in named.items() if path}


def _driver_options() -> str:
    """The options of the drivers for the files that the environment names, quoted for supervisord's command line."""
    named = {"--source": os.environ.get("ADLOOM_SOURCE"), "--config": os.environ.get("ADLOOM_CONFIG")}
    return shlex.join(word for option, file in named.items() if file for word in (option, _absolute(file)))


def _absolute(path: str) -> str:
    """``path`` as an absolute one, because the processes have working directories of their own; a URL as it is."""
    return path if "://" in path else str(Path(path).resolve())


def start() -> None:
    """Starts Airflow unless it is running, and prints its address; after the first start, the passwords too."""
    console = Console(highlight=False, soft_wrap=True)
    if _process_id() is not None:
        console.print(f"Airflow is already running: {_address()} (`make airflow-stop` stops it)")
        return
    are_new = _make_secrets()
    for folder in ("logs", "drivers"):
        (HOME / folder).mkdir(exist_ok=True)
    variables = environment()
    with console.status("preparing Airflow's database …"):
        _run([str(BIN / "airflow"), "db", "migrate"], variables)
        with closing(sqlite3.connect(_DATABASE)) as database:
            # Writers do not block readers; the setting is stored in the file.
            database.execute("PRAGMA journal_mode=WAL")
        _make_pool(variables)
    with console.status("starting Airflow …"):
        _run([str(BIN / "supervisord"), "-c", str(_CONF)], variables)
        _wait_until("answer", f"{_address()}{_HEALTH}", bool)
        _wait_until("answer its tasks", f"http://127.0.0.1:{_EXECUTION_PORT}/execution/health", bool)
        _run([str(BIN / "supervisorctl"), "-c", str(_CONF), "start", "scheduler"], variables)
        _wait_until("become healthy", f"{_address()}{_HEALTH}", _is_healthy)
    console.print(f"Airflow: {_address()}   lake: {variables['ADLOOM_LAKE']}   logs: {HOME / 'logs'}")
    if are_new:
        for name, password in json.loads(_PASSWORDS.read_text()).items():
            console.print(f"  {name} / {password}   (shown this once; kept in {_PASSWORDS})")


def _make_pool(variables: dict[str, str]) -> None:
    """Creates the pool of tasks with Spark, with one slot; one that exists stays as it is."""
    pool = variables["ADLOOM_POOL"] or "default_pool"
    with closing(sqlite3.connect(_DATABASE)) as database:
        if database.execute("SELECT 1 FROM slot_pool WHERE pool = ?", (pool,)).fetchone():
            return
    _run([str(BIN / "airflow"), "pools", "set", pool, "1", "adloom's tasks with Spark, one at a time"], variables)


def stop() -> None:
    """Stops everything that :func:`start` started; the drivers finish their batches."""
    console = Console(highlight=False, soft_wrap=True)
    process_id = _process_id()
    if process_id is None:
        console.print("Airflow is not running")
        return
    os.kill(process_id, signal.SIGTERM)
    with console.status("stopping: the drivers finish their batches …"):
        deadline = time.monotonic() + _DOWN_S
        while _process_id() is not None:
            if time.monotonic() > deadline:
                sys.exit(f"process {process_id} did not exit within {_DOWN_S} s; see its logs in {HOME / 'logs'}")
            time.sleep(0.5)
    _end_workers(b"")
    console.print("Airflow and the drivers have stopped")


def run_scheduler() -> None:
    """Becomes the scheduler, after ending the workers of one that was killed: they would wait for work forever."""
    _end_workers(b": <idle>")
    os.execv(BIN / "airflow", ["airflow", "scheduler", "--skip-serve-logs"])


def _end_workers(doing: bytes) -> None:
    """Kills the workers in ``HOME`` that dead schedulers left behind, if their title says they are ``doing`` this."""
    for entry in Path("/proc").iterdir():
        try:
            if (entry / "cmdline").read_bytes().startswith(_WORKER + doing) and (entry / "cwd").readlink() == HOME:
                os.kill(int(entry.name), signal.SIGKILL)  # they inherit a SIGTERM handler that does not end them
        except (OSError, ValueError):
            continue  # not a process, another user's, or one that has just exited


def _make_secrets() -> bool:
    HOME.mkdir(mode=0o700, exist_ok=True)
    if _SECRETS.exists() and _PASSWORDS.exists():
        return False
    from cryptography.fernet import Fernet

    generated = {name: secrets.token_urlsafe(32) for name in ("supervisor", "api", "jwt")}
    _write_secret(_SECRETS, {**generated, "fernet": Fernet.generate_key().decode()})
    _write_secret(_PASSWORDS, {name: secrets.token_urlsafe(12) for name in _USERS})
    return True


def _write_secret(file: Path, value: dict[str, str]) -> None:
    file.touch(mode=0o600)
    file.write_text(json.dumps(value))


def _run(command: list[str], variables: dict[str, str]) -> None:
    done = subprocess.run(command, env=variables, cwd=HOME, capture_output=True, text=True, check=False, timeout=_UP_S)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _is_healthy(parts: dict[str, dict[str, str]]) -> bool:
    return all(part["status"] == "healthy" for part in parts.values())


def _wait_until(what: str, address: str, holds: Callable[[dict[str, Any]], bool]) -> None:
    """Returns once ``holds`` is true of the JSON at ``address``."""
    deadline = time.monotonic() + _UP_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310 on loopback
                if holds(json.load(answer)):
                    return
        except OSError:
            pass
        time.sleep(1)
    sys.exit(f"Airflow did not {what} within {_UP_S} s; see its logs in {HOME / 'logs'}")


def _address() -> str:
    return f"http://127.0.0.1:{_PORT}"


def _process_id() -> int | None:
    """The process id of the supervisord that runs Airflow; None if it is not running."""
    try:
        process_id = int(_PID.read_text())
        command = Path(f"/proc/{process_id}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return process_id if str(_CONF).encode() in command else None


if __name__ == "__main__":
    {"start": start, "stop": stop, "scheduler": run_scheduler}[sys.argv[1]]()
