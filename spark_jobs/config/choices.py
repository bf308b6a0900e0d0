"""Enumerations: the values that settings and columns can take."""

from enum import StrEnum


class JoinType(StrEnum):
    """Which rows ``attribute`` emits besides matched pairs."""

    FULL_OUTER = "full_outer"
    LEFT_OUTER = "left_outer"
    RIGHT_OUTER = "right_outer"
    INNER = "inner"


class FileOrder(StrEnum):
    """In what order the events of files come that wait together."""

    EVENT_TIME = "event_time"
    """By their own times, whatever file has them: each file is in order by itself."""
    MODIFICATION_TIME = "modification_time"
    """By the modification times of the files: one that is newer than another, with older events, brings them late."""


class DeduplicateMode(StrEnum):
    """How long an event is remembered."""

    WITHIN_WATERMARK = "within_watermark"
    FOREVER = "forever"


class StateStore(StrEnum):
    """Where Spark keeps the state of open joins, sessions and seen events."""

    MEMORY = "memory"
    ROCKSDB = "rocksdb"


class JoinState(StrEnum):
    """In what order a join stores the rows that wait for their counterpart."""

    BY_KEY = "by_key"
    """Each batch scans the whole state to find expired rows."""
    BY_TIME = "by_time"
    """Expired rows are at the front."""


class StatsOutput(StrEnum):
    """When ``campaign_stats`` emits a window."""

    APPEND = "append"
    """Once, when it can no longer change."""
    UPDATE = "update"
    """With its first event, and again with each later one."""


class AverageOutput(StrEnum):
    """When ``moving_average`` emits a mean."""

    FULL = "full"
    """From the value on that completes the required number."""
    EVERY = "every"
    """With each value; the mean is 0 until the required number is complete."""


class Clock(StrEnum):
    """Which clock a timeout is measured by."""

    EVENT = "event"
    """Event time: the same input gives the same rows."""
    PROCESSING = "processing"
    """The wall clock."""


class UserStatus(StrEnum):
    """The status of a user."""

    ONLINE = "online"
    ACTIVE = "active"
    INACTIVE = "inactive"


class CreditModel(StrEnum):
    """How the touches of a conversion share its value."""

    LAST_TOUCH = "last_touch"
    FIRST_TOUCH = "first_touch"
    LAST_CLICK = "last_click"
    """The last click; of a path without one, the last touch."""
    LINEAR = "linear"
    POSITION_BASED = "position_based"
    """The first and the last touch 40 % each, those between them 20 % together."""
    TIME_DECAY = "time_decay"
    """A touch counts half as much as one that is a half-life younger."""


class CreditViews(StrEnum):
    """Whether impressions that were only seen are touches of a conversion."""

    FALLBACK = "fallback"
    """Only where no click is."""
    ALWAYS = "always"
    NEVER = "never"


class TouchKind(StrEnum):
    """The kind of a touch of a conversion."""

    CLICK = "click"
    VIEW = "view"


class PathOutcome(StrEnum):
    """The way to a conversion."""

    CLICK_THROUGH = "click_through"
    VIEW_THROUGH = "view_through"
    ORGANIC = "organic"


class LeftOut(StrEnum):
    """Why value of a conversion is left out of credit."""

    REPEAT = "repeat"
    NO_CONVERSION = "no_conversion"
    OTHER_CURRENCY = "other_currency"
    MORE_THAN_LEFT = "more_than_left"


class Trigger(StrEnum):
    """When a query of a long-running job starts its next batch."""

    INTERVAL = "interval"
    ASAP = "asap"
    AVAILABLE_NOW = "available_now"


class Role(StrEnum):
    """The rights of a user of the object store."""

    JOBS = "jobs"
    """Everything within the lake: for the jobs, and for maintenance of tables and checkpoints."""
    AIRFLOW = "airflow"
    """Read the lake; write releases, reports and the desired state of the jobs: for Airflow's tasks."""
    PAGES = "pages"
    """Read progress, reports and the logs of gold, but no row of any table; write the desired state of the jobs.

    For Airflow's pages, triggerer and DAG processor, and for the exporter.
    """
    ANALYST = "analyst"
    """Read gold; neither raw records nor events one by one, and write nothing."""


class RowFormat(StrEnum):
    """How rows of a query are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class FileFormat(StrEnum):
    """Format of exported files."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    """One object a line."""


class LineageTransport(StrEnum):
    """Where events of lineage go."""

    NONE = "none"
    FILE = "file"
    HTTP = "http"


class SecurityProtocol(StrEnum):
    """How clients connect to Kafka."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_login(self) -> bool:
        """Whether the client authenticates with a user and password."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class SaslMechanism(StrEnum):
    """How a user authenticates to Kafka."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
