"""A lock in an object store: an object that its holder renews, and that expires if it is not renewed."""

import json
import logging
import math
import os
import secrets
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_jobs.errors import LakeError
from spark_jobs.lake.store.objects import Objects

_RENEWALS = 4
"""Renewals within the length of a lease."""
_log = logging.getLogger(__name__)
_START_FIELD = 22 - 3
"""In /proc/<pid>/stat, counted from the field after the process name, which may contain anything."""


@dataclass
class Lease:
    """The lock at ``key``, which expires ``seconds`` after its last renewal.

    Machines need not agree on the time: a process that wants the lock takes it after it has seen the object unchanged
    for the length of the holder's lease, which the lock states, by its own clock. It does not wait for a holder on the
    same machine whose processes have ended. Every change is conditional on the version seen before, so only one of two
    contenders wins.
    """

    objects: Objects
    key: str
    seconds: float
    process_ids: tuple[int, ...]
    """The processes that write under the lock: Python and its Java."""
    is_lost: bool = False
    """Whether another process took the lock while the store was unreachable."""
    _tag: str = ""
    _renewals: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _name: str = field(default_factory=lambda: secrets.token_hex(8))

    def acquire(self) -> bool:
        """Takes the lock and starts renewing it. Returns False if another process holds it."""
        tag = self._take()
        if tag is None:
            return False
        self._tag = tag
        threading.Thread(target=self._renew, daemon=True).start()
        return True

    def release(self) -> None:
        """Releases the lock; if the store does not answer, the lock expires."""
        self._ended.set()
        try:
            self.objects.replace(self.key, self._text(is_held=False), self._tag)
        except LakeError as error:
            _log.warning("cannot release the lock %s, which expires by itself: %s", self.key, error)

    def _take(self) -> str | None:
        tag = self.objects.replace(self.key, self._text(), None)
        if tag:
            return tag
        found = self.objects.read_version(self.key)
        if found and not _is_free(found[0]) and not self._stays(found[1], _length(found[0], self.seconds)):
            return None
        return self.objects.replace(self.key, self._text(), found[1] if found else None)

    def _stays(self, tag: str, seconds: float) -> bool:
        """Whether the object is still the version ``tag`` after ``seconds``, the length of its holder's lease."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(min(1.0, seconds / _RENEWALS))
            found = self.objects.read_version(self.key)
            if found is None or found[1] != tag:
                return False
        return True

    def _renew(self) -> None:
        while not self._ended.wait(self.seconds / _RENEWALS):
            try:
                self._renew_once()
            except LakeError as error:
                _log.warning("cannot renew the lock %s, trying again: %s", self.key, error)
            if self.is_lost:
                return

    def _renew_once(self) -> None:
        self._renewals += 1
        tag = self.objects.replace(self.key, self._text(), self._tag)
        if tag is None:
            # If the answer to our renewal was lost, the object is ours, under a tag that we do not know.
            found = self.objects.read_version(self.key)
            if found is None or _parse(found[0]).get("name") != self._name:
                self.is_lost = True
                return
            tag = found[1]
        self._tag = tag

    def _text(self, *, is_held: bool = True) -> bytes:
        content = {
            "name": self._name,
            "is_held": is_held,
            "lease_seconds": self.seconds,
            "renewals": self._renewals,
            "host": socket.gethostname(),
            "here": here(),
            "processes": {str(process_id): started(process_id) for process_id in self.process_ids},
            "by": f"adloom, process {os.getpid()}",
        }
        return json.dumps(content, indent=2).encode()


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
    return all(not since or started(int(process_id)) != since for process_id, since in processes.items())


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
        fields = (
            Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[_START_FIELD]
