"""A lock in an object store: an object that its holder renews, and that expires if it is not renewed."""

import json
import logging
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_jobs.errors import LakeError
from spark_jobs.lake.store.objects import Objects

_RENEWALS = 6
"""Renewals within the length of a lease."""
_RETRY_S = 1.0
"""The longest pause after a renewal that failed, and between two looks of a contender."""
PROC = Path("/proc")
_START_FIELD = 22 - 3
"""In /proc/<pid>/stat, counted from the field after the process name, which may contain anything."""
_log = logging.getLogger(__name__)


def _clock() -> float:
    """Seconds, by a clock that nobody sets, and that counts on while the machine is suspended, if it has such a one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass
class Lease:
    """The lock at ``key``, which expires ``seconds`` after its last renewal.

    ::

        holder      renews ──┬─ answer …   renews ──x      x      x      is lost
        its belief           |< seconds >| |<──────── seconds ────────>|
        object      tag 7 ─────── tag 8 ─────── tag 9 ─────────────────────────
        contender                                  sees 9 |<──── seconds ────>| takes it

    Machines need not agree on the time: a process that wants the lock takes it after it has seen the object unchanged
    for the length of the holder's lease, which the lock states, by its own clock. The holder counts from when it sent
    its last renewal that succeeded, which is earlier than anybody can have seen its outcome, so it gives up first. A
    contender does not wait for a holder on the same machine whose processes have ended. Every change is conditional on
    the version seen before, so only one of two contenders wins.
    """

    objects: Objects
    key: str
    seconds: float
    process_ids: tuple[int, ...]
    """The processes that write under the lock: Python and its Java."""
    clock: Callable[[], float] = _clock
    _tag: str = ""
    _renewals: int = 0
    _renewed_at: float = -math.inf
    _taken_by: str = ""
    _ended: threading.Event = field(default_factory=threading.Event)
    _renewing: threading.Thread | None = None
    _name: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def loss(self) -> str:
        """Why the lock is lost; empty while it is held. Asks nobody, so it answers at once."""
        if self._taken_by:
            return f"{self._taken_by} has taken it"
        since = self.clock() - self._renewed_at
        if since < self.seconds:
            return ""
        return f"it could not be renewed for {since:.0f} s, and expires after {self.seconds:.0f} s (s3.lease)"

    def acquire(self) -> bool:
        """Takes the lock and starts renewing it. Returns False if another process holds it.

        Raises:
            LakeError: the store does not answer.
        """
        # One request that hangs, or is repeated with growing pauses, could outlast the lease.
        hasty = self.objects.hasty(self.seconds / _RENEWALS)
        is_free, tag = look(self.objects, self.key, self.seconds)
        if not is_free or not self._put(self.objects, tag):
            return False
        self._renewing = threading.Thread(target=self._renew, args=(hasty,), daemon=True)
        self._renewing.start()
        return True

    def release(self) -> None:
        """Releases the lock; if the store does not answer, the lock expires."""
        self._ended.set()
        if self._renewing:
            self._renewing.join(self.seconds)
        try:
            self.objects.replace(self.key, self._text(is_held=False), self._tag)
        except (LakeError, OSError) as error:
            _log.warning("cannot release the lock %s, which expires by itself: %s", self.key, error)

    def _put(self, objects: Objects, tag: str | None) -> bool:
        """Writes the lock if the object is still the version ``tag``; returns whether it was."""
        sent_at = self.clock()
        self._renewals += 1
        new = objects.replace(self.key, self._text(), tag)
        if new is not None:
            self._tag, self._renewed_at = new, sent_at
        return new is not None

    def _renew(self, objects: Objects) -> None:
        is_renewed = True
        while not self._taken_by and not self._ended.wait(self._pause(is_renewed=is_renewed)):
            try:
                is_renewed = self._renew_once(objects)
            except Exception as error:  # noqa: BLE001 a thread that ends here would lose the lock
                _log.warning("cannot renew the lock %s, trying again: %r", self.key, error)
                is_renewed = False

    def _pause(self, *, is_renewed: bool) -> float:
        """How long to wait for the next renewal: after a slow answer not at all."""
        interval = self.seconds / _RENEWALS
        return max(0.0, self._renewed_at + interval - self.clock()) if is_renewed else min(_RETRY_S, interval)

    def _renew_once(self, objects: Objects) -> bool:
        if self._put(objects, self._tag):
            return True
        found = objects.read_version(self.key)
        if found is None or _parse(found[0]).get("name") != self._name:
            self._taken_by = holder(found[0]) if found else "a process that removed it"
        else:
            # The answer to a renewal was lost. When the store carried it out is unknown, so it does not count.
            self._tag = found[1]
        return False

    def _text(self, *, is_held: bool = True) -> bytes:
        content = {
            "name": self._name,
            "is_held": is_held,
            "lease_seconds": self.seconds,
            "renewals": self._renewals,
            "host": socket.gethostname(),
            "here": here(),
            "uid": os.geteuid(),
            "processes": {str(process_id): started(process_id) for process_id in self.process_ids},
            "by": f"adloom, process {os.getpid()}",
        }
        return json.dumps(content, indent=2).encode()


def look(objects: Objects, key: str, seconds: float) -> tuple[bool, str | None]:
    """Whether the lock at ``key`` may be taken. Changes nothing.

    That a lock is held shows in its next renewal, and that it has expired after the length of its holder's lease.

    Args:
        objects: where it is.
        key: of the lock.
        seconds: the length of a lease that does not state its own.

    Returns:
        Whether it is free, and the version of the object that says so; None: there is no object.

    Raises:
        LakeError: the store does not answer.
    """
    found = objects.read_version(key)
    if found is None:
        return True, None
    text, tag = found
    seconds = _length(text, seconds)
    deadline = time.monotonic() + seconds
    while not _is_free(text) and time.monotonic() < deadline:
        time.sleep(min(_RETRY_S, seconds / _RENEWALS))
        found = objects.read_version(key)
        if found is None or found[1] != tag:
            return found is None or _is_free(found[0]), found and found[1]
    return True, tag


def holder(text: bytes) -> str:
    """Who holds the lock with the content ``text``, to be shown."""
    lock = _parse(text)
    return f"{lock.get('by', 'an unknown process')} on {lock.get('host', 'an unknown host')}"


def _parse(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _length(text: bytes, otherwise: float) -> float:
    """The length of the lease of the lock ``text`` in seconds; ``otherwise`` if an older version left it out."""
    seconds = _parse(text).get("lease_seconds")
    return float(seconds) if isinstance(seconds, int | float) and 0 < seconds < math.inf else otherwise


def _is_free(text: bytes) -> bool:
    """Whether the lock was released, or its holder was on this machine and all its processes have ended."""
    lock = _parse(text)
    if not lock.get("is_held", True):
        return True
    processes = lock.get("processes")
    if not isinstance(processes, dict) or not lock.get("here") or lock["here"] != here():
        return False
    # Locks of earlier versions do not say whose they are.
    if lock.get("uid") != os.geteuid() and not _sees_others():
        return False
    return all(not since or started(int(process_id)) != since for process_id, since in processes.items())


def _sees_others() -> bool:
    """Whether processes of other users can be seen. Under hidepid they look as if they had ended."""
    folders = [folder for folder in PROC.iterdir() if folder.name.isdigit()]
    return any(started(int(folder.name)) and _owner(folder) not in (None, os.geteuid()) for folder in folders)


def _owner(folder: Path) -> int | None:
    try:
        return folder.stat().st_uid
    except FileNotFoundError:  # the process has just ended
        return None


def here() -> str:
    """The scope in which process ids are unique: this boot of this machine and this PID namespace.

    Empty on systems other than Linux.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def started(process_id: int) -> str:
    """When the process started, in clock ticks since boot; empty if it is not running. Distinguishes reused ids."""
    try:
        fields = (PROC / f"{process_id}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[_START_FIELD]
