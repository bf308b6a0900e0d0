"""What the servers of the tests share: each is a process of its own on loopback ports that were free."""

import signal
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_STOP_S = 30


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_open(port: int, host: str = "127.0.0.1") -> bool:
    """Whether something listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def end(process: "subprocess.Popen[bytes] | None", how: signal.Signals = signal.SIGTERM) -> None:
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
