"""An alert reaches somebody: a real Prometheus finds it by the rules, a real Alertmanager sends it, and its end."""

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from tests.stack.gobuilt import ALERTMANAGER, built
from tests.stack.watching import DOCS, prometheus_on
from tests.support.drivers import ADLOOM
from tests.support.receiver import Receiver, receiving
from tests.support.servers import free_port, running, wait_until

pytestmark = pytest.mark.stack

_INFRA = Path(__file__).parents[2] / "infra"
_START = _INFRA / "alertmanager" / "start.sh"
_SOON_S = 60
_CANARY = "canary-7ac1"


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[Lake, Receiver, int]]:
    """A lake that is watched, who receives its alerts, and the port of Prometheus."""
    lake, ports = open_lake(str(tmp_path / "lake")), [free_port() for _ in range(3)]
    exporter, prometheus, alertmanager = ports
    _validated(lake, critical=0)
    with receiving("127.0.0.1") as receiver, ExitStack() as servers:
        listen = f"127.0.0.1:{exporter}"
        command = [*ADLOOM, "exporter", "--lake", str(lake.path), "--listen", listen]
        servers.enter_context(running(command, exporter, tmp_path / "exporter.log"))
        soon = {"ALERTS_GROUP_WAIT": "1s", "ALERTS_GROUP_INTERVAL": "1s"}
        command = [str(_START), f"--storage.path={tmp_path / 'am'}", f"--web.listen-address=127.0.0.1:{alertmanager}"]
        sent = _environment(tmp_path, ALERTS_WEBHOOK_URL=receiver.url, **soon)
        servers.enter_context(running(command, alertmanager, tmp_path / "alertmanager.log", **sent))
        manager = f"127.0.0.1:{alertmanager}"
        servers.enter_context(prometheus_on(prometheus, tmp_path, scraped=[listen], alertmanager=manager))
        yield lake, receiver, prometheus


def _environment(tmp_path: Path, **variables: str) -> dict[str, str]:
    return {"ALERTMANAGER": str(built(ALERTMANAGER)), "ALERTS_FOLDER": str(tmp_path / "configuration"), **variables}


def _validated(lake: Lake, *, critical: int) -> None:
    found = {"at": "2026-03-01T12:00:00+00:00", "critical": critical, "warnings": 0}
    lake.files.write("_reports/history.json", json.dumps({"validations": [found]}).encode())


def test_an_alert_arrives_with_what_to_do_and_so_does_its_end(watched: tuple[Lake, Receiver, int]) -> None:
    lake, receiver, prometheus = watched

    def told(status: str) -> list[Mapping[str, Mapping[str, str]]]:
        alerts = [alert for message in receiver.messages for alert in message["alerts"]]
        return [one for one in alerts if one["labels"]["alertname"] == "ValidationFailed" and one["status"] == status]

    rules = json.load(urllib.request.urlopen(f"http://127.0.0.1:{prometheus}/api/v1/rules", timeout=10))
    assert len(rules["data"]["groups"][0]["rules"]) > 10
    _validated(lake, critical=2)
    wait_until(lambda: bool(told("firing")), _SOON_S, f"the alert never came: {receiver.messages}")
    alert = told("firing")[0]
    assert alert["labels"]["severity"] == "critical"
    assert alert["annotations"]["summary"].startswith("2 critical expectations fail")
    assert alert["annotations"]["runbook"] == f"{DOCS}/runbook.md#validationfailed"
    assert "docs" not in alert["labels"]
    assert "Data quality" in alert["annotations"]["do"]
    assert not told("resolved")
    _validated(lake, critical=0)
    wait_until(lambda: bool(told("resolved")), _SOON_S, f"its end was never told: {receiver.messages}")


def _configured(tmp_path: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """What start.sh does, with a program in the place of Alertmanager that only checks the configuration."""
    check = tmp_path / "check"
    check.write_text(f'#!/bin/sh\nexec {built(ALERTMANAGER).with_name("amtool")} check-config "${{1#*=}}"\n')
    check.chmod(0o755)
    places = {"ALERTS_FOLDER": str(tmp_path / "configuration"), "ALERTMANAGER": str(check)}
    environment = {**os.environ, **places, **variables}
    return subprocess.run([str(_START)], env=environment, capture_output=True, text=True, timeout=30, check=False)


def test_each_receiver_gives_a_configuration_that_alertmanager_takes(tmp_path: Path) -> None:
    mail = {
        "ALERTS_EMAIL_TO": "a@example.com, b@example.com",
        "ALERTS_EMAIL_FROM": "adloom@example.com",
        "ALERTS_SMTP_HOST": "mail.example.com:587",
        "ALERTS_SMTP_USER": "adloom",
        "ALERTS_SMTP_PASSWORD": f"{_CANARY}'s \" \\ password",
    }
    slack = {"ALERTS_SLACK_URL": f"https://hooks.example.com/{_CANARY}", "ALERTS_SLACK_CHANNEL": "#on-call"}
    done = _configured(tmp_path, ALERTS_WEBHOOK_URL=f"https://example.com/{_CANARY}", **slack, **mail)
    assert done.returncode == 0, done.stderr
    assert _CANARY not in done.stdout + done.stderr
    file = tmp_path / "configuration" / "alertmanager.yml"
    assert file.stat().st_mode & 0o077 == 0
    (receiver,) = yaml.safe_load(file.read_text())["receivers"]
    assert receiver["email_configs"][0]["auth_password"] == mail["ALERTS_SMTP_PASSWORD"]
    assert receiver["slack_configs"][0]["channel"] == "#on-call"
    assert {"webhook_configs", "slack_configs", "email_configs"} < receiver.keys()
    for kind in ("webhook_configs", "slack_configs"):
        assert receiver[kind][0]["http_config"] == {"follow_redirects": False}, "a redirect swallows alerts"


def test_without_an_address_it_says_that_it_is_silent_and_half_an_address_is_refused(tmp_path: Path) -> None:
    done = _configured(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no address is set" in done.stdout
    assert "sent to nobody" in done.stdout
    done = _configured(tmp_path, ALERTS_EMAIL_TO="a@example.com")
    assert done.returncode == 1
    assert "ALERTS_SMTP_HOST is not: give it, as in mail.example.com:587" in done.stderr
