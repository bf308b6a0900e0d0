"""A lock in an object store: an object that its holder renews, and that is void when it is not renewed."""

import json
import logging
import math
import os
import secrets
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.contracts.errors import LakeError
from spark_jobs.runtime.objects import Objects
from spark_jobs.runtime.processes import here, started

_RENEWALS = 4
"""Renewals in the time after which it is void."""
_log = logging.getLogger(__name__)


@dataclass
class Lease:
    """The lock at ``key``; void ``seconds`` after its last renewal.

    No two machines need to agree on the time: who wants the lock waits until it has seen the object unchanged for so
    long by its own clock. Only a holder on the same machine whose processes have ended is not waited for. Every change
    is conditional on the version seen before, so of two that want it one gets it.
    """

    objects: Objects
    key: str
    seconds: float
    process_ids: tuple[int, ...]
    """Those that write under the lock: Python's, and that of its Java."""
    is_lost: bool = False
    """Whether another one took it while the store could not be reached."""
    _tag: str = ""
    _renewals: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _name: str = field(default_factory=lambda: secrets.token_hex(8))

    def acquire(self) -> bool:
        """Takes the lock and begins to renew it. Returns whether it did: if not, another one holds it."""
        tag = self._take()
        if tag is None:
            return False
        self._tag = tag
        threading.Thread(target=self._renew, daemon=True).start()
        return True

    def release(self) -> None:
        """Gives the lock back; a store that does not answer will find it void later."""
        self._ended.set()
        try:
            self.objects.replace(self.key, self._text(is_held=False), self._tag)
        except LakeError as error:
            _log.warning("the lock %s could not be given back and will be void in a moment: %s", self.key, error)

    def _take(self) -> str | None:
        tag = self.objects.replace(self.key, self._text(), None)
        if tag:
            return tag
        found = self.objects.read_version(self.key)
        if found and not _is_void(found[0]) and not self._stays(found[1], _length(found[0], self.seconds)):
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
                _log.warning("the lock %s could not be renewed, trying again: %s", self.key, error)
            if self.is_lost:
                return

    def _renew_once(self) -> None:
        self._renewals += 1
        tag = self.objects.replace(self.key, self._text(), self._tag)
        if tag is None:
            # An answer that was lost on its way leaves our own renewal there, under a tag that we do not know.
            found = self.objects.read_version(self.key)
            if found is None or _told(found[0]).get("name") != self._name:
                self.is_lost = True
                return
            tag = found[1]
        self._tag = tag

    def _text(self, *, is_held: bool = True) -> bytes:
        told = {
            "name": self._name,
            "is_held": is_held,
            "lease_seconds": self.seconds,
            "renewals": self._renewals,
            "host": socket.gethostname(),
            "here": here(),
            "processes": {str(process_id): started(process_id) for process_id in self.process_ids},
            "by": f"adloom, process {os.getpid()}",
        }
        return json.dumps(told, indent=2).encode()


def holder(text: bytes) -> str:
    """Who holds the lock of ``text``, for people."""
    told = _told(text)
    return f"{told.get('by', 'an unknown process')} on {told.get('host', 'an unknown host')}"


def _told(text: bytes) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _length(text: bytes, otherwise: float) -> float:
    """How long the lease of the lock ``text`` is, in seconds; ``otherwise`` where an older version wrote it without."""
    seconds = _told(text).get("lease_seconds")
    return float(seconds) if isinstance(seconds, int | float) and 0 < seconds < math.inf else otherwise


def _is_void(text: bytes) -> bool:
    """Whether the lock was given back, or was held by processes of this machine that have ended."""
    told = _told(text)
    if not told.get("is_held", True):
        return True
    processes = told.get("processes")
    if not isinstance(processes, dict) or not told.get("here") or told["here"] != here():
        return False
    return all(not since or started(int(process_id)) != since for process_id, since in processes.items())
