"""Real servers for the tests, each a process of its own on loopback ports that were free."""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

_POM = Path(__file__).parents[2] / "infra" / "kafka" / "pom.xml"
_MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_START_S = 60
_STOP_S = 30


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def kafka_jars() -> Path:
    """The jars of a broker, from the cache outside the checkout or, the first time, from Maven."""
    cache = Path(os.environ.get("ADLOOM_CACHE", str(Path.home() / ".cache" / "adloom")))
    jars = cache / f"kafka-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:16]}"
    if not jars.is_dir():
        fetched = jars.with_suffix(".new")
        shutil.rmtree(fetched, ignore_errors=True)
        maven = ["mvn", "--batch-mode", "--quiet", "--file", str(_POM), f"{_MAVEN_PLUGIN}:copy-dependencies"]
        subprocess.run([*maven, f"-DoutputDirectory={fetched}", "-DincludeScope=runtime"], check=True, timeout=600)
        fetched.rename(jars)
    return jars


@dataclass
class Kafka:
    """A broker in KRaft mode. ``folder`` holds its configuration, log and data; a killed one starts again on it."""

    folder: Path
    port: int = field(default_factory=free_port)
    controller_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """``host:port`` for clients."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts the broker and returns when it answers."""
        settings = self.folder / "server.properties"
        if not settings.exists():
            self.folder.mkdir(parents=True)
            settings.write_text(self._properties())
            format_log = [*self._java(), "kafka.tools.StorageTool", "format", "-t", "adloomTestClusterAAAAA", "-c"]
            subprocess.run([*format_log, str(settings)], check=True, timeout=_START_S, capture_output=True)
        with (self.folder / "kafka.log").open("ab") as log:
            self.process = subprocess.Popen([*self._java(), "kafka.Kafka", str(settings)], stdout=log, stderr=log)
        wait_until(self._answers, _START_S, f"Kafka does not answer: see {self.folder}/kafka.log")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Sends the signal and waits for the process to end."""
        if self.process:
            self.process.send_signal(how)
            self.process.wait(_STOP_S)
            self.process = None

    def make_topic(self, name: str, partitions: int = 1) -> None:
        """Makes a topic."""
        admin = self._admin()
        for made in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result(timeout=_START_S)

    def topics(self) -> set[str]:
        """The names of its topics."""
        return set(self._admin().list_topics(timeout=_START_S).topics)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Deletes what lies before an offset, as retention does."""
        admin = self._admin()
        for deleted in admin.delete_records([TopicPartition(topic, partition, before)]).values():
            deleted.result(timeout=_START_S)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0, "error_cb": lambda _: None})

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"Kafka ended: see {self.folder}/kafka.log"
        try:
            return bool(self._admin().list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def _java(self) -> list[str]:
        environment = ["env", "-u", "JDK_JAVA_OPTIONS"]
        return [*environment, "java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_jars()}/*"]

    def _properties(self) -> str:
        listener = f"PLAINTEXT://127.0.0.1:{self.port}"
        controller = f"CONTROLLER://127.0.0.1:{self.controller_port}"
        return "\n".join(
            (
                "process.roles=broker,controller",
                "node.id=1",
                f"controller.quorum.voters=1@127.0.0.1:{self.controller_port}",
                f"listeners={listener},{controller}",
                f"advertised.listeners={listener}",
                "controller.listener.names=CONTROLLER",
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                f"log.dirs={self.folder}/data",
                "auto.create.topics.enable=false",
                "offsets.topic.replication.factor=1",
                "transaction.state.log.replication.factor=1",
                "transaction.state.log.min.isr=1",
            )
        )


def wait_until(happened: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Returns when ``happened``; fails with ``otherwise`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.2)
