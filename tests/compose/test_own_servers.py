"""The stack without its Kafka and MinIO, on servers outside of it: encrypted, with logins, equal to the oracle."""

import configparser
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from spark_jobs.config.choices import SaslMechanism, SecurityProtocol
from spark_jobs.config.sections import KafkaSettings, S3Settings
from spark_jobs.generator.publish import publish
from spark_jobs.ingest.input_files import read_records
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from tests.compose.conftest import check_engine, running
from tests.compose.stack import Stack
from tests.stack.certificates import kafka_pem
from tests.stack.flow import adloom, wait_for_rows
from tests.stack.kafka import Kafka
from tests.stack.minio import Minio
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.receiver import gateway

pytestmark = [pytest.mark.compose, pytest.mark.slow, pytest.mark.timeout(3600)]

_LAKE, _TOPIC, _LONGEST_S = "s3a://company/ads/lake", "events", 420


@dataclass
class Servers:
    """Kafka and MinIO on this machine, at an address that containers with a route outside reach."""

    kafka: Kafka
    minio: Minio
    authority: Path

    @property
    def login(self) -> KafkaSettings:
        """Kafka as a client reaches it."""
        return KafkaSettings.model_validate(
            {
                "bootstrap_servers": self.kafka.secure_address,
                "security_protocol": SecurityProtocol.SASL_SSL,
                "sasl_mechanism": SaslMechanism.SCRAM_SHA_512,
                "username": self.kafka.user,
                "password": self.kafka.password,
                "ca_file": self.authority,
            }
        )

    def keys(self, user: str) -> tuple[str, str]:
        """The key and the secret of a user that `adloom init` created."""
        profiles = configparser.RawConfigParser()
        profiles.read(self.minio.folder / "credentials")
        return profiles[user]["aws_access_key_id"], profiles[user]["aws_secret_access_key"]


@dataclass
class OwnServersStack(Stack):
    """The containers without Kafka and MinIO."""

    servers: Servers | None = None

    @property
    def _servers(self) -> Servers:
        assert self.servers
        return self.servers

    @property
    def kafka(self) -> KafkaSettings:
        return self._servers.login

    @property
    def store_keys(self) -> tuple[str, str]:
        return self._servers.minio.user, self._servers.minio.password

    def open_lake(self) -> Lake:
        return open_lake(_LAKE, S3Settings(endpoint=self._servers.minio.endpoint, ca_file=self._servers.authority))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    for name in ("ca", "minio-tls"):
        (folder / name).mkdir()
    return folder


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[Servers]:
    """Servers with certificates of their own authority, a bucket, and two users of the store; there is no topic yet."""
    check_engine()
    signer, host = trustme.CA(), gateway()
    certificate = signer.issue_cert(host)
    certificate.private_key_pem.write_to_path(folder / "minio-tls" / "private.key")
    certificate.cert_chain_pems[0].write_to_path(folder / "minio-tls" / "public.crt")
    (folder / "kafka.pem").write_bytes(kafka_pem(certificate))
    authority = folder / "ca" / "company.crt"
    signer.cert_pem.write_to_path(authority)
    # The users in the containers are others than here.
    authority.chmod(0o644)
    (folder / "ca").chmod(0o755)
    kafka = Kafka(folder / "kafka", host, certificate=folder / "kafka.pem")
    minio = Minio(folder / "minio", folder / "minio-tls", host)
    kafka.start()
    minio.start()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_SHARED_CREDENTIALS_FILE", str(minio.folder / "credentials"))
        for name, value in minio.settings(ADLOOM_S3__CA_FILE=str(authority)).items():
            environment.setenv(name, value)
        adloom("init", "--lake", _LAKE, "--user", "company-jobs")
        adloom("init", "--lake", _LAKE, "--user", "company-airflow", "--role", "airflow")
    yield Servers(kafka, minio, authority)
    kafka.stop()
    minio.stop()


@pytest.fixture(scope="module")
def own(folder: Path, servers: Servers) -> OwnServersStack:
    jobs, airflow = servers.keys("company-jobs"), servers.keys("company-airflow")
    settings = {
        "COMPOSE_PROFILES": "",
        "CA_FOLDER": str(folder / "ca"),
        "ADLOOM_JOBS": "deduplicate,attribute",
        "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": servers.kafka.secure_address,
        "ADLOOM_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
        "ADLOOM_KAFKA__SASL_MECHANISM": "SCRAM-SHA-512",
        "ADLOOM_KAFKA__USERNAME": servers.kafka.user,
        "ADLOOM_KAFKA__PASSWORD": f"'{servers.kafka.password}'",
        "ADLOOM_KAFKA__CA_FILE": "/etc/ca/company.crt",
        "ADLOOM_LAKE": _LAKE,
        "ADLOOM_S3__ENDPOINT": servers.minio.endpoint,
        "ADLOOM_S3__CA_FILE": "/etc/ca/company.crt",
        "S3_JOBS_ACCESS_KEY_ID": jobs[0],
        "S3_JOBS_SECRET_ACCESS_KEY": jobs[1],
        "S3_AIRFLOW_ACCESS_KEY_ID": airflow[0],
        "S3_AIRFLOW_SECRET_ACCESS_KEY": airflow[1],
    }
    return OwnServersStack(folder, "adloom-test-own", settings, servers=servers)


def test_the_same_dags_run_on_a_kafka_and_a_store_outside(
    own: OwnServersStack, servers: Servers, tmp_path: Path
) -> None:
    _assert_up_says_that_the_topic_is_missing(own)
    servers.kafka.make_topic(_TOPIC, partitions=3)
    with running(own) as stack:
        assert {"kafka", "minio"}.isdisjoint(stack.containers())
        source = generate_source(tmp_path / "source", events=2000, seed=61)
        records = list(read_records(source))
        assert publish(records, servers.login, rate=None, is_live=False).records == len(records)
        stack.wait_for("deploy_streams", stack.trigger("deploy_streams"), "success")
        wait_for_rows(stack.lake, len(records), _LONGEST_S)
        stack.drain()
        assert_lake_equals_oracle(stack.lake, source)
        stack.wait_for("validate_tables", stack.trigger("validate_tables"), "success")
        _assert_no_secret_is_seen(stack, servers)


def _assert_up_says_that_the_topic_is_missing(own: OwnServersStack) -> None:
    try:
        with pytest.raises(AssertionError) as failed:
            own.up()
        said = str(failed.value)
        assert "init has not prepared Kafka and the lake" in said
        assert f"Kafka at {own.kafka.bootstrap_servers} has no topic {_TOPIC}" in said
        assert own.kafka.password.get_secret_value() not in said
    finally:
        own.down()


def _assert_no_secret_is_seen(stack: Stack, servers: Servers) -> None:
    """No secret is in a log, and only who needs it has one in its environment."""
    secrets = {
        servers.kafka.password: {"init", "drivers"},
        servers.keys("company-jobs")[1]: {"init"},
        servers.keys("company-airflow")[1]: {"init"},
        servers.minio.password: set(),
    }
    logs = stack.compose("logs", "--no-color")
    assert [secret for secret in secrets if secret in logs] == []
    found = {
        service: json.dumps(json.loads(stack.docker("inspect", *ids))) for service, ids in stack.containers().items()
    }
    for secret, owners in secrets.items():
        assert {service for service, text in found.items() if secret in text} == owners
