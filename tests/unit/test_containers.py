"""What docker-compose.yml promises, as far as it can be read from it; tests/compose starts it for real."""

import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

_CHECKOUT = Path(__file__).parents[2]
_TEXT = (_CHECKOUT / "docker-compose.yml").read_text()
_SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(_TEXT)["services"]
_ONCE = {"init", "airflow-migrate"}
_SECRET = re.compile(r"\$\{(\w*(?:PASSWORD|SECRET|FERNET_KEY)\w*)([^}]*)\}")
_USUAL = ("minioadmin", "airflow:airflow", "admin:password", "postgres:postgres", "letmein", "secret123", "guest:guest")
_SHOWN = ("docker-compose.yml", "docker-compose.tls.yml", "Makefile", "infra", "dags", "docs", "README.md", ".ci")


def test_a_secret_that_is_not_set_is_refused() -> None:
    used = _SECRET.findall(_TEXT)
    assert len({name for name, _ in used}) == 11
    assert [name for name, rest in used if not rest.startswith(":?")] == []


def test_no_usual_password_stands_anywhere() -> None:
    found: list[tuple[str, str]] = []
    for place in map(_CHECKOUT.joinpath, _SHOWN):
        for file in [place] if place.is_file() else [inner for inner in place.rglob("*") if inner.is_file()]:
            text = file.read_bytes().decode(errors="ignore").lower()
            found.extend((file.name, usual) for usual in _USUAL if usual in text)
            found.extend(
                (file.name, word) for word in re.findall(r"passw(?:or)?d\s*[:=]\s*[\"']?(admin|password)", text)
            )
    assert found == []


def test_secrets_are_made_at_random_and_for_their_owner_alone(tmp_path: Path) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        script = str(_CHECKOUT / "infra" / "compose" / "make_env.sh")
        subprocess.run(["bash", script], env={"PATH": "/usr/bin:/bin", "COMPOSE_ENV_FILES": str(file)}, check=True)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    one, two = (dict(re.findall(r"^(\w+)=(.*)$", file.read_text(), re.MULTILINE)) for file in files)
    secrets = {name for name, _ in _SECRET.findall(_TEXT)}
    assert secrets <= one.keys()
    assert all(len(one[name]) >= 32 and one[name] != two[name] for name in secrets)
    assert len({one[name] for name in secrets}) == len(secrets)


@pytest.mark.parametrize("service", _SERVICES)
def test_a_service_is_limited_watched_pinned_and_published_on_loopback_alone(service: str) -> None:
    found = _SERVICES[service]
    assert {"memory", "cpus"} <= found["deploy"]["resources"]["limits"].keys()
    assert found["restart"]
    assert "no-new-privileges:true" in found["security_opt"]
    assert service in _ONCE | {"generator"} or "healthcheck" in found
    assert not found["image"].endswith(":latest")
    assert ":" in found["image"]
    for port in found.get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:\$\{\w+:-\d+\}:\d+", port), port
    assert found["networks"]


def test_only_published_ports_and_alerts_have_a_route_outside() -> None:
    networks = yaml.safe_load(_TEXT)["networks"]
    assert {name for name, network in networks.items() if not network.get("internal")} == {"front", "alerts"}
    published = {name for name, service in _SERVICES.items() if service.get("ports")}
    assert {name for name, service in _SERVICES.items() if "front" in service["networks"]} == published
    on_alerts = {name for name, service in _SERVICES.items() if "alerts" in service["networks"]}
    assert on_alerts == {"scheduler", "dag-processor"}, "the services that run the callbacks of failed tasks"
    assert [
        name
        for name, service in _SERVICES.items()
        if "airflow" in service["networks"] and "events" in service["networks"]
    ] == []


def test_every_variable_of_the_environment_file_is_read_by_compose(tmp_path: Path) -> None:
    file = tmp_path / "env"
    script = str(_CHECKOUT / "infra" / "compose" / "make_env.sh")
    subprocess.run(["bash", script], env={"PATH": "/usr/bin:/bin", "COMPOSE_ENV_FILES": str(file)}, check=True)
    named = set(re.findall(r"^(\w+)=", file.read_text(), re.MULTILINE))
    assert "ALERT_URL" in named
    assert named <= set(re.findall(r"\$\{(\w+)", _TEXT))


def test_the_images_begin_with_the_same_stages_so_that_they_are_built_once() -> None:
    texts = [(_CHECKOUT / "infra" / "docker" / f"{name}.Dockerfile").read_text() for name in ("spark", "airflow")]
    shared = [text[text.index("FROM ") : text.index("FROM packages AS built")] for text in texts]
    assert shared[0] == shared[1]
    assert all(text.rindex("USER adloom") > text.rindex("FROM ") for text in texts), "nothing runs as root"
