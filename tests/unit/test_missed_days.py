"""Which days a DAG missed, by the announcements and its runs; tests/dags has a real Airflow."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from spark_jobs.cli import app
from spark_jobs.days.airflow_api import AirflowApi
from spark_jobs.days.missed import Announcement, Consumer, Run, missed_days
from spark_jobs.errors import AdloomError, AirflowApiError, SettingsError

_AT = datetime(2026, 3, 5, 2, tzinfo=UTC)
_STEP = timedelta(microseconds=1)
_LATER = _AT + timedelta(hours=1)


def _asset(name: str) -> dict[str, Any]:
    return {"asset": {"name": name, "uri": name, "group": "asset", "id": 1}}


_A, _B, _C = map(_asset, "abc")


def _missed(
    expression: dict[str, Any], announced: dict[str, datetime], runs: list[Run] | None = None, now: datetime = _LATER
) -> list[tuple[str, datetime]]:
    """The assets that announced what was missed of 2026-03-01, and when."""
    consumer = Consumer("bill_day", is_paused=False, expression=expression)
    announcements = [Announcement("2026-03-01", asset, at) for asset, at in announced.items()]
    return [(day.announced.asset, day.announced.at) for day in missed_days(consumer, announcements, runs or [], now)]


@pytest.mark.parametrize(
    ("expression", "announced", "missed"),
    [
        pytest.param(_A, "a", "a", id="its own"),
        pytest.param(_A, "b", "", id="another's"),
        pytest.param({"any": [_A, _B]}, "b", "b", id="one of two"),
        pytest.param({"all": [_A, _B]}, "b", "", id="half of two"),
        pytest.param({"all": [_A, _B]}, "ab", "b", id="both, dated by the last"),
        pytest.param({"any": [{"all": [_A, _B]}, _C]}, "c", "c", id="a restatement of what was never complete"),
        pytest.param({"all": [{"any": [_A, _B]}, _C]}, "bc", "c", id="either of two, and a third"),
        pytest.param({"any": [{"alias": {"name": "x"}}]}, "a", "", id="an alias announces no days"),
    ],
)
def test_a_date_is_missed_once_the_schedule_is_satisfied(
    expression: dict[str, Any], announced: str, missed: str
) -> None:
    times = {asset: _AT + number * _STEP for number, asset in enumerate(announced)}
    assert _missed(expression, times) == [(asset, times[asset]) for asset in missed]


def test_a_run_counts_from_the_moment_of_the_announcement_on() -> None:
    def run(at: datetime, state: str = "success") -> Run:
        return Run("manual", "2026-03-01", state, at)

    assert _missed(_A, {"a": _AT}, [run(_AT - _STEP)]) == [("a", _AT)]
    assert _missed(_A, {"a": _AT}, [run(_AT)]) == []
    assert _missed(_A, {"a": _AT}, [run(_AT + _STEP), run(_AT - _STEP, "failed")]) == [], "the last run counts"
    assert _missed(_A, {"a": _AT}, [run(_AT - _STEP), run(_AT, "failed")]) == [("a", _AT)], "shown as failed"
    assert _missed(_A, {"a": _AT}, [Run("manual", "2026-03-02", "success", _AT)]) == [("a", _AT)], "another date's"


def test_an_announcement_is_missed_after_five_minutes() -> None:
    assert _missed(_A, {"a": _AT}, now=_AT + timedelta(minutes=5) - _STEP) == []
    assert _missed(_A, {"a": _AT}, now=_AT + timedelta(minutes=5)) == [("a", _AT)]


class _Handler(BaseHTTPRequestHandler):
    """Answers as Airflow lists events, of which it gives at most two a page; ``/moved`` is another server's."""

    logins: tuple[str | None, ...] = ()

    def do_GET(self) -> None:
        _Handler.logins += (self.headers["Authorization"],)
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/moved"))
            self.end_headers()
            return
        offset = int(parse_qs(urlsplit(self.path).query)["offset"][0])
        events = [
            {"name": "a", "partition_key": f"2026-03-0{day}", "timestamp": _AT.isoformat()} for day in range(1, 6)
        ]
        body = json.dumps({"asset_events": events[offset : offset + 2], "total_entries": len(events)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged: the test shows what arrived."""


@contextmanager
def _serving() -> Iterator[str]:
    _Handler.logins = ()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_every_page_of_a_list_is_read() -> None:
    with _serving() as url:
        found = AirflowApi(url, "secret").announcements(Consumer("bill_day", is_paused=False, expression=_A), _AT)
    assert [one.key for one in found] == [f"2026-03-0{day}" for day in range(1, 6)]
    assert _Handler.logins == ("Bearer secret",) * 3


def test_a_redirect_does_not_take_the_token_along() -> None:
    with (
        _serving() as url,
        pytest.raises(AirflowApiError, match=f"HTTP 302: a redirect to {url}, which would .* give the key"),
    ):
        AirflowApi(f"{url}/moved", "secret").announcements(Consumer("bill_day", is_paused=False, expression=_A), _AT)
    assert _Handler.logins == ("Bearer secret",), "the other server is not asked at all"


def test_an_airflow_that_does_not_answer_is_an_error_that_names_it() -> None:
    with pytest.raises(AirflowApiError, match=r"Airflow at http://127.0.0.1:1 does not answer: .*refused; check"):
        AirflowApi("http://127.0.0.1:1", "secret").consumers()


@pytest.mark.parametrize("address", ["localhost:8080", "file:///etc/passwd"])
def test_an_address_without_http_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="is no http or https URL"):
        AirflowApi(address, "secret")


def test_without_a_token_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADLOOM_AIRFLOW_TOKEN", raising=False)
    done = CliRunner().invoke(app, ["missed-days", "--airflow", "http://127.0.0.1:1"])
    assert isinstance(done.exception, AdloomError)
    assert "ADLOOM_AIRFLOW_TOKEN is not set" in str(done.exception)
