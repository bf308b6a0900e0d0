"""The stack of docker-compose.yml under a name, on ports and with secrets of its own."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.contracts.choices import SaslMechanism, SecurityProtocol
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.sections import KafkaSettings, S3Settings
from spark_jobs.runtime.lakes import open_lake
from tests.support.airflow_client import AirflowClient
from tests.support.lateness import PATIENT_TOML
from tests.support.servers import free_port

CHECKOUT = Path(__file__).parents[2]
LAKE = "s3a://ads/lake"
_UP_S, _LONGEST_S = 1500, 600
_PORTS = ("AIRFLOW_PORT", "KAFKA_PORT", "MINIO_PORT", "MINIO_CONSOLE_PORT", "PROMETHEUS_PORT")


@dataclass
class Stack(AirflowClient):
    """The containers; ``settings`` go before those that `make up` would choose."""

    folder: Path
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    """Variables of its file of secrets and ports."""
    authority: Path | None = None
    """That of its certificates; None: nothing is encrypted."""

    def up(self) -> str:
        """Builds and starts it as `make up` does, and gives what it told."""
        file = self.folder / "env"
        self.script("make_env.sh")
        # Parts are killed while events come: those that wait then are not to be late for `measure`.
        jobs = self.folder / "adloom.toml"
        jobs.write_text((CHECKOUT / "infra" / "compose" / "adloom.toml").read_text() + PATIENT_TOML)
        jobs.chmod(0o644)
        ports = {"ADLOOM_TOML": str(jobs)} | {name: str(free_port()) for name in _PORTS}
        with file.open("a") as more:
            more.writelines(f"{name}={value}\n" for name, value in {**ports, **self.settings}.items())
        lines = [line.partition("=") for line in file.read_text().splitlines() if "=" in line and line[0] != "#"]
        self.told = {name: value for name, _, value in lines}
        return self.script("up.sh", seconds=_UP_S)

    def script(self, name: str, *, seconds: float = _LONGEST_S) -> str:
        """Runs a script of ``infra/compose`` and gives what it told."""
        return self._run(["bash", str(CHECKOUT / "infra" / "compose" / name)], seconds=seconds)

    def down(self) -> None:
        """Ends it and removes what it has kept."""
        self.compose("--profile", "generate", "down", "--volumes", "--timeout", "60")

    def compose(self, *words: str, seconds: float = _LONGEST_S) -> str:
        """Runs ``docker compose WORDS`` and gives what it told."""
        return self._run(["docker", "compose", *words], seconds=seconds)

    def docker(self, *words: str) -> str:
        """Runs ``docker WORDS`` and gives what it told."""
        return self._run(["docker", *words])

    def adloom(self, *words: str) -> str:
        """Runs a command of adloom where the drivers run, in a process of its own."""
        return self.compose("exec", "-T", "-e", "ADLOOM_SPARK__MASTER=local[2]", "drivers", "adloom", *words)

    def drain(self) -> None:
        """Has Airflow drain the jobs, and closes all that they have left open."""
        self.wait_for("deploy_streams", self.trigger("deploy_streams", action="drain"), "success")
        self.adloom("drain")

    def containers(self) -> dict[str, list[str]]:
        """By service, the ids of its containers, those that have ended among them."""
        found: dict[str, list[str]] = {}
        for line in self.compose("ps", "--all", "--format", "json").splitlines():
            container = json.loads(line)
            found.setdefault(container["Service"], []).append(container["ID"])
        return found

    def left(self) -> list[str]:
        """Containers, networks and volumes that bear its name."""
        label = f"label=com.docker.compose.project={self.name}"
        kinds = (("ps", "--all"), ("network", "ls"), ("volume", "ls"))
        return [line for kind in kinds for line in self.docker(*kind, "--quiet", "--filter", label).split()]

    @property
    def address(self) -> str:
        """Of Airflow's pages."""
        return f"http://127.0.0.1:{self.told['AIRFLOW_PORT']}"

    def password(self, user: str) -> str:
        """What ``user`` logs in to Airflow with."""
        return self.told[f"AIRFLOW_{user.upper()}_PASSWORD"]

    @property
    def kafka(self) -> KafkaSettings:
        """Kafka, as a sender on this machine reaches it."""
        return KafkaSettings.model_validate(
            {
                "bootstrap_servers": f"127.0.0.1:{self.told['KAFKA_PORT']}",
                "security_protocol": SecurityProtocol.SASL_SSL if self.authority else SecurityProtocol.SASL_PLAINTEXT,
                "ca_file": self.authority,
                "sasl_mechanism": SaslMechanism.PLAIN,
                "username": "sender",
                "password": self.told["KAFKA_SENDER_PASSWORD"],
            }
        )

    def open_lake(self) -> Lake:
        """The lake, with the keys that this process's environment holds."""
        address = f"{'https' if self.authority else 'http'}://127.0.0.1:{self.told['MINIO_PORT']}"
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
