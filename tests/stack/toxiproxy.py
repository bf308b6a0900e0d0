"""A real toxiproxy on loopback: connections through it are slow, cut or swallowed as a test wants."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.stack.gobuilt import TOXIPROXY, built
from tests.support.servers import end, free_port, is_open, wait_until

_START_S = 30
LATENCY: dict[str, Any] = {"type": "latency", "attributes": {"latency": 200, "jitter": 100}}
SLOW: dict[str, Any] = {"type": "bandwidth", "attributes": {"rate": 64}}
RESETS: dict[str, Any] = {"type": "reset_peer", "attributes": {"timeout": 300}, "toxicity": 0.3}
BLACK_HOLE: dict[str, Any] = {"type": "timeout", "attributes": {"timeout": 0}}


@dataclass
class Toxiproxy:
    """The server; proxies are made by name."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it and returns when it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "toxiproxy.log").open("ab") as log:
            command = [str(built(TOXIPROXY)), "-host", "127.0.0.1", "-port", str(self.port)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(lambda: is_open(self.port), _START_S, f"toxiproxy does not answer: see {self.folder}/toxiproxy.log")

    def stop(self) -> None:
        """Ends it."""
        end(self.process)
        self.process = None

    def lead(self, name: str, *, port: int, to: int) -> None:
        """Makes the proxy ``name``, which listens on ``port``."""
        proxy = {"name": name, "listen": f"127.0.0.1:{port}", "upstream": f"127.0.0.1:{to}", "enabled": True}
        self._ask("POST", "/proxies", proxy)

    @contextmanager
    def toxic(self, toxic: dict[str, Any], *names: str) -> Iterator[None]:
        """Lets ``toxic`` work on what the proxies ``names`` carry, either way, while inside."""
        both = ("downstream", "upstream")
        for name in names:
            for stream in both:
                self._ask("POST", f"/proxies/{name}/toxics", {**toxic, "name": stream, "stream": stream})
        try:
            yield
        finally:
            for name in names:
                for stream in both:
                    self._ask("DELETE", f"/proxies/{name}/toxics/{stream}")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()
