"""The REST interfaces of YARN and Kubernetes with canned answers, which follow the documentation of the clusters."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ad_dags.drivers.launchers.kubernetes import KubernetesCluster
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import write_record
from spark_jobs.queries.places import progress_key
from spark_jobs.spark.names import application_name
from spark_jobs.streams.reports import QueryReport

NOW = datetime.now(UTC)
ROOT = "s3a://ads/lake"
JOB = "attribute"
NAME = application_name(ROOT, JOB)
POD = f"/api/v1/namespaces/ads/pods/{NAME}"
APPS = "/ws/v1/cluster/apps"


@dataclass
class FakeRest:
    """A REST interface that records the requests."""

    answers: dict[str, Any] = field(default_factory=dict)
    """By method and path: an object, a text, the status of an error, or a status and an object."""
    requests: list[str] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    on_request: Callable[[str], object] = str
    """Called with each request before it is answered."""
    address: str = ""


@contextmanager
def serve(tls: ssl.SSLContext | None = None) -> Iterator[FakeRest]:
    """A REST interface on a free port of this machine."""
    fake = FakeRest()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            fake.requests.append(f"{self.command} {self.path} {body}".strip())
            fake.tokens.append(self.headers.get("Authorization"))
            fake.on_request(fake.requests[-1])
            answer = fake.answers.get(f"{self.command} {self.path.partition('?')[0]}", 404)
            status, answer = answer if isinstance(answer, tuple) else (200, answer)
            content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(answer if isinstance(answer, int) else status)
            self.send_header("Content-Type", "text/plain" if isinstance(answer, str) else "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_DELETE = _answer  # noqa: N815 names required by the base class

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    fake.address = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    worker.start()
    try:
        yield fake
    finally:
        server.shutdown()
        worker.join()
        server.server_close()


def app(state: str, final: str = "UNDEFINED", *, started: int = 1_000, number: int = 1) -> dict[str, Any]:
    """An application of YARN."""
    return {
        "id": f"application_1_000{number}",
        "state": state,
        "finalStatus": final,
        "startedTime": started,
        "finishedTime": 0,
        "diagnostics": "the reason",
    }


def pod(phase: str, **status: Any) -> dict[str, Any]:
    """A pod of Kubernetes."""
    status = {"phase": phase, "startTime": "2026-03-01T12:00:00Z", **status}
    return {"kind": "Pod", "metadata": {"name": NAME}, "spec": {"containers": [{"name": "driver"}]}, "status": status}


def kubernetes(rest: FakeRest, account: Path) -> KubernetesCluster:
    """Kubernetes behind ``rest``, with a token in the folder ``account``."""
    account.mkdir(exist_ok=True)
    (account / "token").write_text("canary-token\n")
    return KubernetesCluster(rest.address, ROOT, "ads", account)


def write_report(lake: Lake, query: str, process_id: int, at: datetime) -> None:
    """Leaves a report of ``query``, as its driver would."""
    report = QueryReport(job=JOB, query=query, version="1", process_id=process_id, started_at=at, updated_at=at)
    write_record(lake, progress_key(query), report)


@dataclass
class Clock:
    """A clock that stands still until it is set."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        """The time that it was set to."""
        return self.now
