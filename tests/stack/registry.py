"""A real schema registry on loopback: Apicurio, over its interface that is compatible with Confluent's."""

import json
import os
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.stack.jars import unpacked
from tests.support.servers import end, free_port, wait_until

_START_S = 120
_PATH = "/apis/ccompat/v7"


@dataclass
class Registry:
    """A schema registry. ``folder`` holds its log and data; a killed one starts again on it.

    Attributes:
        certificate: a PEM file with the certificate for ``secure_port``; ``key`` is that with its key.
    """

    folder: Path
    port: int = field(default_factory=free_port)
    secure_port: int = field(default_factory=free_port)
    certificate: Path | None = None
    key: Path | None = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}{_PATH}"

    @property
    def secure_url(self) -> str:
        """Its address with TLS."""
        return f"https://127.0.0.1:{self.secure_port}{_PATH}"

    def start(self, *, wait: bool = True) -> None:
        """Starts the server and, if it is to be waited for, returns when it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        server = unpacked("registry")
        runner = next(server.glob("*-runner.jar"))
        command = [
            "env",
            "-u",
            "JDK_JAVA_OPTIONS",
            "java",
            "-Xmx400m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            f"{runner}:{server}/lib/*",
        ]
        command += ["io.quarkus.runner.GeneratedMain"]
        environment = {
            **os.environ,
            # What it has answered is on disk: a kill takes nothing back.
            "REGISTRY_DATASOURCE_URL": f"jdbc:h2:file:{self.folder}/data;WRITE_DELAY=0",
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(self.port),
            "QUARKUS_HTTP_SSL_PORT": str(self.secure_port),
        }
        if self.certificate and self.key:
            environment["QUARKUS_HTTP_SSL_CERTIFICATE_FILES"] = str(self.certificate)
            environment["QUARKUS_HTTP_SSL_CERTIFICATE_KEY_FILES"] = str(self.key)
            environment["QUARKUS_HTTP_INSECURE_REQUESTS"] = "enabled"
        with (self.folder / "registry.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=self.folder)
        if wait:
            wait_until(self._answers, _START_S, f"the registry does not answer: see {self.folder}/registry.log")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Sends the signal and waits for the process to end."""
        end(self.process, how)
        self.process = None

    def register(self, subject: str, schema: Any, kind: str = "AVRO", *references: tuple[str, str, int]) -> int:
        """Adds a version to a subject.

        Args:
            subject: its name.
            schema: text, or JSON.
            kind: ``AVRO`` or ``PROTOBUF``.
            references: name, subject and version of each.

        Returns:
            The schema's id.
        """
        text = schema if isinstance(schema, str) else json.dumps(schema)
        content: dict[str, Any] = {"schema": text, "schemaType": kind}
        content["references"] = [
            {"name": name, "subject": other, "version": version} for name, other, version in references
        ]
        request = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions",
            data=json.dumps(content).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            number: int = json.load(answer)["id"]
            return number

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the registry ended: see {self.folder}/registry.log"
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5):
                return True
        except (OSError, urllib.error.URLError, ssl.SSLError):
            return False
