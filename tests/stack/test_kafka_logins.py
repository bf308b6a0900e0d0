"""Brokers that demand a client certificate or OAuth: ``kafka.options`` hold for Spark and for the check before it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.ingest.input_files import read_records
from spark_jobs.lake.open import open_lake
from tests.stack.certificates import kafka_pem
from tests.stack.flow import send
from tests.stack.jobs import Job, start_job
from tests.stack.kafka import Kafka
from tests.support.drivers import ADLOOM
from tests.support.equality import generate_source
from tests.support.lakes import read_table

pytestmark = pytest.mark.stack

_CANARY = "canary-90d2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logins")


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[Kafka]:
    """A broker that demands a certificate on one port and OAuth on another; ``client.pem`` is such a certificate."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    (folder / "broker.pem").write_bytes(kafka_pem(authority.issue_cert("127.0.0.1")))
    (folder / "client.pem").write_bytes(kafka_pem(authority.issue_cert("adloom.example")))
    (folder / "stranger.pem").write_bytes(kafka_pem(trustme.CA().issue_cert("adloom.example")))
    kafka = Kafka(folder / "kafka", certificate=folder / "broker.pem", authority=folder / "authority.pem")
    kafka.start()
    yield kafka
    kafka.stop()


def _mutual_tls(kafka: Kafka, folder: Path, certificate: str | None) -> dict[str, str]:
    options = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / str(certificate))}
    return {
        "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{kafka.mutual_port}",
        "ADLOOM_KAFKA__SECURITY_PROTOCOL": "SSL",
        "ADLOOM_KAFKA__CA_FILE": str(folder / "authority.pem"),
        "ADLOOM_KAFKA__OPTIONS": json.dumps(options if certificate else {}),
    }


def _oauth(kafka: Kafka, folder: Path, module: str, **claims: str) -> dict[str, str]:
    given = " ".join(f'{name}="{value}"' for name, value in claims.items())
    options = {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f"{module} required {given};"}
    return {
        "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{kafka.secure_port}",
        "ADLOOM_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
        "ADLOOM_KAFKA__CA_FILE": str(folder / "authority.pem"),
        "ADLOOM_KAFKA__OPTIONS": json.dumps(options),
    }


_OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def _adloom(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = ["env", *(f"{name}={value}" for name, value in environment.items()), *ADLOOM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def _deduplicate(folder: Path, lake: Path, environment: dict[str, str]) -> Job:
    once = {"ADLOOM_JOB__TRIGGER": "available_now", "ADLOOM_KAFKA__TOPICS": "logins"}
    log = folder / f"{lake.name}.log"
    return start_job("deduplicate", open_lake(str(lake)), log, environment={**once, **environment})


def test_topics_are_made_filled_and_read_with_a_client_certificate(broker: Kafka, folder: Path, tmp_path: Path) -> None:
    environment = {**_mutual_tls(broker, folder, "client.pem"), "ADLOOM_KAFKA__TOPICS": "mutual"}
    for line in ("topic mutual: created, with 2 partitions", "topic mutual: exists, with 2 partitions"):
        made = _adloom(environment, "init", "--lake", str(tmp_path / "lake"), "--partitions", "2")
        assert made.returncode == 0, made.stderr
        assert line in made.stdout
    brokers = environment["ADLOOM_KAFKA__BOOTSTRAP_SERVERS"]
    sent = _adloom(environment, "generate", "--kafka", brokers, "--events", "500", "--keep-times")
    assert sent.returncode == 0, sent.stderr
    job = _deduplicate(folder, tmp_path / "lake", environment)
    assert job.wait() == 0, job.output
    assert len(read_table(job.lake, BRONZE_EVENTS)) > 500


def test_a_job_reads_with_oauth(broker: Kafka, folder: Path, tmp_path: Path) -> None:
    broker.make_topic("logins")
    records = list(read_records(generate_source(tmp_path / "source", events=300, seed=5)))
    send(broker, "logins", records)
    environment = _oauth(broker, folder, _OAUTH_MODULE, unsecuredLoginStringClaim_sub="adloom")
    job = _deduplicate(folder, tmp_path / "oauth", environment)
    assert job.wait() == 0, job.output
    assert len(read_table(job.lake, BRONZE_EVENTS)) == len(records)


def test_who_is_refused_hears_it_in_one_line_without_a_secret(broker: Kafka, folder: Path, tmp_path: Path) -> None:
    missing = "software.amazon.msk.auth.iam.IAMLoginModule"
    cases = {
        "no-certificate": (_mutual_tls(broker, folder, None), "does not answer as SSL"),
        "a-strangers": (_mutual_tls(broker, folder, "stranger.pem"), "does not answer as SSL"),
        "no-file": (_mutual_tls(broker, folder, "nowhere.pem"), "nowhere.pem"),
        "no-module": (_oauth(broker, folder, missing, awsProfileName=_CANARY), missing),
    }
    for name, (environment, reason) in cases.items():
        refused = _deduplicate(folder, tmp_path / name, environment)
        assert refused.wait() == 1, refused.output
        last_line = refused.output.strip().splitlines()[-1]
        assert last_line.startswith("error: Kafka at "), refused.output
        assert reason in last_line
        assert "Traceback" not in refused.output
        assert _CANARY not in refused.output


def test_generate_says_which_login_it_does_not_have(broker: Kafka, folder: Path) -> None:
    environment = _oauth(broker, folder, _OAUTH_MODULE, unsecuredLoginStringClaim_sub=_CANARY)
    brokers = environment["ADLOOM_KAFKA__BOOTSTRAP_SERVERS"]
    refused = _adloom(environment, "generate", "--kafka", brokers, "--events", "10")
    assert refused.returncode == 1
    assert "kafka.options: sasl.mechanism is an option of Kafka's Java client" in " ".join(refused.stderr.split())
    assert _CANARY not in refused.stderr
