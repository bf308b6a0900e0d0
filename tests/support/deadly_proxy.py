"""A proxy before an object store that counts writes, and at one of them kills whoever made it."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

_REQUEST: Final = re.compile(rb"(PUT|POST|DELETE) (\S+) HTTP")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNK: Final = 1 << 16
_PATIENCE_S: Final = 120


@dataclass
class DeadlyProxy:
    """The proxy, on ``port``; each connection has a thread for either direction.

    Attributes:
        store: the port of the store, on loopback.
        counts: whether the write of an object counts, by the path of its request.
        point: the number of the write to kill at, from 1; 0: none.
        is_done: whether the store has done that write before its writer is killed, which then does not learn of it.
        kill: kills the writer.
    """

    store: int
    counts: Callable[[str], bool]
    point: int = 0
    is_done: bool = False
    kill: Callable[[], None] = lambda: None
    paths: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def port(self) -> int:
        """Where it listens, on loopback."""
        return int(self._listener.getsockname()[1])

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serves while its block runs."""
        threading.Thread(target=self._accept, daemon=True).start()
        try:
            yield
        finally:
            self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.store)) as store, suppress(OSError):
            client.settimeout(_PATIENCE_S)
            is_last = threading.Event()
            threading.Thread(target=self._answer, args=(store, client, is_last), daemon=True).start()
            waiting = b""
            while True:
                while b"\r\n\r\n" not in waiting:
                    if not (read := client.recv(_CHUNK)):
                        return
                    waiting += read
                head, _, waiting = waiting.partition(b"\r\n\r\n")
                if self._is_point(head):
                    if not self.is_done:
                        self.kill()
                        return
                    is_last.set()
                store.sendall(head + b"\r\n\r\n")
                found = _LENGTH.search(head)
                waiting = self._forward(client, store, waiting, int(found[1]) if found else 0)

    @staticmethod
    def _forward(client: socket.socket, store: socket.socket, waiting: bytes, length: int) -> bytes:
        """Passes on a body of ``length``; returns what has been read beyond it."""
        while length > len(waiting):
            store.sendall(waiting)
            length -= len(waiting)
            waiting = client.recv(_CHUNK)
            if not waiting:
                raise OSError
        store.sendall(waiting[:length])
        return waiting[length:]

    def _answer(self, store: socket.socket, client: socket.socket, is_last: threading.Event) -> None:
        with suppress(OSError):
            while answer := store.recv(_CHUNK):
                if is_last.is_set() and not answer.startswith(b"HTTP/1.1 100"):
                    self.kill()
                    return
                client.sendall(answer)

    def _is_point(self, head: bytes) -> bool:
        found = _REQUEST.match(head)
        path = found[2].decode() if found else ""
        if not found or not self.counts(path):
            return False
        with self._lock:
            self.paths.append(f"{found[1].decode()} {path}")
            return len(self.paths) == self.point
