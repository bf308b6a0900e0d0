"""The sections of the settings: each setting, its default and its meaning."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from spark_jobs.contracts.choices import (
    AverageOutput,
    Clock,
    DeduplicateMode,
    JoinState,
    JoinType,
    SaslMechanism,
    SecurityProtocol,
    StateStore,
    StatsOutput,
    Trigger,
)
from spark_jobs.contracts.durations import Duration
from spark_jobs.contracts.events import DEFAULT_MAX_RECORD_BYTES

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
FEWEST_PARTITIONS, MOST_PARTITIONS = 2, 4
"""What ``spark.shuffle_partitions = 0`` comes to, at least and at most."""


class Section(BaseModel):
    """A table of the settings."""

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


class IngestSettings(Section):
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
        512 * 1024 * 1024,
        ge=1,
        description="a batch takes further whole files while it stays within this many bytes on disk; at least one",
    )


class KafkaSettings(Section):
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


class DeduplicateSettings(Section):
    """``[deduplicate]``: each event once."""

    mode: DeduplicateMode = Field(
        DeduplicateMode.WITHIN_WATERMARK,
        description="within_watermark bounds the state; forever remembers every event and its state never shrinks",
    )
    watermark: Duration = Field(
        3 * _HOUR, description="how late an event may be; later ones are counted as late and not kept"
    )


class AttributeSettings(Section):
    """``[attribute]``: joining clicks to impressions."""

    join: JoinType = Field(JoinType.FULL_OUTER, description="which rows come out beside matched pairs")
    impression_watermark: Duration = Field(2 * _HOUR, description="how late an impression may be")
    click_watermark: Duration = Field(3 * _HOUR, description="how late a click may be")
    window: Duration = Field(
        _HOUR, description="a click counts up to this long after its impression, both ends included"
    )


class SessionizeSettings(Section):
    """``[sessionize]``: grouping a user's events."""

    gap: Duration = Field(5 * _MINUTE, description="a longer silence ends a session")
    watermark: Duration = Field(10 * _MINUTE, description="how late an event may join a session")


class CampaignStatsSettings(Section):
    """``[campaign_stats]``: windows of each campaign."""

    window: Duration = Field(10 * _MINUTE, gt=timedelta(), description="length of a window")
    slide: Duration = Field(
        10 * _MINUTE,
        gt=timedelta(),
        description="from the start of a window to that of the next; shorter than the window: they overlap",
    )
    watermark: Duration = Field(5 * _MINUTE, description="how late a click may be, and how late a window is closed")
    output: StatsOutput = Field(
        StatsOutput.APPEND,
        description="append: a row once its window is final; update: rows that follow their window, merged by key",
    )
    feed: Duration = Field(
        6 * _HOUR,
        description="how much of the newest windows _feeds/campaign_stats.json holds, for dashboards; 0s: none",
    )


class MovingAverageSettings(Section):
    """``[moving_average]``: the mean of the last values of a key."""

    key: str = Field("campaign_id", description="column that says whose value it is; rows without one are left out")
    values: Annotated[tuple[str, ...], BeforeValidator(_comma_separated)] = Field(
        ("cost_micros",),
        min_length=1,
        description="columns averaged, separated by commas, each for itself; nulls are none",
    )
    size: int = Field(10, ge=1, description="how many values make a mean")
    output: AverageOutput = Field(
        AverageOutput.FULL,
        description="full: nothing until there are so many; every: a row for each value, with a mean of 0 until then",
    )
    timeout: Duration = Field(
        _HOUR, gt=timedelta(), description="after a longer silence a key is put out once more and forgotten"
    )
    clock: Clock = Field(
        Clock.EVENT, description="time of the silence: event, or processing, where values are taken as they come"
    )
    watermark: Duration = Field(5 * _MINUTE, description="how late a value may be (event clock)")


class UserStatusSettings(Section):
    """``[user_status]``: who is there."""

    idle_after: Duration = Field(_HOUR, gt=timedelta(), description="so long after the last event a user is inactive")
    clock: Clock = Field(
        Clock.EVENT, description="time of the silence: event, or processing, where events are taken as they come"
    )
    watermark: Duration = Field(10 * _MINUTE, description="how late an event may be (event clock)")


class HeartbeatSettings(Section):
    """``[heartbeat]``: moving time on while nothing arrives."""

    idle_after: Duration = Field(
        _MINUTE, description="after so long without a record, and again each time, time moves on by as much; 0s: never"
    )


class JobSettings(Section):
    """``[job]``: how the long-running jobs run."""

    trigger: Trigger = Field(
        Trigger.INTERVAL,
        description="interval: a batch every trigger_interval; asap: one after the other; available_now: to the end of "
        "what is there now, then exit",
    )
    trigger_interval: Duration = Field(timedelta(seconds=10), description="time from one batch's start to the next's")
    follow_interval: Duration = Field(
        timedelta(seconds=1),
        description="with trigger = interval, how often the queries on the way to gold/attributions, deduplicate and "
        "attribute, look for rows of the one before; they do not wait for trigger_interval",
    )
    stop_timeout: Duration = Field(
        5 * _MINUTE, description="after SIGTERM running batches may take so long to finish before they are broken off"
    )
    checkpoint_retention: Duration = Field(
        7 * _DAY, description="how long `adloom checkpoints clean` keeps a checkpoint after another took its place"
    )
    log_folder: Path | None = Field(
        None,
        description="where Spark's own log goes; by default the lake's _progress folder, or that of temporary files "
        "where the lake is in an object store",
    )
    metrics: str = Field(
        "",
        pattern=r"^([^\s:]+:\d{1,5})?$",
        description="host:port at which the job serves Prometheus metrics, as in 127.0.0.1:9108; none: it serves none",
    )


class S3Settings(Section):
    """``[s3]``: the object store of a lake at ``s3a://bucket/prefix``.

    The keys come from the environment (``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``) or an AWS profile.
    """

    endpoint: str = Field(
        "",
        pattern=r"^(https?://[^\s/]+)?$",
        description="URL of the store, as in https://minio.example.com:9000; none: Amazon's own",
    )
    region: str = Field("us-east-1", description="region of the store")
    path_style: bool = Field(True, description="name the bucket in the path, as MinIO wants it, not in the host name")
    profile: str = Field("", description="AWS profile to take the keys from; none: the environment's")
    ca_file: Path | None = Field(
        None, description="PEM file of the authority that signed the store's certificate; the machine's own by default"
    )
    lease: Duration = Field(
        timedelta(seconds=20),
        ge=timedelta(seconds=5),
        description="a job that has not been heard of for so long has lost its lock on the lake",
    )


class TablesSettings(Section):
    """``[tables]``: the care of the Delta tables; `adloom maintain` gives them to tables that are there already."""

    target_file_bytes: int = Field(
        128 * 1024 * 1024, ge=1024 * 1024, description="size of the files that small ones are put together into"
    )
    auto_compact: bool = Field(
        False, description="let the writer put small files together itself, after a batch that leaves 50 or more"
    )
    log_retention: Duration = Field(
        30 * _DAY, ge=_DAY, description="how long a table can still be read as it was; a query may pause no longer"
    )
    file_retention: Duration = Field(
        7 * _DAY, ge=_HOUR, description="how long a file that was replaced is kept for those who are still reading it"
    )


class SparkSettings(Section):
    """``[spark]``: the engine."""

    master: str = Field(
        "local[*]",
        description="Spark master: local[N], or spark://…, k8s://…, yarn; the driver runs where the command is given",
    )
    driver_memory: str = Field(
        "3g", pattern=r"^[1-9]\d*[mg]$", description="heap of the driver, with its unit (m or g)"
    )
    max_cores: int = Field(
        2, ge=1, description="cores of a cluster that a job takes, at most; on spark://… the first would take all"
    )
    executor_memory: str = Field(
        "1g", pattern=r"^[1-9]\d*[mg]$", description="heap of each executor on a cluster, with its unit (m or g)"
    )
    shuffle_partitions: int = Field(
        0,
        ge=0,
        description="partitions of every stateful operator, frozen in a checkpoint at its first start; 0: one for each "
        f"core of the job, {FEWEST_PARTITIONS} to {MOST_PARTITIONS}",
    )
    state_store: StateStore = Field(
        StateStore.ROCKSDB, description="rocksdb bounds the heap; memory is faster while all state fits in the heap"
    )
    join_state: JoinState = Field(
        JoinState.BY_KEY,
        description="by_time: a batch of a join no longer takes longer the more it keeps, for what is due lies at the "
        "front; Spark 4.2 has it under development, so a later Spark may need the checkpoint begun anew. Frozen in a "
        "checkpoint at its first start",
    )
