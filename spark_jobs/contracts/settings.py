"""All settings, checked one by one and against each other.

A value comes from the environment, else from the TOML file, else from the defaults. ``ADLOOM_SESSIONIZE__GAP=10min``
sets ``gap`` in ``[sessionize]``.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError, model_validator

from spark_jobs.contracts.choices import DeduplicateMode, JoinState, StateStore
from spark_jobs.contracts.durations import format_duration
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.sections import (
    AttributeSettings,
    CampaignStatsSettings,
    DeduplicateSettings,
    HeartbeatSettings,
    IngestSettings,
    JobSettings,
    KafkaSettings,
    MovingAverageSettings,
    S3Settings,
    Section,
    SessionizeSettings,
    SparkSettings,
    TablesSettings,
    UserStatusSettings,
)
from spark_jobs.contracts.tables import SILVER_EVENTS

ENV_PREFIX = "ADLOOM_"


class Settings(Section):
    """All settings of a run."""

    ingest: IngestSettings = IngestSettings()
    deduplicate: DeduplicateSettings = DeduplicateSettings()
    attribute: AttributeSettings = AttributeSettings()
    sessionize: SessionizeSettings = SessionizeSettings()
    campaign_stats: CampaignStatsSettings = CampaignStatsSettings()
    moving_average: MovingAverageSettings = MovingAverageSettings()
    user_status: UserStatusSettings = UserStatusSettings()
    kafka: KafkaSettings = KafkaSettings()
    s3: S3Settings = S3Settings()
    tables: TablesSettings = TablesSettings()
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
            ("campaign_stats.watermark", self.campaign_stats.watermark),
            ("moving_average.watermark", self.moving_average.watermark),
            ("user_status.watermark", self.user_status.watermark),
        ):
            if value > dedup.watermark and dedup.mode is DeduplicateMode.WITHIN_WATERMARK:
                raise ValueError(
                    f"deduplicate.watermark {format_duration(dedup.watermark)} is shorter than {name} "
                    f"{format_duration(value)}: deduplicate would drop events that a later query still waits for; "
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
        if self.spark.join_state is JoinState.BY_TIME and self.spark.state_store is not StateStore.ROCKSDB:
            raise ValueError(
                f"spark.join_state by_time with spark.state_store {self.spark.state_store.value}: only rocksdb keeps "
                "an order; set spark.state_store to rocksdb, or spark.join_state to by_key"
            )
        self._check_measure()
        self._check_kafka()
        return self

    def _check_measure(self) -> None:
        stats, average = self.campaign_stats, self.moving_average
        if stats.slide > stats.window:
            raise ValueError(
                f"campaign_stats.slide {format_duration(stats.slide)} exceeds campaign_stats.window "
                f"{format_duration(stats.window)}: events between windows would be counted in none; shorten the slide"
            )
        columns = {column.name: column.sql_type for column in SILVER_EVENTS.columns}
        if columns.get(average.key) != "STRING":
            texts = ", ".join(name for name, sql_type in columns.items() if sql_type == "STRING")
            raise ValueError(
                f"moving_average.key {average.key}: silver has no text column of that name; choose one of {texts}"
            )
        if wrong := [name for name in average.values if columns.get(name) != "BIGINT"]:
            numbers = ", ".join(name for name, sql_type in columns.items() if sql_type == "BIGINT")
            raise ValueError(
                f"moving_average.values {wrong[0]}: no such integer column in silver; choose one of {numbers}"
            )

    def _check_kafka(self) -> None:
        kafka = self.kafka
        has_login = kafka.security_protocol.has_login
        has_user = kafka.username and kafka.password.get_secret_value()
        if has_login and not has_user and "sasl.mechanism" not in dict(kafka.options):
            raise ValueError(
                f"kafka.security_protocol {kafka.security_protocol} needs kafka.username and kafka.password: "
                f"set {ENV_PREFIX}KAFKA__USERNAME and {ENV_PREFIX}KAFKA__PASSWORD, or give another login in "
                "kafka.options, by sasl.mechanism and sasl.jaas.config"
            )
        if kafka.username and not has_login:
            raise ValueError(
                f"kafka.username is set but kafka.security_protocol is {kafka.security_protocol}, which sends no user: "
                "set kafka.security_protocol to SASL_SSL (or SASL_PLAINTEXT)"
            )


def load_settings(file: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings from ``environ``, then ``file`` (TOML), then the defaults.

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
