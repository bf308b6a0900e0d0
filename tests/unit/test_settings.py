"""Settings: where they come from, and what is refused."""

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from spark_jobs.cli.settings import settings as list_all
from spark_jobs.config.choices import JoinState, JoinType, SecurityProtocol, StateStore
from spark_jobs.config.durations import format_duration, parse_duration
from spark_jobs.config.kafka import java_options, librdkafka_options
from spark_jobs.config.sections import KafkaSettings, SparkSettings
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.errors import SettingsError
from spark_jobs.spark.partitions import partitions as count_partitions


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "adloom.toml"
    file.write_text('[sessionize]\ngap = "10min"\n[attribute]\njoin = "inner"\n')
    settings = load_settings(file, {"ADLOOM_SESSIONIZE__GAP": "7min", "PATH": "/bin"})
    assert settings.sessionize.gap == timedelta(minutes=7)
    assert settings.attribute.join is JoinType.INNER
    assert settings.deduplicate == Settings().deduplicate


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        pytest.param({"ADLOOM_DEDUPLICATE__WATERMARK": "1h"}, "raise deduplicate.watermark to at least", id="dedup"),
        pytest.param({"ADLOOM_ATTRIBUTE__WINDOW": "2h1ms"}, "matches would be lost", id="window-above-watermark"),
        pytest.param({"ADLOOM_ATTRIBUTE__WINDOW": "0s"}, "no click could ever count", id="no-window"),
        pytest.param({"ADLOOM_SESSIONIZE__GAP": "0s"}, "a session of its own", id="no-gap"),
        pytest.param({"ADLOOM_SESSIONIZE__GAP": "300"}, "'300' is not a duration", id="no-unit"),
        pytest.param({"ADLOOM_SESSIONIZE__GAP": "-5min"}, "'-5min' is not a duration", id="negative"),
        pytest.param({"ADLOOM_SESSIONIZE__GAPS": "5min"}, "sessionize.gaps", id="unknown-setting"),
        pytest.param({"ADLOOM_SESSIONS__GAP": "5min"}, "sessions", id="unknown-section"),
        pytest.param({"ADLOOM_ATTRIBUTE__JOIN": "cross"}, "'full_outer', 'left_outer'", id="unknown-join"),
        pytest.param({"ADLOOM_KAFKA__TOPICS": ""}, "kafka.topics", id="no-topic"),
        pytest.param({"ADLOOM_KAFKA__OPTIONS": "x"}, "not a JSON object", id="options-not-json"),
        pytest.param({"ADLOOM_KAFKA__SECURITY_PROTOCOL": "SASL_SSL"}, "needs kafka.username", id="no-user"),
        pytest.param({"ADLOOM_KAFKA__USERNAME": "u"}, "which sends no user", id="user-not-sent"),
        pytest.param({"ADLOOM_MOVING_AVERAGE__KEY": "ip"}, "no text column of that name that may go to gold", id="ip"),
        pytest.param({"ADLOOM_CREDIT__SAME_ORDER": "shop"}, "conversion_type, currency, user_id", id="no-such-column"),
        pytest.param({"ADLOOM_INGEST__NOBODY": "x" * 129}, "no user_id can be", id="too-long-for-an-id"),
        pytest.param({"ADLOOM_INGEST__NOBODY": "a*,-"}, "a* would mean almost any user", id="anybody"),
        pytest.param({"ADLOOM_JOB__METRICS": "9108"}, "job.metrics", id="metrics-without-host"),
        pytest.param(
            {"ADLOOM_SPARK__JOIN_STATE": "by_time", "ADLOOM_SPARK__STATE_STORE": "memory"},
            "only rocksdb keeps an order",
            id="order-in-memory",
        ),
        pytest.param({"ADLOOM_SPARK__DRIVER_MEMORY": "3"}, "spark.driver_memory", id="memory-without-unit"),
    ],
)
def test_what_is_unknown_or_unsafe_is_refused_by_name(environ: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        load_settings(None, environ)
    assert message in str(refusal.value)


def test_kafka_takes_a_list_of_topics_and_a_table_of_options(tmp_path: Path) -> None:
    file = tmp_path / "adloom.toml"
    file.write_text('[kafka]\ntopics = ["clicks"]\n[kafka.options]\n"client.id" = "adloom"\n')
    kafka = load_settings(file).kafka
    assert (kafka.topics, dict(kafka.options)) == (("clicks",), {"client.id": "adloom"})
    environ = {"ADLOOM_KAFKA__TOPICS": "clicks, impressions", "ADLOOM_KAFKA__OPTIONS": '{"client.id": "other"}'}
    kafka = load_settings(file, environ).kafka
    assert (kafka.topics, dict(kafka.options)) == (("clicks", "impressions"), {"client.id": "other"})


def test_the_ids_of_nobody_are_replaced_as_a_list_and_an_empty_one_switches_them_off(tmp_path: Path) -> None:
    assert "00000000-0000-0000-0000-000000000000" in load_settings(None).ingest.nobody
    file = tmp_path / "adloom.toml"
    file.write_text('[ingest]\nnobody = ["a,b", "guest"]\n')
    assert load_settings(file).ingest.nobody == ("a,b", "guest")
    assert load_settings(file, {"ADLOOM_INGEST__NOBODY": "guest, -1"}).ingest.nobody == ("guest", "-1")
    off = load_settings(file, {"ADLOOM_INGEST__NOBODY": ""})
    assert (off.ingest.nobody, off.may_lack_user) == ((), False)


def test_a_password_is_not_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    canary = "canary-4711"
    login = {"ADLOOM_KAFKA__USERNAME": "adloom", "ADLOOM_KAFKA__PASSWORD": canary}
    with pytest.raises(SettingsError) as refusal:
        load_settings(None, login)
    monkeypatch.setenv("ADLOOM_KAFKA__SECURITY_PROTOCOL", "SASL_SSL")
    for name, value in login.items():
        monkeypatch.setenv(name, value)
    list_all(None)
    assert canary not in capsys.readouterr().out + str(refusal.value) + repr(load_settings(None, os.environ))


@pytest.mark.parametrize(
    ("environ", "partitions"),
    [
        pytest.param({"MASTER": "local"}, 2, id="one-core"),
        pytest.param({"MASTER": "local[3]"}, 3, id="three-cores"),
        pytest.param({"MASTER": "local[3,5]"}, 3, id="tasks-that-may-fail"),
        pytest.param({"MASTER": "local[64]"}, 4, id="many-cores"),
        pytest.param({"MASTER": "local[*]"}, min(max(os.cpu_count() or 1, 2), 4), id="this-machine"),
        pytest.param({"MASTER": "spark://master:7077", "MAX_CORES": "3"}, 3, id="cluster"),
        pytest.param({"MASTER": "local[5]", "SHUFFLE_PARTITIONS": "12"}, 12, id="given"),
    ],
)
def test_there_are_as_many_partitions_as_cores(environ: dict[str, str], partitions: int) -> None:
    settings = load_settings(None, {f"ADLOOM_SPARK__{name}": value for name, value in environ.items()})
    assert count_partitions(settings.spark) == partitions


def test_the_join_keeps_its_state_in_the_order_of_time_where_a_store_has_one() -> None:
    assert load_settings(None, {}).spark.join_state is JoinState.BY_TIME
    in_memory = {"ADLOOM_SPARK__STATE_STORE": "memory"}
    assert load_settings(None, in_memory).spark.join_state is JoinState.BY_KEY
    assert SparkSettings(state_store=StateStore.MEMORY).join_state is JoinState.BY_KEY


def test_a_window_as_long_as_the_watermark_is_safe() -> None:
    assert load_settings(None, {"ADLOOM_ATTRIBUTE__WINDOW": "2h"}).attribute.window == timedelta(hours=2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"[sessionize", "is not TOML", id="broken"),
        pytest.param(b"\xff", "is not TOML", id="not-utf-8"),
        pytest.param(b"[sessionize]\ngap = 300\n", "has no unit", id="number-without-unit"),
        pytest.param(None, "cannot be read", id="missing"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "adloom.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=message):
        load_settings(file)


@pytest.mark.parametrize("text", ["500ms", "90s", "5min", "1h30min", "2d", "1d1ms", "0s"])
def test_a_duration_reads_back_as_it_was_written(text: str) -> None:
    duration = parse_duration(text)
    assert parse_duration(format_duration(duration)) == duration


def test_a_secret_among_the_options_of_kafka_is_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = "canary-17"
    secrets = ("sasl.jaas.config", "ssl.key.password", "ssl.keystore.key", "sasl.oauthbearer.client.credentials.secret")
    options = {"client.id": "adloom-reader", **dict.fromkeys(secrets, canary)}
    monkeypatch.setenv("ADLOOM_KAFKA__OPTIONS", json.dumps(options))
    monkeypatch.setenv("COLUMNS", "400")
    list_all(None)
    shown = capsys.readouterr().out
    assert "adloom-reader" in shown
    assert canary not in shown


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "AWS_MSK_IAM"])
def test_another_login_of_kafka_needs_no_user_and_reaches_java_as_it_is(mechanism: str) -> None:
    options = {"sasl.mechanism": mechanism, "sasl.jaas.config": "some.Module required;"}
    environment = {"ADLOOM_KAFKA__SECURITY_PROTOCOL": "SASL_SSL", "ADLOOM_KAFKA__OPTIONS": json.dumps(options)}
    kafka = load_settings(None, environment).kafka
    assert java_options(kafka) == {"bootstrap.servers": "", "security.protocol": "SASL_SSL", **options}
    with pytest.raises(SettingsError, match=r"sasl\.mechanism is an option of Kafka's Java client"):
        librdkafka_options(kafka)


def test_a_client_certificate_is_an_option_of_either_client() -> None:
    options = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "the certificate",
        "ssl.keystore.key": "the key",
        "ssl.key.password": "its password",
        "fetch.max.bytes": "1000",
    }
    kafka = KafkaSettings(
        bootstrap_servers="b:1", security_protocol=SecurityProtocol.SSL, options=tuple(options.items())
    )
    basis = {"bootstrap.servers": "b:1", "security.protocol": "SSL"}
    assert java_options(kafka) == {**basis, **options}
    assert librdkafka_options(kafka) == {
        **basis,
        "ssl.certificate.pem": "the certificate",
        "ssl.key.pem": "the key",
        "ssl.key.password": "its password",
    }
