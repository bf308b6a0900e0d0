"""The sections of the settings: each setting, its default and its meaning."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from spark_jobs.config.choices import (
    AverageOutput,
    Clock,
    CreditModel,
    CreditViews,
    DeduplicateMode,
    FileOrder,
    JoinState,
    JoinType,
    LineageTransport,
    SaslMechanism,
    SecurityProtocol,
    StateStore,
    StatsOutput,
    Trigger,
)
from spark_jobs.config.durations import UTC_ZONE, Duration, format_duration
from spark_jobs.contract.events import DEFAULT_MAX_RECORD_BYTES, MAX_ID_CHARACTERS
from spark_jobs.contract.nobody import ANY, NOBODY

_INITIAL_STATE = (
    "table or file with {} at the first start: the folder of a Delta table, or a .parquet, .jsonl, .json or .csv file; "
    "it is taken once. Empty: the state starts empty"
)
_SECOND, _MINUTE, _HOUR, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_LONGEST_LOOKBACK = 3650 * _DAY
"""With it, microseconds times 4,096 still fit 64 bits."""
FEWEST_PARTITIONS, MOST_PARTITIONS = 2, 4
"""Bounds of the number that ``spark.shuffle_partitions = 0`` stands for."""


_LEAST_OF_PATTERN = 2
"""Characters of an id that means nobody, without those that stand for others."""


class Section(BaseModel):
    """One section of the settings: a table in the TOML file."""

    # Errors must not repeat the rejected value: it may be a secret.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def comma_separated(value: object) -> object:
    """A list as it is, and text as a tuple of its parts."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _pairs(value: object) -> object:
    """A table, or a JSON object as text, as a tuple of pairs."""
    try:
        table = json.loads(value) if isinstance(value, str) else value
        return tuple(table.items()) if isinstance(table, dict) else table
    except json.JSONDecodeError as error:
        raise ValueError('not a JSON object; write it as in {"client.id": "adloom"}') from error


def _as_text(value: object) -> object:
    # TOML's 1.10 is the number 1.1.
    if isinstance(value, int | float):
        raise ValueError('write the version as text, in quotes, as in version = "1.10"')  # noqa: TRY004 pydantic's kind
    return value


class ContractSettings(Section):
    """``[contract]``: what producers and consumers are promised, and by whom."""

    version: Annotated[str, BeforeValidator(_as_text)] = Field(
        "1.0",
        pattern=r"^(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})$",
        description="version of the contract, major.minor: raise the major with a breaking change, else the minor; "
        "`adloom contract check` says which",
    )
    name: str = Field(
        "ad-events",
        pattern=r"^[a-z][a-z0-9_-]{0,62}$",
        description="name of the contract, by which tools and people find it",
    )
    owner: str = Field("", description="team that answers for the contract")


class IngestSettings(Section):
    """``[ingest]``: reading and validating records."""

    max_record_bytes: int = Field(
        DEFAULT_MAX_RECORD_BYTES,
        ge=1024,
        description="longer records are quarantined as record_too_large without being parsed",
    )
    max_future_skew: Duration = Field(
        5 * _MINUTE, description="how far an event's time may lie after its receipt; beyond that it is quarantined"
    )
    earliest_event_time: AwareDatetime = Field(
        datetime(2000, 1, 1, tzinfo=UTC),
        description="an event with an earlier time is quarantined: a clock that was never set shows 1970 or 1980",
    )
    lower_ids: bool = Field(
        default=False,
        description="lower-case the ASCII letters of event_id, user_id, impression_id and revokes, so that an app's "
        "8F3C matches a server's 8f3c; raw keeps what came, and existing rows stay as they are",
    )
    nobody: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        NOBODY,
        description="comma-separated user ids that mean that no user is known, in upper or lower case: an event with "
        "one of them has no user, and * stands for any characters; empty: every id is a person",
    )
    max_bytes_per_batch: int = Field(
        512 * 1024 * 1024,
        ge=1,
        description="a batch takes whole files up to this many bytes on disk, and always at least one file",
    )
    file_order: FileOrder = Field(
        FileOrder.EVENT_TIME,
        description="of files that wait together: event_time: each is in order by itself, so that no event is late "
        "because its file is read after another one; modification_time: they follow each other as they were written, "
        "and an event far behind those in earlier files is late",
    )

    @field_validator("nobody")
    @classmethod
    def _are_ids(cls, nobody: tuple[str, ...]) -> tuple[str, ...]:
        if any(not 1 <= len(text) <= MAX_ID_CHARACTERS for text in nobody):
            raise ValueError(
                f"no user_id can be empty or longer than {MAX_ID_CHARACTERS} characters, such a record is quarantined; "
                "leave the text out, or map it with nullif and may_lack"
            )
        if vague := [text for text in nobody if ANY in text and len(text.replace(ANY, "")) < _LEAST_OF_PATTERN]:
            raise ValueError(f"{vague[0]} would mean almost any user; write more than {ANY}, as in {{{{{ANY}}}}}")
        return nobody


class KafkaSettings(Section):
    """``[kafka]``: the topics that the ``deduplicate`` job reads when it is given no folder."""

    bootstrap_servers: str = Field("", description="bootstrap brokers, e.g. host1:9092,host2:9092")
    topics: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        ("events",),
        min_length=1,
        description="comma-separated topics to read: one for all event types, or one for each; with * for all that fit",
    )
    starting_offsets: str = Field(
        "earliest",
        description="where a lake without a checkpoint starts: earliest, latest, or Spark's JSON of offsets by topic",
    )
    max_offsets_per_trigger: int = Field(
        1_000_000, ge=1, description="most records in one batch of ingest; bounds memory when catching up after a pause"
    )
    wait_for_silent: Duration = Field(
        timedelta(),
        description="how long events wait in bronze for a partition that has been read to its end and lies behind "
        "them, after its last event; 0s: not at all. For producers that come back one after the other from an outage",
    )
    fail_on_data_loss: bool = Field(
        True,
        description="fail when the broker has dropped records that were not read yet, or a topic was deleted and "
        "created again; false: carry on without them, and read the new topic from its beginning",
    )
    security_protocol: SecurityProtocol = Field(
        SecurityProtocol.PLAINTEXT, description="protocol used to talk to the brokers"
    )
    sasl_mechanism: SaslMechanism = Field(
        SaslMechanism.SCRAM_SHA_512, description="how the user authenticates, with SASL_PLAINTEXT and SASL_SSL"
    )
    username: str = Field("", description="user, with SASL_PLAINTEXT and SASL_SSL")
    password: SecretStr = Field(
        SecretStr(""), description="the user's password; set it in the environment, not in a file"
    )
    ca_file: Path | None = Field(
        None,
        description="PEM file of the CA that signed the brokers' certificates; default: the machine's own CAs",
    )
    options: Annotated[tuple[tuple[str, str], ...], BeforeValidator(_pairs)] = Field(
        (),
        description="more options of Kafka's Java client, under Kafka's own names, e.g. for a client certificate, "
        "OAuth or a cloud login; as JSON in the environment",
    )


class RegistrySettings(Section):
    """``[registry]``: the schema registry, with Confluent's interface, of Avro and Protobuf records in Kafka."""

    url: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        (),
        description="comma-separated addresses of the registry's servers, tried in turn, with the path if there is "
        "one, e.g. https://registry.example.com:8081; empty: no registry",
    )
    username: str = Field("", description="user, if the registry asks for one")
    password: SecretStr = Field(
        SecretStr(""), description="the user's password; set it in the environment, not in a file"
    )
    ca_file: Path | None = Field(
        None,
        description="PEM file of the CA that signed the registry's certificate, at the same path on the machines of a "
        "cluster; default: the machine's own CAs",
    )
    timeout: Duration = Field(
        10 * _SECOND, ge=timedelta(milliseconds=100), description="how long one request may take to be answered"
    )
    patience: Duration = Field(
        10 * _MINUTE,
        description="how long a batch waits for a registry that does not answer before its job fails; nothing is lost",
    )

    @field_validator("url")
    @classmethod
    def _is_address(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", url):
                # Without the value: it may hold a password.
                raise ValueError(
                    "must be http:// or https://, a host, and a port and path if needed; a user and password are set "
                    "in ADLOOM_REGISTRY__USERNAME and ADLOOM_REGISTRY__PASSWORD"
                )
        return tuple(url.rstrip("/") for url in urls)


class DeduplicateSettings(Section):
    """``[deduplicate]``: keeping each event once."""

    mode: DeduplicateMode = Field(
        DeduplicateMode.WITHIN_WATERMARK,
        description="within_watermark: bounded state; forever: every event is remembered and the state never shrinks",
    )
    watermark: Duration = Field(
        3 * _HOUR, description="how late an event may arrive; anything later is counted as late and not kept"
    )


class AttributeSettings(Section):
    """``[attribute]``: joining clicks to impressions."""

    join: JoinType = Field(JoinType.FULL_OUTER, description="which rows to emit besides matched pairs")
    impression_watermark: Duration = Field(2 * _HOUR, description="how late an impression may arrive")
    click_watermark: Duration = Field(3 * _HOUR, description="how late a click may arrive")
    window: Duration = Field(
        _HOUR, description="a click counts up to this long after its impression, both ends included"
    )
    tolerance: Duration = Field(
        timedelta(),
        description="a click counts up to this long before its impression too, for clocks that differ and impressions "
        "that count from when they were in view; at most `window`",
    )


class SessionizeSettings(Section):
    """``[sessionize]``: grouping a user's events."""

    gap: Duration = Field(5 * _MINUTE, description="a session ends when its user is silent for longer than this")
    longest: Duration = Field(
        timedelta(),
        description="every session is cut at multiples of this since 1970, as 1d does at midnight (UTC), so that one "
        "of a user who is never silent ends; 0s: none is cut",
    )
    watermark: Duration = Field(10 * _MINUTE, description="how late an event may arrive and still join a session")
    initial_state: str = Field("", description=_INITIAL_STATE.format("the events of sessions that are open"))


class CampaignStatsSettings(Section):
    """``[campaign_stats]``: windowed counts per campaign."""

    window: Duration = Field(10 * _MINUTE, gt=timedelta(), description="window length")
    slide: Duration = Field(
        10 * _MINUTE,
        gt=timedelta(),
        description="time between window starts; if shorter than `window`, windows overlap",
    )
    watermark: Duration = Field(
        5 * _MINUTE,
        description="how late a click may arrive; a window closes this long plus attribute.window after its end",
    )
    output: StatsOutput = Field(
        StatsOutput.APPEND,
        description="append: one row per window, once final; update: rows that follow their window, merged by key",
    )
    group_by: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        (), description="comma-separated columns that a source keeps: windows are counted by them besides the campaign"
    )
    feed: Duration = Field(
        6 * _HOUR,
        description="how far back the dashboard feed _feeds/campaign_stats.json reaches; 0s: no feed",
    )


class MovingAverageSettings(Section):
    """``[moving_average]``: the mean of the last values of a key."""

    key: str = Field("campaign_id", description="column to group by; rows where it is null are left out")
    values: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        ("cost_micros",),
        min_length=1,
        description="comma-separated columns to average, each on its own; nulls are skipped",
    )
    size: int = Field(10, ge=1, description="how many values a mean is taken over")
    output: AverageOutput = Field(
        AverageOutput.FULL,
        description="full: emit once `size` values are there; every: a row for each value, with a mean of 0 until then",
    )
    timeout: Duration = Field(
        _HOUR,
        gt=timedelta(),
        description="after this long without a value, a key is emitted one last time and forgotten",
    )
    clock: Clock = Field(
        Clock.EVENT, description="clock of the timeout: event, or processing (values are then taken in arrival order)"
    )
    watermark: Duration = Field(5 * _MINUTE, description="how late a value may arrive (event clock)")
    initial_state: str = Field("", description=_INITIAL_STATE.format("the last values of each key"))


class UserStatusSettings(Section):
    """``[user_status]``: who is online."""

    idle_after: Duration = Field(
        _HOUR, gt=timedelta(), description="a user becomes inactive this long after the last event"
    )
    clock: Clock = Field(
        Clock.EVENT, description="clock of the timeout: event, or processing (events are then taken in arrival order)"
    )
    watermark: Duration = Field(10 * _MINUTE, description="how late an event may arrive (event clock)")
    initial_state: str = Field("", description=_INITIAL_STATE.format("the users who are online or active"))


class HeartbeatSettings(Section):
    """``[heartbeat]``: event time goes on while no event moves it."""

    idle_after: Duration = Field(
        _MINUTE,
        description="send a heartbeat after event time has stood still for this long, and again after each further "
        "such period; 0s: never",
    )


class JobSettings(Section):
    """``[job]``: how the long-running jobs run."""

    trigger: Trigger = Field(
        Trigger.INTERVAL,
        description="interval: a batch every trigger_interval; asap: batches back to back; available_now: process what "
        "is there now, then exit",
    )
    trigger_interval: Duration = Field(
        timedelta(seconds=10), description="time from the start of one batch to the next"
    )
    follow_interval: Duration = Field(
        timedelta(seconds=1),
        description="with trigger = interval, how often deduplicate and attribute poll for rows from upstream instead "
        "of waiting for trigger_interval; it keeps the path to gold/attributions short",
    )
    max_bytes_per_batch: int = Field(
        128 * 1024 * 1024,
        ge=1,
        description="a batch of a query that reads bronze or silver takes whole commits up to this many bytes of "
        "Parquet, and always at least one; bounds memory when catching up",
    )
    stop_timeout: Duration = Field(
        5 * _MINUTE, description="how long running batches may take to finish after SIGTERM before they are aborted"
    )
    stall_after: Duration = Field(
        10 * _MINUTE,
        ge=timedelta(minutes=1),
        description="a driver ends with the reason if for this long no task of a running batch ends; how long a batch "
        "takes does not matter",
    )
    checkpoint_retention: Duration = Field(
        7 * _DAY, description="how long `adloom checkpoints clean` keeps a checkpoint that a newer one has replaced"
    )
    log_folder: Path | None = Field(
        None,
        description="folder for Spark's own log; default: the lake's _progress folder, or the folder for temporary "
        "files if the lake is in an object store",
    )
    metrics: str = Field(
        "",
        pattern=r"^([^\s:]+:\d{1,5})?$",
        description="host:port where the job serves Prometheus metrics, e.g. 127.0.0.1:9108; empty: no metrics",
    )


class S3Settings(Section):
    """``[s3]``: the object store of a lake at ``s3a://bucket/prefix``.

    Keys come from the environment (``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``) or an AWS profile.
    """

    endpoint: str = Field(
        "",
        pattern=r"^(https?://[^\s/]+)?$",
        description="URL of the store, e.g. https://minio.example.com:9000; empty: Amazon S3",
    )
    region: str = Field("us-east-1", description="region of the store")
    path_style: bool = Field(
        True, description="put the bucket into the path, as MinIO expects, instead of the host name"
    )
    profile: str = Field("", description="AWS profile to read the keys from; empty: keys from the environment")
    ca_file: Path | None = Field(
        None, description="PEM file of the CA that signed the store's certificate; default: the machine's own CAs"
    )
    lease: Duration = Field(
        _MINUTE,
        ge=timedelta(seconds=5),
        description="lease duration: a job that fails to renew its lock on the lake within this time loses it",
    )


class TablesSettings(Section):
    """``[tables]``: maintenance of the Delta tables; `adloom maintain` applies it to existing ones."""

    target_file_bytes: int = Field(
        128 * 1024 * 1024, ge=1024 * 1024, description="target size when small files are compacted"
    )
    auto_compact: bool = Field(
        False, description="let the writer compact small files itself, after a batch that leaves 50 or more"
    )
    log_retention: Duration = Field(
        30 * _DAY,
        ge=_DAY,
        description="how long past versions of a table stay readable; a query that was down for longer needs a reset",
    )
    file_retention: Duration = Field(
        7 * _DAY,
        ge=_HOUR,
        description="how long replaced files are kept for readers that still use them, and the rows of old repairs",
    )


class DaysSettings(Section):
    """``[days]``: where days begin and end."""

    zone: str = Field(
        UTC_ZONE,
        description="the time zone of days and of the daily views, as Europe/Berlin; tables stay partitioned by UTC",
    )

    @field_validator("zone")
    @classmethod
    def _is_known(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"no time zone has the name {zone!r}; a name is like Europe/Berlin or UTC") from None
        return zone


class RepairSettings(Section):
    """The fate of events that came too late."""

    horizon: Duration = Field(
        30 * _DAY,
        description="how far behind the watermark an event may be and still correct gold; those further behind expire",
    )
    freeze_after: Duration = Field(
        35 * _DAY,
        description="rows of gold that lie further behind the watermark are final, because the bill has gone out: a "
        "change of them is recorded as frozen, and not applied",
    )


class CreditSettings(Section):
    """``[credit]``: which touches led to a conversion, and how they share its value."""

    click_lookback: Duration = Field(
        30 * _DAY,
        le=_LONGEST_LOOKBACK,
        description="how long before a conversion a click is a touch of it, both ends included",
    )
    view_lookback: Duration = Field(
        _DAY,
        le=_LONGEST_LOOKBACK,
        description="how long before a conversion an impression that was only seen is a touch of it, both ends "
        "included; at most click_lookback",
    )
    views: CreditViews = Field(
        CreditViews.FALLBACK,
        description="fallback: views are touches only of conversions that no click led to; always; never",
    )
    most_touches: int = Field(
        1_000,
        ge=1,
        le=100_000,
        description="how many clicks of a user, the last ones before a conversion, can be touches of it, and how many "
        "views: so an id that many people share cannot make a run endless",
    )
    models: Annotated[tuple[CreditModel, ...], BeforeValidator(comma_separated)] = Field(
        tuple(CreditModel), min_length=1, description="comma-separated models that credit is computed by"
    )
    half_life: Duration = Field(
        7 * _DAY,
        gt=timedelta(),
        le=_LONGEST_LOOKBACK,
        description="time_decay: a touch this much older than another one counts half as much",
    )
    conversion_lookback: Duration = Field(
        90 * _DAY,
        le=_LONGEST_LOOKBACK,
        description="how long after a conversion a refund still takes it back",
    )
    repeat_within: Duration = Field(
        2 * _DAY,
        le=_LONGEST_LOOKBACK,
        description="how long after a conversion another one of its order is a repeat, which does not count; both ends "
        "included",
    )
    same_order: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        ("conversion_type", "currency"),
        description="comma-separated columns that are equal, besides order_id, in conversions of one order: "
        "conversion_type, currency, user_id, and columns that sources keep, such as the shop",
    )

    @model_validator(mode="after")
    def _safe_together(self) -> Self:
        if self.view_lookback > self.click_lookback:
            raise ValueError(
                f"credit.view_lookback {format_duration(self.view_lookback)} exceeds credit.click_lookback "
                f"{format_duration(self.click_lookback)}: seeing an ad would count for longer than clicking it; "
                "shorten view_lookback or raise click_lookback"
            )
        if repeated := [model for model in CreditModel if self.models.count(model) > 1]:
            raise ValueError(
                f"credit.models has {repeated[0]} twice: each of its credits would count twice; name it once"
            )
        return self


class ValidationSettings(Section):
    """``[validation]``: what `adloom validate` writes to its report."""

    examples: int = Field(
        3,
        ge=0,
        le=20,
        description="how many of the records that did not fit the report shows as examples, for each source and "
        "verdict; 0: none, for instance because records hold personal data",
    )


class LineageSettings(Section):
    """``[lineage]``: OpenLineage events about what was committed and validated, by `adloom lineage`."""

    transport: LineageTransport = Field(
        LineageTransport.NONE,
        description="none; file: a line of JSON for each event; http: POST to an OpenLineage server",
    )
    url: str = Field(
        "",
        pattern=r"^(https?://\S+)?$",
        description="address that takes events, as in http://marquez:5000/api/v1/lineage",
    )
    api_key: SecretStr = Field(
        SecretStr(""), description="sent as a bearer token; set it in the environment, not in a file"
    )
    file: Path | None = Field(None, description="file that events are appended to")
    namespace: str = Field("adloom", min_length=1, description="namespace of the jobs")


class SparkSettings(Section):
    """``[spark]``: the engine."""

    master: str = Field(
        "local[*]",
        description="Spark master: local[N], spark://…, k8s://… or yarn; the driver runs where the command was started",
    )
    driver_memory: str = Field("3g", pattern=r"^[1-9]\d*[mg]$", description="driver heap, with its unit (m or g)")
    keep_java: Duration = Field(
        timedelta(),
        description="how long Java outlives the last command that used it, for the next one. Commands of one user on "
        "one machine share it if their settings of Spark, tables and the object store are equal: jobs with jobs, other "
        "commands with each other. 0s: every command starts its own",
    )
    max_cores: int = Field(
        2, ge=1, description="most cores a job takes on a cluster; without a limit the first job on spark://… takes all"
    )
    executor_memory: str = Field(
        "1g", pattern=r"^[1-9]\d*[mg]$", description="heap of each executor on a cluster, with its unit (m or g)"
    )
    shuffle_partitions: int = Field(
        0,
        ge=0,
        description="partitions of every stateful operator; a checkpoint keeps the number of its first start until it "
        f"is reset. 0: one per core of the job, from {FEWEST_PARTITIONS} to {MOST_PARTITIONS}",
    )
    state_store: StateStore = Field(
        StateStore.ROCKSDB,
        description="rocksdb: state off the heap; memory: faster, but all state must fit in the heap. Changing it "
        "needs a checkpoint reset",
    )
    join_state: JoinState = Field(
        JoinState.BY_TIME,
        description="by_time: expired rows are found at the front, so a join batch does not slow down as its state "
        "grows; by_key: Spark's own default, which every batch scans, and the only one with state_store = memory. A "
        "checkpoint keeps the format of its first start until it is reset",
    )

    @model_validator(mode="before")
    @classmethod
    def _memory_has_no_order(cls, given: Any) -> Any:
        """Where state is kept in memory, the default of ``join_state`` is the only one that there is."""
        if isinstance(given, dict) and given.get("state_store") == StateStore.MEMORY and "join_state" not in given:
            return {**given, "join_state": JoinState.BY_KEY}
        return given
