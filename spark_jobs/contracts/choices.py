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


class Trigger(StrEnum):
    """When a query of a long-running job starts its next batch."""

    INTERVAL = "interval"
    ASAP = "asap"
    AVAILABLE_NOW = "available_now"


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
