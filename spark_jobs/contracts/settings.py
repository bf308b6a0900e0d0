"""Every setting, its default and its meaning; checked one by one and against each other.

Values come from the defaults below, then a TOML file, then environment variables, the later winning.
``ADLOOM_SESSIONIZE__GAP=10min`` sets ``gap`` in ``[sessionize]``.
"""

import json
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

from spark_jobs.contracts.choices import (
    DeduplicateMode,
    JoinType,
    SaslMechanism,
    SecurityProtocol,
    StateStore,
    Trigger,
)
from spark_jobs.contracts.durations import Duration, format_duration
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.events import DEFAULT_MAX_RECORD_BYTES

ENV_PREFIX = "ADLOOM_"
_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)


class _Section(BaseModel):
    # An error must not repeat what it was given: it may be a secret.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _comma_separated(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _pairs(value: object) -> object:
    """A table, or a JSON object as text, as the pairs in it: settings are hashable."""
    try:
        table = json.loads(value) if isinstance(value, str) else value
        return tuple(table.items()) if isinstance(table, dict) else table
    except json.JSONDecodeError as error:
        raise ValueError('not a JSON object; write it as in {"client.id": "adloom"}') from error


class IngestSettings(_Section):
    """``[ingest]``: reading and judging records."""

    max_record_bytes: int = Field(
        DEFAULT_MAX_RECORD_BYTES,
        ge=1024,
        description="a longer record is quarantined as record_too_large without being parsed",
    )
    max_future_skew: Duration = Field(
        5 * _MINUTE, description="how far past its receipt an event's time may lie; later ones are quarantined"
    )
    max_bytes_per_batch: int = Field(
        256 * 1024 * 1024,
        ge=1,
        description="a batch takes further whole files while it stays within this many bytes on disk; at least one",
    )


class KafkaSettings(_Section):
    """``[kafka]``: the topics that the job ``deduplicate`` reads when it is given no folder."""

    bootstrap_servers: str = Field("", description="brokers to begin with, as in host1:9092,host2:9092")
    topics: Annotated[tuple[str, ...], BeforeValidator(_comma_separated)] = Field(
        ("events",),
        min_length=1,
        description="topics to read, separated by commas: one for all event types or one each",
    )
    starting_offsets: str = Field(
        "earliest",
        description="where a lake without a checkpoint begins: earliest, latest, or Spark's JSON of offsets by topic",
    )
    max_offsets_per_trigger: int = Field(
        1_000_000, ge=1, description="records in a batch of ingest, at most; bounds memory after a long pause"
    )
    fail_on_data_loss: bool = Field(
        True,
        description="stop when the broker no longer has records that were not read yet; false goes on without them",
    )
    security_protocol: SecurityProtocol = Field(SecurityProtocol.PLAINTEXT, description="how the brokers are spoken to")
    sasl_mechanism: SaslMechanism = Field(
        SaslMechanism.SCRAM_SHA_512, description="how the user proves itself, under SASL_PLAINTEXT and SASL_SSL"
    )
    username: str = Field("", description="user, under SASL_PLAINTEXT and SASL_SSL")
    password: SecretStr = Field(
        SecretStr(""), description="the user's password; give it in the environment, not a file"
    )
    ca_file: Path | None = Field(
        None,
        description="PEM file of the authority that signed the brokers' certificates; the machine's own by default",
    )
    options: Annotated[tuple[tuple[str, str], ...], BeforeValidator(_pairs)] = Field(
        (), description="further settings of Kafka's Java client, by their own names; as JSON in the environment"
    )


class DeduplicateSettings(_Section):
    """``[deduplicate]``: each event once."""

    mode: DeduplicateMode = Field(
        DeduplicateMode.WITHIN_WATERMARK,
        description="within_watermark bounds the state; forever remembers every event and its state never shrinks",
    )
    watermark: Duration = Field(
        3 * _HOUR, description="how late an event may be; later ones are counted as late and not kept"
    )


class AttributeSettings(_Section):
    """``[attribute]``: joining clicks to impressions."""

    join: JoinType = Field(JoinType.FULL_OUTER, description="which rows come out beside matched pairs")
    impression_watermark: Duration = Field(2 * _HOUR, description="how late an impression may be")
    click_watermark: Duration = Field(3 * _HOUR, description="how late a click may be")
    window: Duration = Field(
        _HOUR, description="a click counts up to this long after its impression, both ends included"
    )


class SessionizeSettings(_Section):
    """``[sessionize]``: grouping a user's events."""

    gap: Duration = Field(5 * _MINUTE, description="a longer silence ends a session")
    watermark: Duration = Field(10 * _MINUTE, description="how late an event may join a session")


class HeartbeatSettings(_Section):
    """``[heartbeat]``: moving time on while nothing arrives."""

    idle_after: Duration = Field(
        _MINUTE, description="after so long without a record, and again each time, time moves on by as much; 0s: never"
    )


class JobSettings(_Section):
    """``[job]``: how the long-running jobs run."""

    trigger: Trigger = Field(
        Trigger.INTERVAL,
        description="interval: a batch every trigger_interval; asap: one after the other; available_now: to the end of "
        "what is there now, then exit",
    )
    trigger_interval: Duration = Field(timedelta(seconds=10), description="time from one batch's start to the next's")
    stop_timeout: Duration = Field(
        5 * _MINUTE, description="after SIGTERM running batches may take so long to finish before they are broken off"
    )
    metrics: str = Field(
        "",
        pattern=r"^([^\s:]+:\d{1,5})?$",
        description="host:port at which the job serves Prometheus metrics, as in 127.0.0.1:9108; none: it serves none",
    )


class SparkSettings(_Section):
    """``[spark]``: the engine."""

    master: str = Field("local[*]", description="Spark master; embedded runs use local[N]")
    driver_memory: str = Field(
        "3g", pattern=r"^[1-9]\d*[mg]$", description="heap of the driver, with its unit (m or g)"
    )
    shuffle_partitions: int = Field(
        2, ge=1, description="partitions of every stateful operator; frozen in a checkpoint at its first start"
    )
    state_store: StateStore = Field(
        StateStore.ROCKSDB, description="rocksdb bounds the heap; memory is faster while all state fits in the heap"
    )


class Settings(_Section):
    """All settings of a run."""

    ingest: IngestSettings = IngestSettings()
    deduplicate: DeduplicateSettings = DeduplicateSettings()
    attribute: AttributeSettings = AttributeSettings()
    sessionize: SessionizeSettings = SessionizeSettings()
    kafka: KafkaSettings = KafkaSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    job: JobSettings = JobSettings()
    spark: SparkSettings = SparkSettings()

    @model_validator(mode="after")
    def _safe_together(self) -> Self:
        dedup, attribute, sessions = self.deduplicate, self.attribute, self.sessionize
        for name, value in (
            ("attribute.impression_watermark", attribute.impression_watermark),
            ("attribute.click_watermark", attribute.click_watermark),
            ("sessionize.watermark", sessions.watermark),
        ):
            if value > dedup.watermark and dedup.mode is DeduplicateMode.WITHIN_WATERMARK:
                raise ValueError(
                    f"deduplicate.watermark {format_duration(dedup.watermark)} is shorter than {name} "
                    f"{format_duration(value)}: deduplicate would drop events that are still waited for; "
                    f"raise deduplicate.watermark to at least {format_duration(value)}"
                )
        if attribute.window > attribute.impression_watermark:
            raise ValueError(
                f"attribute.window {format_duration(attribute.window)} exceeds attribute.impression_watermark "
                f"{format_duration(attribute.impression_watermark)}: matches would be lost; "
                "raise the watermark or shorten the window"
            )
        if not attribute.window:
            raise ValueError("attribute.window 0s: no click could ever count; give it a length, as in 1h")
        if not sessions.gap:
            raise ValueError(
                "sessionize.gap 0s: every event would be a session of its own; give it a length, as in 5min"
            )
        self._check_kafka()
        return self

    def _check_kafka(self) -> None:
        kafka = self.kafka
        has_login = kafka.security_protocol.has_login
        if has_login and not (kafka.username and kafka.password.get_secret_value()):
            raise ValueError(
                f"kafka.security_protocol {kafka.security_protocol} needs kafka.username and kafka.password: "
                f"set {ENV_PREFIX}KAFKA__USERNAME and {ENV_PREFIX}KAFKA__PASSWORD"
            )
        if kafka.username and not has_login:
            raise ValueError(
                f"kafka.username is set but kafka.security_protocol is {kafka.security_protocol}, which sends none: "
                "set kafka.security_protocol to SASL_SSL (or SASL_PLAINTEXT)"
            )


def load_settings(file: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings from ``file`` (TOML) and ``environ``; the defaults where both are silent.

    Raises:
        SettingsError: the file cannot be read, or a setting is unknown, malformed or unsafe.
    """
    values = _read_toml(file) if file else {}
    for name, text in (environ or {}).items():
        section, separator, key = name.removeprefix(ENV_PREFIX).lower().partition("__")
        if name.startswith(ENV_PREFIX) and separator:
            table = values.setdefault(section, {})
            if not isinstance(table, dict):
                raise SettingsError(f"{file}: {section} must be a table, as in [{section}]")
            table[key] = text
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors()]
        raise SettingsError("settings refused:\n  " + "\n  ".join(line.removeprefix(": ") for line in lines)) from error


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"settings file {file} cannot be read: {error.strerror}; check --config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {file} is not TOML: {error}") from error
