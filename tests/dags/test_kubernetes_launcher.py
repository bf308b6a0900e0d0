"""Drivers on Kubernetes: the state of a pod, why it failed, and an account whose token changes."""

import ssl
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from ad_dags.drivers.launchers import DriverState, LauncherError
from ad_dags.drivers.launchers.kubernetes import KubernetesCluster
from spark_jobs.errors import EnvironmentMissingError
from tests.dags.fake_clusters import JOB, NAME, POD, ROOT, FakeRest, kubernetes, pod, serve


@pytest.fixture
def rest() -> Iterator[FakeRest]:
    with serve() as fake:
        yield fake


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Pending", DriverState.STARTING),
        ("Running", DriverState.RUNNING),
        ("Succeeded", DriverState.STOPPED),
        ("Failed", DriverState.FAILED),
        ("Unknown", DriverState.RUNNING),
    ],
)
def test_the_pod_of_its_name_is_the_driver(rest: FakeRest, tmp_path: Path, phase: str, expected: DriverState) -> None:
    rest.answers[f"GET {POD}"] = pod(phase)
    driver = kubernetes(rest, tmp_path / "account").inspect(JOB)
    assert (driver.state, driver.since) == (expected, datetime(2026, 3, 1, 12, tzinfo=UTC))
    assert rest.tokens == ["Bearer canary-token"]


def test_a_pod_says_why_it_failed_and_that_it_is_being_deleted(rest: FakeRest, tmp_path: Path) -> None:
    cluster = kubernetes(rest, tmp_path / "account")
    assert cluster.inspect(JOB).state is DriverState.STOPPED, "there is no pod"
    container = {"name": "driver", "image": "adloom", "imageID": "", "ready": False, "restartCount": 0}
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    rest.answers[f"GET {POD}"] = pod("Failed", containerStatuses=[{**container, "state": ended}])
    assert cluster.inspect(JOB).detail == f"pod {NAME} failed OOMKilled, exit code 137"
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    rest.answers[f"GET {POD}"] = pod("Pending", containerStatuses=[{**container, "state": waiting}])
    assert cluster.inspect(JOB).detail == f"pod {NAME} pending ImagePullBackOff, no such image"
    deleted = pod("Running")
    deleted["metadata"]["deletionTimestamp"] = "2026-03-01T12:30:00Z"
    rest.answers[f"GET {POD}"] = deleted
    assert cluster.inspect(JOB).state is DriverState.STOPPING


def test_a_pod_is_deleted_and_its_log_read(rest: FakeRest, tmp_path: Path) -> None:
    cluster = kubernetes(rest, tmp_path / "account")
    cluster.kill(JOB)  # there is none
    assert cluster.log(JOB, 4) == ""
    rest.answers[f"DELETE {POD}"] = pod("Running")
    rest.answers[f"GET {POD}/log"] = "one\ntwo\n"
    cluster.kill(JOB)
    assert rest.requests[-1] == f"DELETE {POD}?gracePeriodSeconds=0"
    assert cluster.log(JOB, 4) == "two\n"
    assert rest.requests[-1] == f"GET {POD}/log?tailLines=1000"


def test_a_token_that_was_renewed_is_used_from_the_next_request_on(rest: FakeRest, tmp_path: Path) -> None:
    cluster = kubernetes(rest, tmp_path / "account")
    rest.answers[f"GET {POD}"] = pod("Running")
    cluster.inspect(JOB)
    (tmp_path / "account" / "token").write_text("renewed-token")
    cluster.inspect(JOB)
    assert rest.tokens == ["Bearer canary-token", "Bearer renewed-token"]


def test_without_an_account_no_token_is_sent(rest: FakeRest, tmp_path: Path) -> None:
    """As through `kubectl proxy`."""
    KubernetesCluster(rest.address, ROOT, "ads", tmp_path / "none").inspect(JOB)
    assert rest.tokens == [None]


def test_the_certificate_authority_of_the_account_is_the_one_that_is_trusted(tmp_path: Path) -> None:
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    account = tmp_path / "account"
    with serve(tls) as rest:
        with pytest.raises(LauncherError, match="certificate verify failed"):
            kubernetes(rest, account).inspect(JOB)
        authority.cert_pem.write_to_path(str(account / "ca.crt"))
        assert kubernetes(rest, account).inspect(JOB).detail == "it has no pod"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(403, "answers read_namespaced_pod of ads/.* with 403", id="refused"),
        pytest.param("<html>", "does not answer read_namespaced_pod of ads/.* as expected", id="no-pod"),
    ],
)
def test_an_error_is_reported_without_the_token(rest: FakeRest, tmp_path: Path, answer: object, why: str) -> None:
    cluster = kubernetes(rest, tmp_path / "account")
    rest.answers[f"GET {POD}"] = answer
    with pytest.raises(LauncherError, match=rf"Kubernetes at {rest.address} {why}") as refused:
        cluster.inspect(JOB)
    assert "canary" not in f"{refused.value!r} {cluster!r}"


def test_an_error_of_kubernetes_is_given_in_its_own_words(rest: FakeRest, tmp_path: Path) -> None:
    cluster = kubernetes(rest, tmp_path / "account")
    rest.answers[f"GET {POD}"] = (403, {"kind": "Status", "message": "pods is forbidden"})
    with pytest.raises(LauncherError, match="with 403: pods is forbidden"):
        cluster.inspect(JOB)


def test_an_unreachable_cluster_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match=r"Kubernetes at http://127\.0\.0\.1:1 does not answer: .*refused"):
        KubernetesCluster("http://127.0.0.1:1", ROOT, "ads", tmp_path).inspect(JOB)


def test_a_missing_client_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    with pytest.raises(EnvironmentMissingError, match="uv sync --group kubernetes"):
        KubernetesCluster("http://127.0.0.1:1", ROOT, "ads", tmp_path)
