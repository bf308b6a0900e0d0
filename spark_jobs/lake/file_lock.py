"""Locks of local lakes: files that the operating system locks."""

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def waiting_for(file: Path) -> Iterator[None]:
    """Waits for the lock on ``file``, created if missing, and holds it; the system releases it at the end."""
    with file.open("ab") as opened:
        fcntl.lockf(opened, fcntl.LOCK_EX)
        yield


_WHOLE_FILE = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
"""C's ``struct flock``."""


@contextmanager
def locked(file: Path) -> Iterator[bool]:
    """Tries to lock ``file``, created if missing; yields whether that succeeded."""
    # Of the open file, not of the process: POSIX locks end when a process closes any descriptor of the file.
    with file.open("ab") as opened:
        try:
            fcntl.fcntl(opened, fcntl.F_OFD_SETLK, _WHOLE_FILE)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            yield False
        else:
            yield True


def is_locked(file: Path) -> bool:
    """Whether somebody else has locked ``file``. Asks without locking it, so that nobody is refused meanwhile."""
    try:
        with file.open("rb") as opened:
            found = fcntl.fcntl(opened, fcntl.F_OFD_GETLK, _WHOLE_FILE)
    except FileNotFoundError:
        return False
    return bool(struct.unpack("hhqqi", found)[0] != fcntl.F_UNLCK)
