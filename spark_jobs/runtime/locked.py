"""Locks between processes of one machine."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Waits for the lock on ``file``, which is created if need be, and holds it; the system releases it at the end."""
    with file.open("ab") as opened:
        fcntl.lockf(opened, fcntl.LOCK_EX)
        yield
