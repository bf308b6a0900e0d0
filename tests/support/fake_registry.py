"""A schema registry of a few lines, which fails as it is told to; tests/stack has a real one."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]
NOT_FOUND: Answer = (404, {"error_code": 40403, "message": "Schema not found"})


class FakeRegistry:
    """``answers`` by path; ``failures`` are given first, one a request. ``asked`` are the paths, in order."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.failures: list[Answer | Callable[[BaseHTTPRequestHandler], None]] = []
        self.asked: list[str] = []
        self.logins: list[str | None] = []
        self.url = ""

    def add(self, number: int, schema: Any, **more: Any) -> None:
        """Makes it know a schema."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        self.answers[f"/schemas/ids/{number}"] = (200, {"schema": text, **more})

    @contextmanager
    def running(self) -> Iterator["FakeRegistry"]:
        """Listens on a port of loopback meanwhile."""
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                login = self.headers.get("Authorization")
                registry.logins.append(login and base64.b64decode(login.removeprefix("Basic ")).decode())
                answer = registry.failures.pop(0) if registry.failures else registry.answers.get(self.path, NOT_FOUND)
                if callable(answer):
                    answer(self)
                    return
                code, content = answer
                body = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.url = f"http://127.0.0.1:{server.server_port}"
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            yield self
            server.shutdown()
            thread.join()
