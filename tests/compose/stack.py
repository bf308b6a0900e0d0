"""The stack of docker-compose.yml under its own name, with its own ports and secrets."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.config.choices import SaslMechanism, SecurityProtocol
from spark_jobs.config.sections import KafkaSettings, S3Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from tests.support.airflow_client import AirflowClient
from tests.support.lateness import PATIENT_TOML
from tests.support.servers import free_port

CHECKOUT = Path(__file__).parents[2]
LAKE = "s3a://ads/lake"
_UP_S, _LONGEST_S = 1500, 600
_PORTS = ("AIRFLOW_PORT", "KAFKA_PORT", "MINIO_PORT", "MINIO_CONSOLE_PORT", "PROMETHEUS_PORT")


@dataclass
class Stack(AirflowClient):
    """The containers; ``settings`` override the variables that `make up` would choose."""

    folder: Path
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    """What its .env file sets: secrets and ports."""
    authority: Path | None = None
    """The authority that signed its certificates; None: nothing is encrypted."""

    def up(self) -> str:
        """Builds and starts it as `make up` does, and returns what that printed."""
        self.write_env()
        return self.script("up.sh", seconds=_UP_S)

    def write_env(self) -> None:
        """Writes its .env file as `make up` does, with ports that are free and its own settings."""
        file = self.folder / "env"
        self.script("make_env.sh")
        # Containers are killed while events arrive: events that wait meanwhile must not be late for `measure`.
        jobs = self.folder / "adloom.toml"
        jobs.write_text((CHECKOUT / "infra" / "compose" / "adloom.toml").read_text() + PATIENT_TOML)
        jobs.chmod(0o644)
        ports = {"ADLOOM_TOML": str(jobs)} | {name: str(free_port()) for name in _PORTS}
        with file.open("a") as more:
            more.writelines(f"{name}={value}\n" for name, value in {**ports, **self.settings}.items())
        lines = [line.partition("=") for line in file.read_text().splitlines() if "=" in line and line[0] != "#"]
        self.variables = {name: value for name, _, value in lines}

    def script(self, name: str, *, seconds: float = _LONGEST_S) -> str:
        """Runs a script of ``infra/compose`` and returns what it printed."""
        return self._run(["bash", str(CHECKOUT / "infra" / "compose" / name)], seconds=seconds)

    def down(self) -> None:
        """Stops it and removes its data."""
        self.compose("--profile", "*", "down", "--volumes", "--timeout", "60")

    def compose(self, *words: str, seconds: float = _LONGEST_S) -> str:
        """Runs ``docker compose WORDS`` and returns what it printed."""
        return self._run(["docker", "compose", *words], seconds=seconds)

    def docker(self, *words: str) -> str:
        """Runs ``docker WORDS`` and returns what it printed."""
        return self._run(["docker", *words])

    def adloom(self, *words: str) -> str:
        """Runs an adloom command in the drivers' container, as a separate process."""
        return self.compose("exec", "-T", "-e", "ADLOOM_SPARK__MASTER=local[2]", "drivers", "adloom", *words)

    def drain(self) -> None:
        """Has Airflow stop the jobs, and drains the lake."""
        self.wait_for("deploy_streams", self.trigger("deploy_streams", action="stop"), "success")
        self.adloom("drain")

    def containers(self) -> dict[str, list[str]]:
        """The ids of each service's containers, including those that have exited."""
        found: dict[str, list[str]] = {}
        for line in self.compose("ps", "--all", "--format", "json").splitlines():
            container = json.loads(line)
            found.setdefault(container["Service"], []).append(container["ID"])
        return found

    def left(self) -> list[str]:
        """Containers, networks and volumes with its name."""
        label = f"label=com.docker.compose.project={self.name}"
        kinds = (("ps", "--all"), ("network", "ls"), ("volume", "ls"))
        return [line for kind in kinds for line in self.docker(*kind, "--quiet", "--filter", label).split()]

    @property
    def address(self) -> str:
        """The address of Airflow's web pages."""
        return f"http://127.0.0.1:{self.variables['AIRFLOW_PORT']}"

    def password(self, user: str) -> str:
        """The password of ``user`` in Airflow."""
        return self.variables[f"AIRFLOW_{user.upper()}_PASSWORD"]

    @property
    def kafka(self) -> KafkaSettings:
        """Kafka as a sender on this machine reaches it."""
        return KafkaSettings.model_validate(
            {
                "bootstrap_servers": f"127.0.0.1:{self.variables['KAFKA_PORT']}",
                "security_protocol": SecurityProtocol.SASL_SSL if self.authority else SecurityProtocol.SASL_PLAINTEXT,
                "ca_file": self.authority,
                "sasl_mechanism": SaslMechanism.PLAIN,
                "username": "sender",
                "password": self.variables["KAFKA_SENDER_PASSWORD"],
            }
        )

    @property
    def store_keys(self) -> tuple[str, str]:
        """An administrator's key of the store, and its secret."""
        return "adloom-root", self.variables["MINIO_ROOT_PASSWORD"]

    def open_lake(self) -> Lake:
        """The lake, with the keys in this process's environment."""
        address = f"{'https' if self.authority else 'http'}://127.0.0.1:{self.variables['MINIO_PORT']}"
        return open_lake(LAKE, S3Settings(endpoint=address, ca_file=self.authority))

    def _run(self, command: list[str], *, seconds: float = _LONGEST_S) -> str:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ADLOOM_", "AWS_"))},
            "COMPOSE_PROJECT_NAME": self.name,
            "COMPOSE_ENV_FILES": str(self.folder / "env"),
            "COMPOSE_ANSI": "never",
            **({"CERTIFICATES": str(self.authority.parents[1])} if self.authority else {}),
        }
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=seconds, cwd=CHECKOUT, env=environment
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout


def has_engine() -> bool:
    """Whether a Docker engine answers here."""
    if not shutil.which("docker"):
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=60).returncode == 0
