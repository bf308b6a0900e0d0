"""`adloom init --check` on a real Kafka and MinIO: it says what is missing, and creates nothing."""

import os
import subprocess

import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.store.objects import Objects
from tests.stack.conftest import JOBS_USER
from tests.stack.kafka import Kafka
from tests.stack.minio import Minio
from tests.support.drivers import ADLOOM
from tests.support.servers import free_port

pytestmark = pytest.mark.stack

_LAKE = "s3a://stack/lakes/checked"
_TOPIC = "checked"


def _check(lake: str, *arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    # The jobs' keys, and no administrator's.
    environment = {**os.environ, "ADLOOM_S3__PROFILE": JOBS_USER, **settings}
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        environment.pop(name)
    command = [*ADLOOM, "init", "--check", "--lake", lake, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_a_missing_topic_is_named_and_not_created_and_one_that_is_there_passes(kafka: Kafka, minio: Minio) -> None:
    source = {"ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address, "ADLOOM_KAFKA__TOPICS": _TOPIC}
    refused = _check(_LAKE, **source)
    assert refused.returncode == 1
    assert f"Kafka at {kafka.address} has no topic {_TOPIC}" in refused.stderr
    assert _TOPIC not in kafka.topics()
    kafka.make_topic(_TOPIC, partitions=2)
    passed = _check(_LAKE, **source)
    assert passed.returncode == 0, passed.stderr
    assert f"topic {_TOPIC}: exists, with 2 partitions" in passed.stdout
    assert f"{_LAKE}: can be listed and written" in passed.stdout
    assert list(open_lake(_LAKE, S3Settings(endpoint=minio.endpoint)).files.walk("")) == [], "no file is left"


def test_a_kafka_that_is_not_there_is_named(minio: Minio) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    refused = _check(_LAKE, ADLOOM_KAFKA__BOOTSTRAP_SERVERS=nowhere, ADLOOM_S3__ENDPOINT=minio.endpoint)
    assert refused.returncode == 1
    assert f"Kafka at {nowhere} does not answer" in refused.stderr


@pytest.mark.parametrize(
    ("lake", "settings", "reason"),
    [
        pytest.param("s3a://nowhere/lake", {}, "the store rejects the keys (AccessDenied)", id="another-bucket"),
        pytest.param("s3a://stack/others", {}, "the store rejects the keys (AccessDenied)", id="another-prefix"),
        pytest.param(_LAKE, {"ADLOOM_S3__PROFILE": "nobody"}, "s3.profile 'nobody' is not in", id="no-keys"),
    ],
)
def test_a_store_that_does_not_let_the_jobs_write_is_named(
    minio: Minio, lake: str, settings: dict[str, str], reason: str
) -> None:
    refused = _check(lake, **{"ADLOOM_S3__ENDPOINT": minio.endpoint, **settings})
    assert refused.returncode == 1
    assert reason in refused.stderr


def test_a_missing_bucket_is_not_created(minio: Minio) -> None:
    administrator = {"ADLOOM_S3__PROFILE": "", "ADLOOM_S3__ENDPOINT": minio.endpoint}
    command = [*ADLOOM, "init", "--check", "--lake", "s3a://missing-bucket/lake"]
    for _ in range(2):
        refused = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, **administrator},
        )
        assert refused.returncode == 1
        assert "there is no bucket missing-bucket" in refused.stderr


def test_a_user_cannot_be_created_by_a_check(minio: Minio) -> None:
    refused = _check(_LAKE, "--user", "somebody", ADLOOM_S3__ENDPOINT=minio.endpoint)
    assert refused.returncode == 1
    assert "--check creates no user" in refused.stderr


def test_rules_of_others_that_delete_what_a_lake_needs_are_refused_and_found(minio: Minio) -> None:
    place = "s3a://ruled/lake"
    settings = S3Settings(endpoint=minio.endpoint)
    objects = Objects(place, settings)
    administrator = {**os.environ, "ADLOOM_S3__ENDPOINT": minio.endpoint, "ADLOOM_S3__PROFILE": ""}

    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*ADLOOM, *command, "--lake", place],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=administrator,
        )

    assert run("init").returncode == 0
    objects.write("_progress/reports/x.json", b"{}")
    rule = {"ID": "tidy", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 30}}
    objects.client.put_bucket_lifecycle_configuration(Bucket="ruled", LifecycleConfiguration={"Rules": [rule]})
    refused = run("init")
    assert refused.returncode == 1
    assert "rule tidy deletes files of the whole bucket after 30 days" in refused.stderr
    looked = run("doctor")
    assert looked.returncode == 1
    assert "rule tidy deletes files of the whole bucket" in " ".join(looked.stdout.split())
