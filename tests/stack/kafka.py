"""A real Kafka broker on loopback."""

import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.stack.jars import jars_of
from tests.support.servers import end, free_port, wait_until

_START_S = 60
_AUTHORIZER = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",
)


@dataclass
class Kafka:
    """A broker in KRaft mode. ``folder`` holds its configuration, log and data; a killed one starts again on it.

    Attributes:
        proxied_port: where a proxy listens that leads to ``behind_proxy_port``; who comes by it is sent there again.
        certificate: a PEM file with the key and the certificate for ``secure_port``, where a user must log in.
        authority: a PEM file with that of the certificates that clients must show at ``mutual_port``.
        others: users besides ``user``, and their passwords.
        has_authorizer: whether users may do only what they were given the right to, but for those without a login.
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int = field(default_factory=free_port)
    controller_port: int = field(default_factory=free_port)
    proxied_port: int = field(default_factory=free_port)
    behind_proxy_port: int = field(default_factory=free_port)
    secure_port: int = field(default_factory=free_port)
    mutual_port: int = field(default_factory=free_port)
    certificate: Path | None = None
    authority: Path | None = None
    user: str = "adloom"
    password: str = "canary-7c31-password-of-kafka"  # noqa: S105
    others: Mapping[str, str] = field(default_factory=dict)
    has_authorizer: bool = False
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """``host:port`` for clients."""
        return f"{self.host}:{self.port}"

    @property
    def secure_address(self) -> str:
        """``host:port`` for clients that log in, encrypted."""
        return f"{self.host}:{self.secure_port}"

    def start(self) -> None:
        """Starts the broker and returns when it answers."""
        settings = self.folder / "server.properties"
        if not settings.exists():
            self.folder.mkdir(parents=True)
            settings.write_text(self._properties())
            format_log = [*self._java(), "kafka.tools.StorageTool", "format", "-t", "adloomTestClusterAAAAA", "-c"]
            format_log.append(str(settings))
            for user, password in {self.user: self.password, **self.others}.items():
                format_log += ["--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]"]
            subprocess.run(format_log, check=True, timeout=_START_S, capture_output=True)
        with (self.folder / "kafka.log").open("ab") as log:
            self.process = subprocess.Popen([*self._java(), "kafka.Kafka", str(settings)], stdout=log, stderr=log)
        wait_until(self._answers, _START_S, f"Kafka does not answer: see {self.folder}/kafka.log")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Sends the signal and waits for the process to end."""
        end(self.process, how)
        self.process = None

    def make_topic(self, name: str, partitions: int = 1) -> None:
        """Makes a topic."""
        admin = self._admin()
        for made in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result(timeout=_START_S)
        # The broker hears of it a moment after the controller has made it.
        wait_until(lambda: name in self.topics(), _START_S, f"topic {name} is not known")

    def recreate_topic(self, name: str, partitions: int = 1) -> None:
        """Deletes a topic and makes another one of its name."""
        admin = self._admin()
        for deleted in admin.delete_topics([name]).values():
            deleted.result(timeout=_START_S)
        wait_until(lambda: name not in self.topics(), _START_S, f"topic {name} is still known")
        wait_until(lambda: self._makes(name, partitions), _START_S, f"topic {name} does not go")

    def _makes(self, name: str, partitions: int) -> bool:
        try:
            self.make_topic(name, partitions)
        except KafkaException:  # the old one is still being deleted
            return False
        return True

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
        return [*environment, "java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars_of('kafka')}/*"]

    def _properties(self) -> str:
        ports = {"PLAINTEXT": (self.port, self.port), "PROXIED": (self.behind_proxy_port, self.proxied_port)}
        protocols = {"PLAINTEXT": "PLAINTEXT", "PROXIED": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
        secure = []
        if self.certificate:
            ports["SECURE"], protocols["SECURE"] = (self.secure_port, self.secure_port), "SASL_SSL"
            secure = [
                "sasl.enabled.mechanisms=SCRAM-SHA-512,OAUTHBEARER",
                (
                    "listener.name.secure.scram-sha-512.sasl.jaas.config="
                    "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                ),
                (
                    "listener.name.secure.oauthbearer.sasl.jaas.config="
                    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                    'unsecuredLoginStringClaim_sub="broker";'
                ),
                "listener.name.secure.ssl.keystore.type=PEM",
                f"listener.name.secure.ssl.keystore.location={self.certificate}",
            ]
        if self.authority:
            ports["MUTUAL"], protocols["MUTUAL"] = (self.mutual_port, self.mutual_port), "SSL"
            secure += [
                "listener.name.mutual.ssl.client.auth=required",
                "listener.name.mutual.ssl.keystore.type=PEM",
                f"listener.name.mutual.ssl.keystore.location={self.certificate}",
                "listener.name.mutual.ssl.truststore.type=PEM",
                f"listener.name.mutual.ssl.truststore.location={self.authority}",
            ]
        listeners = [f"{name}://{self.host}:{port}" for name, (port, _) in ports.items()]
        advertised = [f"{name}://{self.host}:{port}" for name, (_, port) in ports.items()]
        return "\n".join(
            (
                "process.roles=broker,controller",
                "node.id=1",
                f"controller.quorum.voters=1@127.0.0.1:{self.controller_port}",
                f"listeners={','.join(listeners)},CONTROLLER://127.0.0.1:{self.controller_port}",
                f"advertised.listeners={','.join(advertised)}",
                "controller.listener.names=CONTROLLER",
                "inter.broker.listener.name=PLAINTEXT",
                "listener.security.protocol.map=" + ",".join(f"{name}:{how}" for name, how in protocols.items()),
                # Otherwise it deletes records that are dated years ago, whenever it looks.
                "log.retention.ms=-1",
                f"log.dirs={self.folder}/data",
                "auto.create.topics.enable=false",
                "offsets.topic.replication.factor=1",
                "transaction.state.log.replication.factor=1",
                "transaction.state.log.min.isr=1",
                *secure,
                *(_AUTHORIZER if self.has_authorizer else ()),
            )
        )
