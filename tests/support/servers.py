"""What the servers of the tests share: each is a process of its own on loopback ports that were free."""

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_START_S, _STOP_S = 60, 30
_PORTS = range(20_000, 32_000)
"""Below those of outgoing connections, one of which could take a port before the server that it is meant for."""


def free_port() -> int:
    """A port that nothing listens on now."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("every port is taken")


def is_open(port: int, host: str = "127.0.0.1") -> bool:
    """Whether something listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def end(process: subprocess.Popen[bytes] | None, how: signal.Signals = signal.SIGTERM) -> None:
    """Sends the signal and waits for the process to end."""
    if process:
        process.send_signal(how)
        process.wait(_STOP_S)


def wait_until(happened: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Returns when ``happened``; fails with ``otherwise`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.2)


@contextmanager
def running(command: list[str], port: int, log: Path, **environment: str) -> Iterator[None]:
    """Runs ``command`` from when it listens on ``port``; what it prints goes to ``log``."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **environment})
    try:
        wait_until(lambda: is_open(port) or process.poll() is not None, _START_S, f"{command[0]} does not listen")
        assert process.poll() is None, log.read_text()
        yield
    finally:
        end(process)
