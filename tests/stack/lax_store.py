"""A proxy in front of an object store that takes conditions out of requests, as stores do that do not know them.

The headers are signed, so it signs again what it changes.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.stack.minio import Minio
from tests.support.servers import end, free_port, is_open, wait_until

_START_S = 30
REFUSE = "refuse"
"""In place of a header: answers 501 to every request with a condition."""
_CONDITIONS = ("if-match", "if-none-match")
_NOT_IMPLEMENTED = (
    b"<Error><Code>NotImplemented</Code>"
    b"<Message>A header you provided implies functionality that is not implemented</Message></Error>"
)
_OF_ONE_CONNECTION = ("connection", "transfer-encoding", "content-length", "expect")


@contextmanager
def lax_store(minio: Minio, *removed: str) -> Iterator[str]:
    """The URL of a store like ``minio`` that ignores the headers ``removed``, a process of its own on loopback."""
    port = free_port()
    command = [sys.executable, "-m", "tests.stack.lax_store", str(port), str(minio.port), minio.user, *removed]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        assert process.stdin is not None
        process.stdin.write(minio.password.encode() + b"\n")
        process.stdin.close()
        wait_until(lambda: is_open(port), _START_S, "the proxy does not answer")
        yield f"http://127.0.0.1:{port}"
    finally:
        end(process)


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: ClassVar[int]
    keys: ClassVar[Credentials]
    removed: ClassVar[tuple[str, ...]]

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_CONNECTION}
        conditions = [name for name in headers if name.lower() in _CONDITIONS]
        if conditions and REFUSE in self.removed:
            self._answer(501, {"Content-Type": "application/xml"}, _NOT_IMPLEMENTED)
            return
        if removed := [name for name in conditions if name.lower() in self.removed]:
            for name in (*removed, "Authorization", "X-Amz-Date"):
                headers.pop(name, None)
            request = AWSRequest(self.command, f"http://{headers['Host']}{self.path}", headers=headers, data=body)
            S3SigV4Auth(self.keys, "s3", "us-east-1").add_auth(request)
            headers = dict(request.headers.items())
        connection = HTTPConnection("127.0.0.1", self.upstream, timeout=60)
        connection.request(self.command, self.path, body, headers)
        with connection.getresponse() as answer:
            self._answer(answer.status, dict(answer.getheaders()), answer.read())
        connection.close()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in _OF_ONE_CONNECTION:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


if __name__ == "__main__":
    _Proxy.upstream = int(sys.argv[2])
    _Proxy.keys = Credentials(sys.argv[3], sys.stdin.readline().strip())
    _Proxy.removed = tuple(sys.argv[4:])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Proxy).serve_forever()
