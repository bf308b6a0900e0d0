"""All settings, checked one by one and against each other.

A value comes from the environment, else from the TOML file, else from the defaults. ``ADLOOM_SESSIONIZE__GAP=10min``
sets ``gap`` in ``[sessionize]``.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from spark_jobs.config.choices import DeduplicateMode, JoinState, LineageTransport, StateStore
from spark_jobs.config.durations import format_duration
from spark_jobs.config.encoding import RecordFormat
from spark_jobs.config.folders import Folder
from spark_jobs.config.secret_files import SUFFIX, value_of
from spark_jobs.config.sections import (
    AttributeSettings,
    CampaignStatsSettings,
    ContractSettings,
    CreditSettings,
    DaysSettings,
    DeduplicateSettings,
    HeartbeatSettings,
    IngestSettings,
    JobSettings,
    KafkaSettings,
    LineageSettings,
    MovingAverageSettings,
    RegistrySettings,
    RepairSettings,
    S3Settings,
    Section,
    SessionizeSettings,
    SparkSettings,
    TablesSettings,
    UserStatusSettings,
    ValidationSettings,
)
from spark_jobs.config.sources import OWN_SOURCE, SourceSettings, check_also, check_encodings, kept_columns
from spark_jobs.contract.events import PERSONAL_FIELDS
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.errors import SettingsError

ENV_PREFIX = "ADLOOM_"


_OF_ORDERS = ("conversion_type", "currency", "user_id")
"""Columns of silver that ``credit.same_order`` may name."""


class Settings(Section):
    """All settings of a run."""

    contract: ContractSettings = ContractSettings()
    ingest: IngestSettings = IngestSettings()
    deduplicate: DeduplicateSettings = DeduplicateSettings()
    attribute: AttributeSettings = AttributeSettings()
    sessionize: SessionizeSettings = SessionizeSettings()
    campaign_stats: CampaignStatsSettings = CampaignStatsSettings()
    moving_average: MovingAverageSettings = MovingAverageSettings()
    user_status: UserStatusSettings = UserStatusSettings()
    kafka: KafkaSettings = KafkaSettings()
    registry: RegistrySettings = RegistrySettings()
    s3: S3Settings = S3Settings()
    tables: TablesSettings = TablesSettings()
    days: DaysSettings = DaysSettings()
    repair: RepairSettings = RepairSettings()
    credit: CreditSettings = CreditSettings()
    validation: ValidationSettings = ValidationSettings()
    lineage: LineageSettings = LineageSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    job: JobSettings = JobSettings()
    spark: SparkSettings = SparkSettings()
    source: dict[str, SourceSettings] = Field(default_factory=dict)
    """Named sources; none: records in adloom's own format, from ``kafka.topics`` or a folder."""

    def __hash__(self) -> int:
        """Of all values; the tables of sources have no hash of their own."""
        return hash(self.model_dump_json())

    @property
    def sources(self) -> dict[str, SourceSettings]:
        """Those named, or else the one of records in adloom's own format."""
        own = SourceSettings(format=RecordFormat.ADLOOM, topics=self.kafka.topics)
        return self.source or {OWN_SOURCE: own}

    @property
    def topics(self) -> tuple[str, ...]:
        """The Kafka topics of all sources; ``kafka.topics`` if those read records of any origin."""
        found = tuple(dict.fromkeys(topic for source in self.sources.values() for topic in source.topics))
        return found or (() if self.folders else self.kafka.topics)

    @property
    def folders(self) -> tuple[Folder, ...]:
        """The folders of all sources."""
        return tuple(dict.fromkeys(source.folder for source in self.sources.values() if source.folder))

    @property
    def kafka_of_sources(self) -> KafkaSettings:
        """``[kafka]`` with the topics of all sources."""
        return self.kafka.model_copy(update={"topics": self.topics})

    @property
    def has_userless_source(self) -> bool:
        """Whether a source may have events without a user."""
        return any("user_id" in source.may_lack for source in self.sources.values())

    @property
    def may_lack_user(self) -> bool:
        """Whether an event may have no user: its source may lack it, or its id may mean nobody."""
        return bool(self.ingest.nobody) or self.has_userless_source

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
        if attribute.tolerance > attribute.window:
            raise ValueError(
                f"attribute.tolerance {format_duration(attribute.tolerance)} exceeds attribute.window "
                f"{format_duration(attribute.window)}: impressions are kept no longer; shorten the tolerance"
            )
        if not sessions.gap:
            raise ValueError(
                "sessionize.gap 0s: every event would be a session of its own; give it a length, as in 5min"
            )
        if sessions.longest and sessions.longest < sessions.gap:
            raise ValueError(
                f"sessionize.longest {format_duration(sessions.longest)} is shorter than sessionize.gap "
                f"{format_duration(sessions.gap)}: a silence could outlast its session; raise it to at least that"
            )
        self._check_lineage()
        if self.spark.join_state is JoinState.BY_TIME and self.spark.state_store is not StateStore.ROCKSDB:
            raise ValueError(
                f"spark.join_state by_time with spark.state_store {self.spark.state_store.value}: only rocksdb keeps "
                "an order; set spark.state_store to rocksdb, or spark.join_state to by_key"
            )
        self._check_measure()
        self._check_orders()
        self._check_kafka()
        self._check_sources()
        self._check_registry()
        return self

    def _check_lineage(self) -> None:
        own = self.lineage
        needed = {LineageTransport.HTTP: ("url", own.url), LineageTransport.FILE: ("file", own.file)}.get(own.transport)
        if needed and not needed[1]:
            raise ValueError(f"lineage.transport is {own.transport} and lineage.{needed[0]} is empty; give it")

    def _check_measure(self) -> None:
        stats, average = self.campaign_stats, self.moving_average
        if stats.slide > stats.window:
            raise ValueError(
                f"campaign_stats.slide {format_duration(stats.slide)} exceeds campaign_stats.window "
                f"{format_duration(stats.window)}: events between windows would be counted in none; shorten the slide"
            )
        kept = [column.name for column in kept_columns(self.source)]
        if unknown := [name for name in stats.group_by if name not in kept]:
            raise ValueError(
                f"campaign_stats.group_by {unknown[0]}: no source keeps a column of that name; "
                + (f"choose one of {', '.join(kept)}" if kept else "keep it in a source, as source.NAME.keep")
            )
        columns = {one.name: one.sql_type for one in SILVER_EVENTS.columns if one.name not in PERSONAL_FIELDS}
        if columns.get(average.key) != "STRING":
            texts = ", ".join(name for name, sql_type in columns.items() if sql_type == "STRING")
            raise ValueError(
                f"moving_average.key {average.key}: silver has no text column of that name that may go to gold; "
                f"choose one of {texts}"
            )
        if wrong := [name for name in average.values if columns.get(name) != "BIGINT"]:
            numbers = ", ".join(name for name, sql_type in columns.items() if sql_type == "BIGINT")
            raise ValueError(
                f"moving_average.values {wrong[0]}: no such integer column in silver; choose one of {numbers}"
            )

    def _check_orders(self) -> None:
        known = [*_OF_ORDERS, *(column.name for column in kept_columns(self.source))]
        if unknown := [name for name in self.credit.same_order if name not in known]:
            raise ValueError(
                f"credit.same_order {unknown[0]}: no column of that name can distinguish orders; choose from "
                f"{', '.join(known)}, or keep it in a source, as source.NAME.keep"
            )

    def _check_sources(self) -> None:
        kept_columns(self.source)
        check_encodings(self.source)
        check_also(self.source)
        has_path = [name for name, source in self.source.items() if source.path]
        if has_path and (read := [name for name, source in self.source.items() if source.topics]):
            raise ValueError(
                f"source.{has_path[0]} has a path, and source.{read[0]} topics: a lake is fed by files or by Kafka; "
                "load the files into a topic, or into a lake of their own"
            )
        if len({one.location.split("/")[2] if not one.is_local else "" for one in self.folders}) > 1:
            raise ValueError(
                f"sources read {' and '.join(map(str, self.folders))}: all folders lie on disks, or in one bucket; "
                "make lakes of their own, or copy the files to one place"
            )
        has_topics = [name for name, source in self.source.items() if source.topics]
        if has_topics and "topics" in self.kafka.model_fields_set:
            raise ValueError(
                f"kafka.topics is set, and so is source.{has_topics[0]}.topics: records in adloom's own format need a "
                'source, too, as in [source.own] with format = "adloom"; leave out kafka.topics'
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

    def _check_registry(self) -> None:
        registry = self.registry
        if bool(registry.username) != bool(registry.password.get_secret_value()):
            raise ValueError(
                "registry.username and registry.password belong together: set "
                f"{ENV_PREFIX}REGISTRY__USERNAME and {ENV_PREFIX}REGISTRY__PASSWORD, or neither"
            )
        for name, source in self.source.items():
            is_typed = source.topics and source.format in (RecordFormat.AVRO, RecordFormat.PROTOBUF)
            if is_typed and not source.schema_file and not (registry.url and source.in_registry):
                raise ValueError(
                    f"source.{name}: format {source.format} needs the schema of its records: set registry.url to that "
                    "of your schema registry, or schema_file"
                )

    @property
    def group_types(self) -> dict[str, str]:
        """The columns of ``campaign_stats.group_by``, each with its type in Spark SQL."""
        kept = {column.name: column.sql_type for column in kept_columns(self.source)}
        return {name: kept[name] for name in self.campaign_stats.group_by}


def load_settings(file: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings from ``environ``, then ``file`` (TOML), then the defaults.

    Raises:
        SettingsError: the file cannot be read, or a setting is unknown, malformed or unsafe.
    """
    values = read_toml(file) if file else {}
    for name in dict.fromkeys(map(_without_suffix, environ or {})):
        section, separator, key = name.removeprefix(ENV_PREFIX).lower().partition("__")
        if name.startswith(ENV_PREFIX) and separator:
            table = values.setdefault(section, {})
            if not isinstance(table, dict):
                raise SettingsError(f"{file}: {section} must be a table, as in [{section}]")
            table[key] = value_of(environ or {}, name)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors()]
        raise SettingsError("settings refused:\n  " + "\n  ".join(line.removeprefix(": ") for line in lines)) from error


def _without_suffix(name: str) -> str:
    """The variable that ``name`` gives: ``ADLOOM_KAFKA__PASSWORD_FILE`` names the file of ``ADLOOM_KAFKA__PASSWORD``.

    But ``ADLOOM_S3__CA_FILE`` is a setting itself.
    """
    section, _, key = name.removeprefix(ENV_PREFIX).lower().partition("__")
    fields = getattr(getattr(Settings.model_fields.get(section), "annotation", None), "model_fields", {})
    if key.removesuffix(SUFFIX.lower()) in fields and key not in fields:
        return name.removesuffix(SUFFIX)
    return name


def read_toml(file: Path) -> dict[str, Any]:
    """The tables of ``file``, unchecked.

    Raises:
        SettingsError: it cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"settings file {file} cannot be read: {error.strerror}; check --config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {file} is not TOML: {error}") from error
