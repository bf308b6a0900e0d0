"""The tables of a lake: names, columns with Spark SQL types, partitions. Part of the public contract."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column: its name, its Spark SQL type, and what it holds."""

    name: str
    sql_type: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """A Delta table of the lake.

    ``name`` is what the command line takes; ``path`` is relative to the lake's root.
    """

    name: str
    path: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    stats_columns: tuple[str, ...] = ()
    """The columns whose bounds Delta keeps for each file, so that readers can skip files."""
    key: tuple[str, ...] = ()
    """The columns that identify a row; validation checks them where the table has no suite of its own."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def ddl(self) -> str:
        """The columns as a Spark SQL schema string."""
        return ", ".join(f"{column.name} {column.sql_type}" for column in self.columns)


_EVENT_FIELDS = (
    Column("event_type", "STRING", "impression, click or activity; heartbeat in silver only"),
    Column("event_id", "STRING", "unique within its event type"),
    Column("event_time", "TIMESTAMP", "when it happened, UTC, microseconds"),
    Column("user_id", "STRING", "whose event it is"),
    Column("is_last", "BOOLEAN", "this event ends the user's session"),
    Column("campaign_id", "STRING", "impressions only"),
    Column("ad_id", "STRING", "impressions only"),
    Column("cost_micros", "BIGINT", "impressions only: cost in micro-units of currency"),
    Column("impression_id", "STRING", "clicks only: event_id of the impression that was clicked"),
    Column("data", "STRING", "activity only: free text"),
)

BRONZE_EVENTS = Table(
    "bronze",
    "bronze/events",
    (
        Column("raw", "STRING", "the record as received; bytes that are not UTF-8 are held as ISO-8859-1"),
        Column("source", "STRING", "where it was read from: file and byte range, or topic, partition and offset"),
        Column("ingest_time", "TIMESTAMP", "when its batch was planned; the same for all rows of a batch"),
        Column("verdict", "STRING", "ok, or the first rule the record breaks"),
        *_EVENT_FIELDS,
    ),
    stats_columns=("ingest_time", "event_time"),
)

SILVER_EVENTS = Table(
    "silver",
    "silver/events",
    (
        *_EVENT_FIELDS,
        Column("ingest_time", "TIMESTAMP", "when the record reached bronze"),
        Column("event_date", "DATE", "date of event_time, UTC"),
    ),
    partition_by=("event_type", "event_date"),
    stats_columns=("event_time", "ingest_time"),
)

ATTRIBUTIONS = Table(
    "attributions",
    "gold/attributions",
    (
        Column("status", "STRING", "clicked, unclicked or orphan_click"),
        Column("impression_id", "STRING", "the impression; for orphan_click what the click named"),
        Column("impression_time", "TIMESTAMP", "null for orphan_click"),
        Column("campaign_id", "STRING", "null for orphan_click"),
        Column("ad_id", "STRING", "null for orphan_click"),
        Column("user_id", "STRING", "the impression's user; for orphan_click the click's"),
        Column("cost_micros", "BIGINT", "null for orphan_click"),
        Column("click_id", "STRING", "null for unclicked"),
        Column("click_time", "TIMESTAMP", "null for unclicked"),
        Column("click_delay_ms", "BIGINT", "click_time - impression_time in milliseconds, rounded down; clicked only"),
        Column("event_date", "DATE", "date of impression_time; for orphan_click of click_time"),
    ),
    partition_by=("event_date",),
    stats_columns=("impression_time", "click_time"),
)

SESSIONS = Table(
    "sessions",
    "gold/sessions",
    (
        Column("session_id", "STRING", "from the user and the first event, so a replay gives the same"),
        Column("user_id", "STRING", "whose session it is"),
        Column("session_start", "TIMESTAMP", "event_time of the first event"),
        Column("session_end", "TIMESTAMP", "event_time of the last event"),
        Column("ended_by", "STRING", "is_last, or timeout: silence longer than the session gap"),
        Column("event_count", "BIGINT", "events in the session"),
        Column("impression_count", "BIGINT", "impressions among them"),
        Column("click_count", "BIGINT", "clicks among them"),
        Column("activity_count", "BIGINT", "activity events among them"),
        Column(
            "events",
            "ARRAY<STRUCT<event_time: TIMESTAMP, event_type: STRING, event_id: STRING>>",
            "in order of (event_time, event_id, event_type)",
        ),
        Column("event_date", "DATE", "date of session_start"),
    ),
    partition_by=("event_date",),
    stats_columns=("session_start", "session_end"),
)

CAMPAIGN_STATS = Table(
    "campaign_stats",
    "gold/campaign_stats",
    (
        Column("window_start", "TIMESTAMP", "the window's first instant"),
        Column("window_end", "TIMESTAMP", "the first instant after the window"),
        Column("campaign_id", "STRING", "of the impressions, and of those that were clicked"),
        Column("impressions", "BIGINT", "impressions in the window"),
        Column("clicks", "BIGINT", "clicks in the window, each counted at its own time"),
        Column("cost_micros", "BIGINT", "cost of the impressions in micro-units of currency"),
        Column("ctr", "DOUBLE", "clicks / impressions; null where the window has no impression"),
    ),
    stats_columns=("window_start", "window_end"),
)

MOVING_AVERAGES = Table(
    "moving_averages",
    "gold/moving_averages",
    (
        Column("key", "STRING", "whose values: moving_average.key"),
        Column("measure", "STRING", "which values: a column of moving_average.values"),
        Column("window_start", "TIMESTAMP", "event_time of the first value in the mean"),
        Column("window_end", "TIMESTAMP", "event_time of the last one"),
        Column("value_count", "BIGINT", "how many values"),
        Column("mean", "DOUBLE", "their mean; 0 where fewer than moving_average.size were waited for"),
        Column("is_last", "BOOLEAN", "put out once more at the timeout, before the key is forgotten"),
    ),
    stats_columns=("window_start", "window_end"),
)

USER_STATUS = Table(
    "user_status",
    "gold/user_status",
    (
        Column("user_id", "STRING", "whose status"),
        Column("status", "STRING", "online, active or inactive"),
        Column("since", "TIMESTAMP", "when it began: time of an event, or the last one's and user_status.idle_after"),
    ),
    stats_columns=("since",),
)
