"""The settings of Kafka as options of its clients: Java's, which Spark and the checks before it use, and librdkafka."""

from collections.abc import Iterator

from spark_jobs.config.sections import KafkaSettings
from spark_jobs.errors import SettingsError

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_PEM_OPTIONS = {
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.truststore.certificates": ("ssl.ca.pem",),
}
"""By Java's name of an option, librdkafka's names of it where the store is PEM, which holds key and certificate."""
_SAME_OPTIONS = frozenset({"client.id", "ssl.key.password", "ssl.endpoint.identification.algorithm"})
"""The options that both clients call by the same name."""
ISOLATION = "isolation.level"
"""Kafka's option for which records of transactions a reader gets."""
SAMPLES_GROUP = "adloom check-events"
"""The consumer group of whoever looks at single records; it stores nothing."""
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Kafka's id of nothing, which brokers before 2.8 give to every topic."""
_STORE_TYPES = ("ssl.keystore.type", "ssl.truststore.type")


def java_options(settings: KafkaSettings) -> dict[str, str]:
    """The options of a Java client, by its own names; ``kafka.options`` win. Never print them: some are secrets."""
    options = {
        "bootstrap.servers": settings.bootstrap_servers,
        "security.protocol": settings.security_protocol.value,
        **_login(settings),
        **dict(settings.options),
    }
    if settings.ca_file:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(settings.ca_file)}
    return options


def reader_options(settings: KafkaSettings) -> dict[str, str]:
    """:func:`java_options` of a client that reads records: without those of transactions that were broken off."""
    return {ISOLATION: "read_committed", **java_options(settings)}


def librdkafka_options(settings: KafkaSettings) -> dict[str, str]:
    """The options of a librdkafka client, by its own names. Never print them: some are secrets.

    Of ``kafka.options`` it translates those that identify the client; the others tune Java's client and are left out.

    Raises:
        SettingsError: an option about TLS or the login means nothing to librdkafka.
    """
    options = {"bootstrap.servers": settings.bootstrap_servers, "security.protocol": settings.security_protocol.value}
    if settings.security_protocol.has_login and settings.username:
        options["sasl.mechanism"] = settings.sasl_mechanism.value
        options["sasl.username"] = settings.username
        options["sasl.password"] = settings.password.get_secret_value()
    options |= dict(_translated(dict(settings.options)))
    if settings.ca_file:
        options["ssl.ca.location"] = str(settings.ca_file)
    return options


def _translated(options: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        kind = options.get(".".join([*name.split(".")[:2], "type"]))
        if name in _SAME_OPTIONS:
            yield name, value
        elif name in _PEM_OPTIONS and kind == "PEM":
            yield from ((own_name, value) for own_name in _PEM_OPTIONS[name])
        elif name.startswith(("ssl.", "sasl.")) and not (name in _STORE_TYPES and value == "PEM"):
            raise SettingsError(
                f"kafka.options: {name} is an option of Kafka's Java client, and `adloom generate` sends with "
                "librdkafka, which knows TLS from PEM files and users with a password; send with another producer, or "
                "give `adloom generate` other credentials"
            )


def _login(settings: KafkaSettings) -> dict[str, str]:
    if not (settings.security_protocol.has_login and settings.username):
        return {}
    user, password = (_quoted(text) for text in (settings.username, settings.password.get_secret_value()))
    module = _LOGIN_MODULES[settings.sasl_mechanism]
    return {
        "sasl.mechanism": settings.sasl_mechanism.value,
        "sasl.jaas.config": f"{module} required username={user} password={password};",
    }


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
