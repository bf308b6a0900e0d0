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
_SECRET = re.compile(r"\$\{(\w*(?:PASSWORD|SECRET|FERNET_KEY)\w*)([^${}]*)\}")
_NETWORK = re.compile(r"\$\{\w+:?\+-outside\}")
"""What the name of a network to your own servers has at its end."""
_USUAL = ("minioadmin", "airflow:airflow", "admin:password", "postgres:postgres", "letmein", "secret123", "guest:guest")
_SHOWN = ("docker-compose.yml", "docker-compose.tls.yml", "Makefile", "infra", "dags", "docs", "README.md", ".ci")


def test_a_secret_that_is_not_set_is_refused() -> None:
    used = _SECRET.findall(_TEXT)
    assert len({name for name, _ in used}) == 13
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
    outside = {"events-outside", "store-outside"}
    assert {name for name, network in networks.items() if not network.get("internal")} == {"front", "alerts"} | outside
    used = {name for service in _SERVICES.values() for name in service["networks"]}
    assert {_NETWORK.sub("", name) for name in used} == networks.keys() - outside, "by default none of them"
    assert {_NETWORK.sub("-outside", name) for name in used} >= outside
    published = {name for name, service in _SERVICES.items() if service.get("ports")}
    assert {name for name, service in _SERVICES.items() if "front" in service["networks"]} == published
    on_alerts = {name for name, service in _SERVICES.items() if "alerts" in service["networks"]}
    callbacks = {"scheduler", "dag-processor"}
    assert on_alerts == {"alertmanager"} | callbacks, "callbacks of failed tasks run in these"
    assert [
        name
        for name, service in _SERVICES.items()
        if "airflow" in service["networks"] and any(one.startswith("events") for one in service["networks"])
    ] == []


def test_every_variable_of_the_environment_file_is_read_by_compose(tmp_path: Path) -> None:
    file = tmp_path / "env"
    script = str(_CHECKOUT / "infra" / "compose" / "make_env.sh")
    subprocess.run(["bash", script], env={"PATH": "/usr/bin:/bin", "COMPOSE_ENV_FILES": str(file)}, check=True)
    named = set(re.findall(r"^(\w+)=", file.read_text(), re.MULTILINE))
    assert "ALERT_URL" in named
    assert named - {"COMPOSE_PROFILES"} <= set(re.findall(r"\$\{(\w+)", _TEXT)), "this one is Compose's own"


def test_the_web_processes_have_no_key_that_reads_records_or_writes_releases() -> None:
    keys = {
        name: {one.partition(":")[0] for one in service.get("volumes", []) if str(one).startswith("keys-")}
        for name, service in _SERVICES.items()
    }
    of_pages = {"airflow-migrate", "api-server", "dag-processor", "triggerer", "exporter"}
    assert {name for name, found in keys.items() if found == {"keys-pages"}} == of_pages
    assert {name: found for name, found in keys.items() if found and name not in of_pages} == {
        "init": {"keys-jobs", "keys-airflow", "keys-pages", "keys-tasks"},
        "scheduler": {"keys-tasks"},
        "drivers": {"keys-jobs"},
        "spark-worker": {"keys-jobs"},
    }
    environments = {name: service.get("environment", {}) for name, service in _SERVICES.items()}
    assert {environments[name]["ADLOOM_S3__PROFILE"] for name in of_pages} == {"adloom-pages"}
    signing = {name for name, found in environments.items() if "ADLOOM_RELEASE_KEY" in found}
    assert signing == {"scheduler"}, "its tasks build releases"
    checking = {name for name, found in environments.items() if "ADLOOM_RELEASE_PUBLIC_KEY_FILE" in found}
    assert checking == {"scheduler", "drivers"}, "these run them"


def test_what_has_no_login_of_its_own_is_not_published() -> None:
    published = {name for name, service in _SERVICES.items() if service.get("ports")}
    assert published == {"kafka", "minio", "api-server", "prometheus", "grafana"}
    assert "front" not in _SERVICES["alertmanager"]["networks"]
    assert "--web.cors.origin=none" in _SERVICES["prometheus"]["command"], "or every web page reads it"


def test_the_bundled_kafka_asks_for_rights() -> None:
    kafka = _SERVICES["kafka"]["environment"]
    assert kafka["KAFKA_AUTHORIZER_CLASS_NAME"].endswith(".StandardAuthorizer")
    assert "KAFKA_ALLOW_EVERYONE_IF_NO_ACL_FOUND" not in kafka
    assert kafka["KAFKA_SUPER_USERS"] == "User:admin;User:ANONYMOUS"
    # Whoever needs no login is everybody: only from inside of the container.
    listeners = dict(one.split("://") for one in kafka["KAFKA_LISTENERS"].split(","))
    protocols = dict(one.split(":") for one in kafka["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
    without = {listeners[name].partition(":")[0] for name, protocol in protocols.items() if protocol == "PLAINTEXT"}
    assert without == {"127.0.0.1"}
    users = {
        name: service["environment"]["ADLOOM_KAFKA__USERNAME"]
        for name, service in _SERVICES.items()
        if _logs_in(service)
    }
    assert users == {
        "init": "${ADLOOM_KAFKA__USERNAME-admin}",
        "drivers": "${ADLOOM_KAFKA__USERNAME-jobs}",
        "generator": "${ADLOOM_KAFKA__USERNAME-sender}",
    }


def _logs_in(service: dict[str, Any]) -> bool:
    return "ADLOOM_KAFKA__USERNAME" in service.get("environment", {})


def test_the_bundled_servers_can_be_left_out() -> None:
    assert {name: service["profiles"] for name, service in _SERVICES.items() if "profiles" in service} == {
        "kafka": ["kafka"],
        "minio": ["minio"],
        "generator": ["generate"],
        "alertmanager": ["alerts"],
        "grafana": ["grafana"],
    }
    for name, service in _SERVICES.items():
        for other, condition in service.get("depends_on", {}).items():
            assert condition.get("required", True) == (other not in ("kafka", "minio")), f"{name} on {other}"


def test_an_environment_file_from_before_gets_once_what_is_asked_for_since(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("SPARK_SECRET=kept\n")
    for _ in range(2):
        done = _run("make_env.sh", file)
        assert done.returncode == 0
    kept, profiles, *added = re.findall(r"^(\w+)=(.*)$", file.read_text(), re.MULTILINE)
    assert (kept, profiles) == (("SPARK_SECRET", "kept"), ("COMPOSE_PROFILES", "kafka,minio"))
    assert [name for name, _ in added] == ["GRAFANA_ADMIN_PASSWORD", "KAFKA_ADMIN_PASSWORD"]
    for _, password in added:
        assert len(password) >= 32
        assert password not in done.stdout + done.stderr
    complete = "COMPOSE_PROFILES=\nGRAFANA_ADMIN_PASSWORD=kept\nKAFKA_ADMIN_PASSWORD=kept\n"
    file.write_text(complete)
    _run("make_env.sh", file)
    assert file.read_text() == complete, "both profiles were left out on purpose"


_OWN_KAFKA = {
    "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": "broker1.example.com:9093,broker2.example.com:9093",
    "ADLOOM_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
    "ADLOOM_KAFKA__SASL_MECHANISM": "SCRAM-SHA-512",
    "ADLOOM_KAFKA__USERNAME": "adloom",
    "ADLOOM_KAFKA__PASSWORD": "'canary-of-kafka # $'",
}
_OWN_STORE = {
    "ADLOOM_LAKE": "s3a://bucket/lake  # of the company",
    "ADLOOM_S3__ENDPOINT": "https://minio.example.com:9000",
    "S3_JOBS_ACCESS_KEY_ID": "adloom",
    "S3_JOBS_SECRET_ACCESS_KEY": "canary-of-the-store",
}
_NONE, _KAFKA_ONLY, _MINIO_ONLY = ({"COMPOSE_PROFILES": names} for names in ("", "kafka", "minio"))
_NO_LOGIN = {
    "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": "kafka.example.com:9092",
    "ADLOOM_KAFKA__SECURITY_PROTOCOL": "PLAINTEXT",
    "ADLOOM_KAFKA__USERNAME": "",
    "ADLOOM_KAFKA__PASSWORD": "",
}


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param({"COMPOSE_PROFILES": "kafka, minio"}, id="bundled"),
        pytest.param({"COMPOSE_PROFILES": "*"}, id="all"),
        pytest.param(_NONE | _OWN_KAFKA | _OWN_STORE, id="own"),
        pytest.param(_KAFKA_ONLY | _OWN_STORE, id="own-store"),
        pytest.param(_MINIO_ONLY | _OWN_KAFKA, id="own-kafka"),
        pytest.param(_MINIO_ONLY | _NO_LOGIN, id="no-login"),
        pytest.param(_KAFKA_ONLY | _OWN_STORE | {"ADLOOM_S3__ENDPOINT": ""}, id="amazon"),
        pytest.param(
            _KAFKA_ONLY | _OWN_STORE | {"CA_FOLDER": "tests/unit", "ADLOOM_S3__CA_FILE": "/etc/ca/test_cli.py"}
        ),
    ],
)
def test_an_environment_file_that_says_all_passes(tmp_path: Path, lines: dict[str, str]) -> None:
    assert _check(tmp_path, lines) == ""


@pytest.mark.parametrize(
    ("lines", "mistakes"),
    [
        pytest.param(
            _NONE,
            [
                *("ADLOOM_KAFKA__BOOTSTRAP_SERVERS is not set", "ADLOOM_KAFKA__SECURITY_PROTOCOL is not set"),
                *("ADLOOM_KAFKA__USERNAME is not set", "ADLOOM_KAFKA__PASSWORD is not set"),
                *("ADLOOM_S3__ENDPOINT is not set", "ADLOOM_LAKE is not set"),
                *("S3_JOBS_ACCESS_KEY_ID is not set", "S3_JOBS_SECRET_ACCESS_KEY is not set"),
            ],
            id="nothing",
        ),
        pytest.param(
            _MINIO_ONLY | _OWN_KAFKA | {"ADLOOM_KAFKA__PASSWORD": "''", "ADLOOM_KAFKA__SASL_MECHANISM": ""},
            ["ADLOOM_KAFKA__PASSWORD is not set", "ADLOOM_KAFKA__SASL_MECHANISM is not set"],
            id="half-a-login",
        ),
        pytest.param(
            _KAFKA_ONLY | _OWN_STORE | {"S3_AIRFLOW_ACCESS_KEY_ID": "reader"},
            ["S3_AIRFLOW_SECRET_ACCESS_KEY is not set"],
            id="half-a-key",
        ),
        pytest.param(
            {"COMPOSE_PROFILES": "kafka,minio"} | _OWN_KAFKA | _OWN_STORE,
            ["ADLOOM_KAFKA__BOOTSTRAP_SERVERS is set, but", "ADLOOM_S3__ENDPOINT is set, but"],
            id="both-at-once",
        ),
        pytest.param(
            _NONE
            | _NO_LOGIN
            | _OWN_STORE
            | {"ADLOOM_KAFKA__BOOTSTRAP_SERVERS": "a:1,127.0.0.1:2", "ADLOOM_S3__ENDPOINT": "http://localhost:9000"},
            ["ADLOOM_KAFKA__BOOTSTRAP_SERVERS names this", "ADLOOM_S3__ENDPOINT names this"],
            id="loopback",
        ),
        pytest.param(
            _NONE
            | _OWN_KAFKA
            | _OWN_STORE
            | {"ADLOOM_KAFKA__CA_FILE": "/etc/ca/nowhere.crt", "ADLOOM_S3__CA_FILE": "company.crt"},
            ["ADLOOM_KAFKA__CA_FILE is /etc/ca/nowhere.crt, but", "ADLOOM_S3__CA_FILE is company.crt: put"],
            id="certificates",
        ),
        pytest.param(
            _MINIO_ONLY | _NO_LOGIN | {"COMPOSE_FILE": "docker-compose.yml:docker-compose.tls.yml"},
            ["COMPOSE_FILE has docker-compose.tls.yml"],
            id="tls-of-the-bundled",
        ),
    ],
)
def test_every_mistake_in_an_environment_file_is_named(
    tmp_path: Path, lines: dict[str, str], mistakes: list[str]
) -> None:
    said = _check(tmp_path, lines)
    assert len(re.findall(r"^  ", said, re.MULTILINE)) == len(mistakes), said
    assert [mistake for mistake in mistakes if f"\n  {mistake}" not in said] == []
    assert "canary" not in said


def test_a_variable_of_the_shell_that_compose_would_prefer_is_refused(tmp_path: Path) -> None:
    lines = _MINIO_ONLY | _NO_LOGIN
    name, value = "ADLOOM_KAFKA__BOOTSTRAP_SERVERS", _NO_LOGIN["ADLOOM_KAFKA__BOOTSTRAP_SERVERS"]
    assert f"{name} is set in this shell" in _check(tmp_path, lines, **{name: "localhost:9092"})
    assert _check(tmp_path, lines, **{name: value}) == ""
    said = _check(tmp_path, lines, ADLOOM_S3__ENDPOINT="http://canary:9000")
    assert "ADLOOM_S3__ENDPOINT is set in this shell" in said
    assert "canary" not in said


def test_the_docs_show_a_complete_environment_file_for_your_own_servers(tmp_path: Path) -> None:
    page = (_CHECKOUT / "docs" / "containers.md").read_text()
    (example,) = re.findall(r"```sh\n(COMPOSE_PROFILES=\n.*?)```", page, re.DOTALL)
    (tmp_path / "company.crt").touch()
    lines = dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE))
    assert len(lines) > 10
    assert _check(tmp_path, lines | {"CA_FOLDER": str(tmp_path)}) == ""


def _check(folder: Path, lines: dict[str, str], **shell: str) -> str:
    """What check_env.sh says of a file with ``lines``; empty if it passes."""
    file = folder / "env"
    file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    done = _run("check_env.sh", file, **shell)
    assert bool(done.stderr) == bool(done.returncode)
    return done.stderr


def _run(script: str, file: Path, **shell: str) -> "subprocess.CompletedProcess[str]":
    command = ["bash", str(_CHECKOUT / "infra" / "compose" / script)]
    environment = {"PATH": "/usr/bin:/bin", "COMPOSE_ENV_FILES": str(file), **shell}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_images_begin_with_the_same_stages_so_that_they_are_built_once() -> None:
    texts = [(_CHECKOUT / "infra" / "docker" / f"{name}.Dockerfile").read_text() for name in ("spark", "airflow")]
    shared = [text[text.index("FROM ") : text.index("FROM packages AS built")] for text in texts]
    assert shared[0] == shared[1]
    assert all(text.rindex("USER adloom") > text.rindex("FROM ") for text in texts), "nothing runs as root"
