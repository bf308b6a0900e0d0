"""Redirects: none carries a key to another server, and none makes an event or an alert vanish."""

import logging
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from ad_dags.alerts import alert_on_failure
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import LineageError
from spark_jobs.http import open_url
from spark_jobs.lineage.transport import transport

_CANARY = "canary-7710-key"
_CODES = (301, 302, 303, 307, 308)


class _Moved(ThreadingHTTPServer):
    """Redirects from ``/<code>`` to ``/there`` under another name of this machine, as to another server."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Redirecting)
        self.asked: list[tuple[str, str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def elsewhere(self) -> str:
        return f"http://localhost:{self.server_port}"


class _Redirecting(BaseHTTPRequestHandler):
    server: _Moved

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path.partition("?")[0], self.headers.get("Authorization")))
        if self.path.startswith("/there"):
            self.send_response(200)
        else:
            self.send_response(int(self.path[1:4]))
            self.send_header("Location", f"{self.server.elsewhere}/there?token={_CANARY}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_PUT = _answer  # noqa: N815 names required by the base class

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def server() -> Iterator[_Moved]:
    with _Moved() as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("code", _CODES)
def test_a_redirect_neither_swallows_an_event_of_lineage_nor_takes_its_key_along(server: _Moved, code: int) -> None:
    settings = {"TRANSPORT": "http", "URL": f"{server.url}/{code}", "API_KEY": _CANARY}
    send = transport(load_settings(None, {f"ADLOOM_LINEAGE__{name}": text for name, text in settings.items()}).lineage)
    with pytest.raises(LineageError, match=rf"with {code}: a redirect to {server.elsewhere}, .*it leads to$") as error:
        send({"name": "good"})
    assert server.asked == [("POST", f"/{code}", f"Bearer {_CANARY}")]
    assert _CANARY not in str(error.value)


@pytest.mark.parametrize("code", _CODES)
def test_a_redirect_swallows_no_alert(
    server: _Moved, code: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ADLOOM_ALERT_URL", f"{server.url}/{code}?key={_CANARY}")
    task = SimpleNamespace(dag_id="supervise_attribute", task_id="watch")
    with caplog.at_level(logging.ERROR):
        alert_on_failure({"task_instance": task, "run_id": "manual", "exception": ValueError("it ended")})
    assert server.asked == [("POST", f"/{code}", None)]
    assert f"the alert was not taken by ADLOOM_ALERT_URL: HTTP {code}, a redirect to {server.elsewhere}" in caplog.text
    assert _CANARY not in caplog.text


@pytest.mark.parametrize("code", _CODES)
def test_a_request_that_only_reads_and_carries_no_key_follows_a_redirect(server: _Moved, code: int) -> None:
    open_url(urllib.request.Request(f"{server.url}/{code}"), timeout_s=5).close()
    assert server.asked == [("GET", f"/{code}", None), ("GET", "/there", None)]


def test_every_request_goes_through_the_careful_opener() -> None:
    checkout = Path(__file__).parents[2]
    modules = [file for room in ("spark_jobs", "dags", "expectations") for file in (checkout / room).rglob("*.py")]
    own = [file.name for file in modules if "urlopen(" in (text := file.read_text()) or "build_opener(" in text]
    assert own == ["http.py"]
