"""How the settings of Kafka are told to librdkafka, which producers and checks use."""

from spark_jobs.contracts.sections import KafkaSettings


def client_options(settings: KafkaSettings) -> dict[str, str]:
    """The settings of a librdkafka client, by its own names. They may hold the password: never print them."""
    options = {"bootstrap.servers": settings.bootstrap_servers, "security.protocol": settings.security_protocol.value}
    if settings.security_protocol.has_login:
        options["sasl.mechanism"] = settings.sasl_mechanism.value
        options["sasl.username"] = settings.username
        options["sasl.password"] = settings.password.get_secret_value()
    if settings.ca_file:
        options["ssl.ca.location"] = str(settings.ca_file)
    return options
