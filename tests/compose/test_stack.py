"""The stack for real: events in, gold out, equal to the oracle; secrets stay apart; every container is killed."""

import json
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from playwright.sync_api import expect

from spark_jobs.config.kafka import librdkafka_options
from spark_jobs.generator.publish import publish
from spark_jobs.ingest.input_files import read_records
from spark_jobs.queries.registry import QUERIES_OF_JOB
from spark_jobs.streams.reports import read_reports
from tests.compose.stack import LAKE, Stack
from tests.stack.flow import wait_for_rows
from tests.support.browser import chromium, log_in
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.receiver import Receiver
from tests.support.servers import wait_until

pytestmark = [pytest.mark.compose, pytest.mark.timeout(3600)]

_LONGEST_S, _LONGEST_MS = 420, 60_000
_ONCE = {"init", "airflow-migrate"}
"""Services that do their work and exit."""
_SECRET = re.compile(r"PASSWORD|SECRET|KEY")
_OWNERS = {
    "MINIO_ROOT_PASSWORD": {"minio", "init"},
    "KAFKA_ADMIN_PASSWORD": {"kafka", "init"},
    "KAFKA_JOBS_PASSWORD": {"kafka", "drivers"},
    "KAFKA_SENDER_PASSWORD": {"kafka", "generator"},
    "SPARK_SECRET": {"spark-master", "spark-worker", "drivers"},
    "AIRFLOW_ADMIN_PASSWORD": {"api-server"},
    "AIRFLOW_VIEWER_PASSWORD": {"api-server"},
    "GRAFANA_ADMIN_PASSWORD": {"grafana"},
}
"""The services that may know each secret; the others belong to all of Airflow's services together."""
_AIRFLOW = {"airflow-migrate", "api-server", "scheduler", "dag-processor", "triggerer"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of events, which the tests send piece by piece."""
    return generate_source(tmp_path_factory.mktemp("events") / "source", events=4000, seed=97)


@pytest.fixture(scope="module")
def sender(stack: Stack, source: Path) -> "Sender":
    return Sender(stack, list(read_records(source)))


class Sender:
    """Sends the records, a few at a time."""

    def __init__(self, stack: Stack, records: list[bytes]) -> None:
        self._stack, self._records, self.sent = stack, records, 0

    def send(self, records: int | None = None) -> None:
        """Sends that many more of them, or all that are left."""
        share = self._records[self.sent :][:records]
        assert publish(share, self._stack.kafka, rate=None, is_live=False).records == len(share)
        self.sent += len(share)

    def wait_for_all(self) -> None:
        """Returns when bronze has everything that was sent."""
        wait_for_rows(self._stack.lake, self.sent, _LONGEST_S)


def test_the_jobs_are_deployed_from_airflow_and_carry_events(stack: Stack, sender: Sender) -> None:
    sender.send(2000)
    stack.wait_for("deploy_streams", stack.trigger("deploy_streams"), "success")
    sender.wait_for_all()
    reports = {report.query: report for report in read_reports(stack.lake, ("ingest", "sessionize"))}
    assert reports["ingest"].total_input_rows == sender.sent
    assert reports["ingest"].quarantined_rows, "some of the records are broken"


def test_a_failed_task_reaches_a_receiver_outside_the_networks_of_the_stack(stack: Stack, receiver: Receiver) -> None:
    beginning, end = "2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z"
    run = stack.trigger("replay_window", **{"from": beginning, "to": end})
    stack.wait_for("replay_window", run, "failed")
    wait_until(lambda: run in receiver.of_runs(), 60, f"no alert arrived but of {receiver.of_runs()}")
    message = receiver.of_runs()[run]
    assert (message["dag"], message["task"]) == ("replay_window", "replay_window")
    assert message["text"].startswith("replay_window: replay_window failed: ")
    post = f'import urllib.request; urllib.request.urlopen({receiver.url!r}, data=b\'{{"run": "probe"}}\', timeout=10)'
    stack.compose("exec", "-T", "dag-processor", "python", "-c", post)
    assert "probe" in receiver.of_runs(), "it sends the alerts of tasks whose process died"
    with pytest.raises(AssertionError, match=r"unreachable|timed out"):
        stack.compose("exec", "-T", "triggerer", "python", "-c", post)


def test_prometheus_scrapes_every_service_and_its_rules_pass_their_tests(stack: Stack) -> None:
    printed = stack.compose("exec", "-T", "prometheus", "promtool", "test", "rules", "/etc/prometheus/rules_test.yml")
    assert "SUCCESS" in printed
    wait_until(lambda: set(_targets(stack).values()) == {"up"}, 120, f"not every target is up: {_targets(stack)}")
    assert len(_targets(stack)) == 7, "three drivers, the exporter, Spark's master, a worker, MinIO"
    rows = _ask(stack, "sum by (query) (adloom_input_rows_total)")
    assert {row["metric"]["query"] for row in rows} == {query for some in QUERIES_OF_JOB.values() for query in some}


def test_no_container_has_the_secrets_of_another(stack: Stack) -> None:
    secrets = {name: value for name, value in stack.variables.items() if _SECRET.search(name)}
    assert len(secrets) == 13
    assert all(len(value) >= 32 for value in secrets.values())
    found = {
        service: json.dumps(json.loads(stack.docker("inspect", *ids))) for service, ids in stack.containers().items()
    }
    for name, value in secrets.items():
        mine = _OWNERS.get(name, _AIRFLOW | {"postgres", "drivers"})
        having = {service for service, text in found.items() if value in text}
        assert having <= mine, f"{name} is known to {having - mine}"
    logs = stack.compose("logs", "--no-color")
    keys = stack.compose("exec", "-T", "scheduler", "cat", "/keys/credentials")
    written = re.findall(r"aws_secret_access_key = (\S+)", keys)
    assert len(written) == 2, "one of the jobs and one of Airflow"
    assert [value for value in [*secrets.values(), *written] if value in logs] == []
    assert [value for value in written if value in json.dumps(found)] == []


_OPEN = (
    "import os; from spark_jobs.lake.open import open_lake; from spark_jobs.config.settings import *; "
    "files = open_lake(os.environ['ADLOOM_LAKE'], load_settings(None, os.environ).s3).files; "
)


@pytest.mark.parametrize(
    ("service", "allowed", "refused"),
    [
        pytest.param(
            "scheduler",
            "files.names('bronze/events/_delta_log'); files.write('_reports/probe.json', b'{}'); "
            "files.delete(['_reports/probe.json'])",
            "files.write('bronze/events/probe', b'')",
            id="tasks",
        ),
        *(
            pytest.param(service, "files.names('_progress')", refused, id=f"{service}-{name}")
            for service in ("api-server", "triggerer", "exporter")
            for name, refused in {
                "reads-bronze": "files.names('bronze/events/_delta_log')",
                "writes-a-release": "files.write('_releases/0.1.0+evil/release.json', b'{}')",
                "deploys": "files.write('_releases/deployed/attribute.json', b'{}')",
            }.items()
        ),
    ],
)
def test_a_service_of_airflow_may_do_what_it_is_for(stack: Stack, service: str, allowed: str, refused: str) -> None:
    command = ("exec", "-T", service, "python", "-c")
    assert "allowed" in stack.compose(*command, f"{_OPEN}{allowed}; print('allowed')")
    with pytest.raises(AssertionError, match=r"AccessDenied"):
        stack.compose(*command, f"{_OPEN}{refused}")


def test_drivers_run_only_what_airflows_tasks_have_signed(stack: Stack) -> None:
    listed = stack.compose("exec", "-T", "drivers", "adloom", "releases", "list")
    (version,) = set(re.findall(r"\d+\.\d+\.\d+\+\w+", listed))
    plant = (
        f"{_OPEN}import json; record = json.loads(files.read('_releases/{version}/release.json')); "
        "assert record.pop('signature'); record['version'] = '0.0.1+planted'; "
        f"wheel = files.read('_releases/{version}/' + record['wheel']); "
        "files.write('_releases/0.0.1+planted/' + record['wheel'], wheel); "
        "files.write('_releases/0.0.1+planted/release.json', json.dumps(record).encode())"
    )
    stack.compose("exec", "-T", "scheduler", "python", "-c", plant)
    with pytest.raises(AssertionError, match=r"is not signed, and will\s+not\s+be\s+run"):
        stack.compose("exec", "-T", "drivers", "adloom", "releases", "show", "0.0.1+planted")
    stack.compose("exec", "-T", "scheduler", "python", "-c", f"{_OPEN}files.delete_folder('_releases/0.0.1+planted')")


def test_the_sender_cannot_delete_the_topic(stack: Stack) -> None:
    admin = AdminClient(librdkafka_options(stack.kafka))
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        admin.delete_topics(["events"])["events"].result(timeout=30)


@pytest.mark.slow
def test_every_container_can_be_killed_and_nothing_is_lost(stack: Stack, sender: Sender) -> None:
    killed = [service for service in stack.containers() if service not in _ONCE]
    for service in killed:
        sender.send(100)
        stack.docker("kill", *stack.containers()[service])
        # The engine does not restart a container that was killed on purpose.
        stack.compose("up", "--detach", "--wait", "--no-build", "--no-recreate", service)
        _wait_until_healthy(stack)
        sender.wait_for_all()
    assert len(killed) == 12, killed


def test_drained_all_tables_equal_the_oracle(stack: Stack, sender: Sender, source: Path) -> None:
    sender.send()
    sender.wait_for_all()
    stack.drain()
    assert_lake_equals_oracle(stack.lake, source)


def test_the_report_is_seen_in_airflow(stack: Stack) -> None:
    stack.wait_for("validate_tables", stack.trigger("validate_tables"), "success")
    with chromium() as browser:
        person = log_in(browser, stack, "viewer")
        report = person.open_page("Data quality").frame_locator("#report")
        expect(report.get_by_text(LAKE).first).to_be_visible(timeout=_LONGEST_MS)
        expect(report.get_by_role("heading", name="attributions").first).to_be_visible()
        expect(person.open_page("Streams").get_by_role("heading", name="deduplicate").first).to_be_visible(
            timeout=_LONGEST_MS
        )


def _targets(stack: Stack) -> dict[str, str]:
    """The health of each target of Prometheus, by its address."""
    active = _prometheus(stack, "targets")["activeTargets"]
    return {target["scrapeUrl"]: target["health"] for target in active}


def _ask(stack: Stack, query: str) -> list[dict[str, dict[str, str]]]:
    rows: list[dict[str, dict[str, str]]] = _prometheus(stack, f"query?query={urllib.parse.quote(query)}")["result"]
    return rows


def _prometheus(stack: Stack, what: str) -> dict[str, Any]:
    address = f"http://127.0.0.1:{stack.variables['PROMETHEUS_PORT']}/api/v1/{what}"
    with urllib.request.urlopen(address, timeout=30) as answer:
        data: dict[str, Any] = json.load(answer)["data"]
        return data


def _wait_until_healthy(stack: Stack) -> None:
    def sick() -> Iterator[str]:
        for line in stack.compose("ps", "--all", "--format", "json").splitlines():
            container = json.loads(line)
            if container["Service"] not in _ONCE and container["Health"] != "healthy":
                yield container["Service"]

    wait_until(lambda: not list(sick()), _LONGEST_S, "not every container became healthy again")
