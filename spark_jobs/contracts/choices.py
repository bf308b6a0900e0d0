"""The choices that settings offer."""

from enum import StrEnum


class JoinType(StrEnum):
    """Which rows ``attribute`` puts out beside matched pairs."""

    FULL_OUTER = "full_outer"
    LEFT_OUTER = "left_outer"
    RIGHT_OUTER = "right_outer"
    INNER = "inner"


class DeduplicateMode(StrEnum):
    """How long an event is remembered."""

    WITHIN_WATERMARK = "within_watermark"
    FOREVER = "forever"


class StateStore(StrEnum):
    """Where Spark keeps the state of open joins, sessions and seen events."""

    MEMORY = "memory"
    ROCKSDB = "rocksdb"


class JoinState(StrEnum):
    """In what order a join keeps what waits for its counterpart."""

    BY_KEY = "by_key"
    """To find what is due, each batch looks through all of it."""
    BY_TIME = "by_time"
    """What is due lies at the front."""


class StatsOutput(StrEnum):
    """When ``campaign_stats`` puts out a window."""

    APPEND = "append"
    """Once, when nothing can change it any more."""
    UPDATE = "update"
    """As soon as it has an event, and again whenever one comes."""


class AverageOutput(StrEnum):
    """When ``moving_average`` puts out a mean."""

    FULL = "full"
    """From the reading on that makes the number full."""
    EVERY = "every"
    """With each reading; the mean is 0 until the number is full."""


class Clock(StrEnum):
    """Which time a silence is measured in."""

    EVENT = "event"
    """That of the events: the same input gives the same rows."""
    PROCESSING = "processing"
    """That on the wall."""


class UserStatus(StrEnum):
    """What ``user_status`` says of a user."""

    ONLINE = "online"
    ACTIVE = "active"
    INACTIVE = "inactive"


class Trigger(StrEnum):
    """When a query of a long-running job starts its next batch."""

    INTERVAL = "interval"
    ASAP = "asap"
    AVAILABLE_NOW = "available_now"


class Role(StrEnum):
    """What a user of the object store is for."""

    JOBS = "jobs"
    """May do everything within the lake: for the jobs, and for what cares for tables and checkpoints."""
    AIRFLOW = "airflow"
    """May read the lake, and write releases, reports and what is wanted of the jobs."""


class SecurityProtocol(StrEnum):
    """How Kafka is spoken to."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_login(self) -> bool:
        """Whether a user logs in."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class SaslMechanism(StrEnum):
    """How a user proves to Kafka who it is."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
