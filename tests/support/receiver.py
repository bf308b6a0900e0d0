"""A receiver of alerts on this machine."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class Receiver:
    """Keeps every JSON message that is posted to ``url``."""

    url: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)

    def of_runs(self) -> dict[str, dict[str, Any]]:
        """The messages by the id of their run."""
        return {message["run"]: message for message in self.messages}


@contextmanager
def receiving(address: str) -> Iterator[Receiver]:
    """A receiver that listens on ``address``, at a port that is free."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.messages.append(json.loads(body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is logged: the test shows what arrived."""

    with ThreadingHTTPServer((address, 0), Handler) as server:
        host, port = server.server_address[:2]
        receiver.url = f"http://{host!s}:{port}/alerts"
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield receiver
        finally:
            server.shutdown()


def gateway() -> str:
    """The address of this machine on Docker's default bridge, which no network of the stack contains.

    Only a container that has a route outside reaches it.
    """
    command = ["docker", "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}"]
    address = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    if address:
        return address
    # Docker fills in the gateway only when the daemon was given one; the bridge has it all the same.
    command[-1] = "{{(index .IPAM.Config 0).Subnet}}"
    subnet = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    return f"{subnet.rpartition('.')[0]}.1"
