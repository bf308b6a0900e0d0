"""A real MinIO server on loopback."""

import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.stack.gobuilt import MINIO, built
from tests.support.servers import end, free_port, is_open, wait_until

_START_S = 60


@dataclass
class Minio:
    """MinIO with its data and, if ``certificates`` is a folder with public.crt and private.key, TLS.

    A killed one starts again on its folder. ``proxied_port`` is for a proxy before it; ``environment`` is MinIO's own.
    """

    folder: Path
    certificates: Path | None = None
    host: str = "127.0.0.1"
    port: int = field(default_factory=free_port)
    proxied_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    user: str = "root-of-the-tests"
    password: str = "canary-b1f0-password-of-root"  # noqa: S105
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def endpoint(self) -> str:
        """Its URL."""
        return f"{'https' if self.certificates else 'http'}://{self.host}:{self.port}"

    def start(self) -> None:
        """Starts the server and returns when it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(built(MINIO)), "server", str(self.folder / "data"), "--address", f"{self.host}:{self.port}"]
        command += ["--console-address", "127.0.0.1:0", "--quiet"]
        if self.certificates:
            command += ["--certs-dir", str(self.certificates)]
        environment = {"MINIO_ROOT_USER": self.user, "MINIO_ROOT_PASSWORD": self.password, "HOME": str(self.folder)}
        environment |= self.environment
        with (self.folder / "minio.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        wait_until(self._answers, _START_S, f"MinIO does not answer: see {self.folder}/minio.log")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Sends the signal and waits for the process to end."""
        end(self.process, how)
        self.process = None

    def settings(self, **others: str) -> dict[str, str]:
        """The environment of a job that uses it as root."""
        return {
            "ADLOOM_S3__ENDPOINT": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.user,
            "AWS_SECRET_ACCESS_KEY": self.password,
            **others,
        }

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"MinIO ended: see {self.folder}/minio.log"
        return is_open(self.port, self.host)
