"""What Compose makes of docker-compose.yml with bundled servers and with your own; nothing is started."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.compose.stack import Stack

pytestmark = [pytest.mark.compose, pytest.mark.timeout(120)]

_REACH_KAFKA = {"init", "spark-worker", "drivers"}
_REACH_STORE = {"init", "spark-worker", "drivers", "exporter", "airflow-migrate", "api-server", "scheduler"} | {
    "dag-processor",
    "triggerer",
}
_KAFKA = {
    "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": "broker.example.com:9093",
    "ADLOOM_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
    "ADLOOM_KAFKA__SASL_MECHANISM": "SCRAM-SHA-512",
    "ADLOOM_KAFKA__USERNAME": "company",
    "ADLOOM_KAFKA__PASSWORD": "'secret-of-kafka'",
    "ADLOOM_KAFKA__OPTIONS": """'{"client.id": "adloom"}'""",
}
_STORE = {
    "ADLOOM_LAKE": "s3a://bucket/lake",
    "ADLOOM_S3__ENDPOINT": "https://store.example.com",
    "ADLOOM_S3__REGION": "eu-central-1",
    "S3_JOBS_ACCESS_KEY_ID": "key-of-jobs",
    "S3_JOBS_SECRET_ACCESS_KEY": "secret-of-jobs",
}


@pytest.mark.parametrize("own", [(), ("kafka",), ("minio",), ("kafka", "minio")], ids="-".join)
def test_what_is_your_own_is_left_out_and_reached(tmp_path: Path, own: tuple[str, ...]) -> None:
    profiles = ",".join(name for name in ("kafka", "minio") if name not in own)
    lines = (_KAFKA if "kafka" in own else {}) | (_STORE if "minio" in own else {})
    found = _rendered(tmp_path, {"COMPOSE_PROFILES": profiles, **lines})
    services = found["services"]
    assert {"kafka", "minio"} - services.keys() == set(own)
    outside = {name: _on(services, f"{name}-outside") for name in ("events", "store")}
    assert outside == {
        "events": _REACH_KAFKA if "kafka" in own else set(),
        "store": _REACH_STORE if "minio" in own else set(),
    }
    routed = {name for name, network in found["networks"].items() if not network.get("internal")}
    assert routed == {"front", "alerts"} | {f"{name}-outside" for name, users in outside.items() if users}
    drivers = services["drivers"]["environment"]
    expected = {**_BUNDLED, **{name: value.strip("'") for name, value in lines.items() if "KEY" not in name}}
    assert {name: drivers[name] for name in expected} == expected
    assert services["api-server"]["environment"]["ADLOOM_S3__ENDPOINT"] == expected["ADLOOM_S3__ENDPOINT"]
    init = services["init"]["environment"]
    assert (bool(init["OWN_KAFKA"]), bool(init["OWN_STORE"])) == ("kafka" in own, "minio" in own)


_BUNDLED = {
    "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": "kafka:9092",
    "ADLOOM_KAFKA__SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    "ADLOOM_KAFKA__SASL_MECHANISM": "PLAIN",
    "ADLOOM_KAFKA__USERNAME": "jobs",
    "ADLOOM_LAKE": "s3a://ads/lake",
    "ADLOOM_S3__ENDPOINT": "http://minio:9000",
}


def test_without_a_login_no_user_and_no_password_of_the_bundled_kafka_is_sent(tmp_path: Path) -> None:
    nobody = {
        "ADLOOM_KAFKA__USERNAME": "",
        "ADLOOM_KAFKA__PASSWORD": "",
        "ADLOOM_KAFKA__SECURITY_PROTOCOL": "PLAINTEXT",
    }
    drivers = _rendered(tmp_path, {"COMPOSE_PROFILES": "minio", **_KAFKA, **nobody})["services"]["drivers"][
        "environment"
    ]
    assert {name: drivers[name] for name in nobody} == nobody


def test_amazon_is_an_empty_endpoint(tmp_path: Path) -> None:
    found = _rendered(tmp_path, {"COMPOSE_PROFILES": "kafka", **_STORE, "ADLOOM_S3__ENDPOINT": ""})["services"]
    assert found["drivers"]["environment"]["ADLOOM_S3__ENDPOINT"] == ""
    assert _on(found, "store-outside") == _REACH_STORE


def test_the_secrets_of_your_own_are_known_to_those_who_need_them(tmp_path: Path) -> None:
    services = _rendered(tmp_path, {"COMPOSE_PROFILES": "", **_KAFKA, **_STORE})["services"]
    owners = {"secret-of-kafka": {"init", "drivers"}, "secret-of-jobs": {"init"}}
    for secret, expected in owners.items():
        assert {name for name, service in services.items() if secret in json.dumps(service)} == expected


def _rendered(folder: Path, lines: dict[str, str]) -> dict[str, Any]:
    own = Stack(folder, "adloom-test-rendered", lines)
    own.write_env()
    rendered: dict[str, Any] = json.loads(own.compose("config", "--format", "json"))
    return rendered


def _on(services: dict[str, Any], network: str) -> set[str]:
    return {name for name, service in services.items() if network in service["networks"]}
