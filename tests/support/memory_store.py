"""An object store in memory that obeys conditional writes, and that fails as a test wants it to."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable

from spark_jobs.lake.store.objects import Objects


class MemoryStore(Objects):
    """The part of a store that locks and small records need.

    ``fault`` is called before each request, and ``after`` once a write has been carried out: one that raises stands for
    an answer that was lost. ``writes`` counts, by key, the writes that the store carried out.
    """

    def __init__(self) -> None:
        self.root, self.bucket, self.prefix, self.endpoint = "s3a://memory/lake", "memory", "lake", "http://memory"
        self.fault: Callable[[], None] | None = None
        self.after: Callable[[], None] | None = None
        self.writes: Counter[str] = Counter()
        self._found: dict[str, tuple[bytes, str]] = {}
        self._lock = threading.Lock()

    def hasty(self, _timeout_s: float) -> "MemoryStore":
        """Itself."""
        return self

    def read_version(self, key: str) -> tuple[bytes, str] | None:
        """See :class:`Objects`."""
        self._fail()
        return self._found.get(key)

    def write(self, key: str, data: bytes) -> None:
        """See :class:`Objects`."""
        self._fail()
        self._put(key, data)

    def replace(self, key: str, data: bytes, tag: str | None) -> str | None:
        """See :class:`Objects`."""
        self._fail()
        with self._lock:
            there = self._found.get(key)
            if (there[1] if there else None) != tag:
                return None
            new = self._put(key, data)
        if self.after:
            self.after()
        return new

    def delete(self, keys: Iterable[str]) -> None:
        """See :class:`Objects`."""
        self._fail()
        for key in keys:
            self._found.pop(key, None)

    def _put(self, key: str, data: bytes) -> str:
        self.writes[key] += 1
        tag = f"tag-{sum(self.writes.values())}"
        self._found[key] = (data, tag)
        return tag

    def _fail(self) -> None:
        if self.fault:
            self.fault()
