"""The tables of a lake: names, columns with Spark SQL types, partitions. Part of the public contract."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

SUMS = ("impressions", "clicks", "cost_micros")
"""Its columns that are sums over all events: gross."""
VALID = tuple(f"valid_{name}" for name in SUMS)
"""The same sums without what is marked as invalid traffic: net. Null means equal to gross."""


@dataclass(frozen=True)
class Column:
    """A column: its name, its Spark SQL type, what it holds, and of which columns of the table before it is computed.

    Empty: of the one with the same name, if there is one.
    """

    name: str
    sql_type: str
    meaning: str
    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A Delta table of the lake.

    ``name`` is what the command line takes; ``path`` is relative to the lake's root; ``meaning`` says what a row is.
    """

    name: str
    path: str
    meaning: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    stats_columns: tuple[str, ...] = ()
    """Columns for which Delta keeps minimum and maximum per file, so that readers can skip files."""
    key: tuple[str, ...] = ()
    """Columns that identify a row; validation checks them if the table has no suite of its own."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def kept(self, names: Iterable[str]) -> list[str]:
        """Those of ``names`` that are no columns of the contract: columns that a source keeps."""
        return [name for name in names if name not in self.column_names]

    @property
    def ddl(self) -> str:
        """The columns as a Spark SQL schema string."""
        return ", ".join(f"{column.name} {column.sql_type}" for column in self.columns)


_EVENT_FIELDS = (
    Column("event_type", "STRING", "impression, click, activity or conversion; heartbeat in silver only"),
    Column("event_id", "STRING", "unique within its event type"),
    Column("event_time", "TIMESTAMP", "when the event happened, in microseconds"),
    Column("user_id", "STRING", "user the event belongs to"),
    Column("is_last", "BOOLEAN", "whether this event ends the user's session"),
    Column("campaign_id", "STRING", "impressions only"),
    Column("ad_id", "STRING", "impressions only"),
    Column("cost_micros", "BIGINT", "impressions only: cost in micro-units of currency; null if it came without one"),
    Column("impression_id", "STRING", "clicks only: event_id of the clicked impression"),
    Column("data", "STRING", "activity only: free text"),
    Column("conversion_type", "STRING", "conversions only: what the user did, such as purchase or signup"),
    Column(
        "value_micros",
        "BIGINT",
        "conversions only: what it is worth, in millionths of its currency; of one that revokes another, what is taken "
        "back",
    ),
    Column("currency", "STRING", "conversions only: ISO 4217 code; may be null if value_micros is 0"),
    Column("order_id", "STRING", "conversions only: the order it belongs to, as the shop names it; may be null"),
    Column("revokes", "STRING", "conversions only: event_id of the conversion that it takes back; null: it takes none"),
    Column("ip", "STRING", "personal data: the network address that the record gives for the user; may be null"),
    Column("user_agent", "STRING", "personal data: how the user's browser or app names itself; may be null"),
)

BRONZE_EVENTS = Table(
    "bronze",
    "bronze/events",
    "Every record as received. Append only. The quarantine (`adloom show quarantine`) is the part of bronze whose "
    "verdict is not `ok`, without the records that `adloom requeue` has judged again: each of these has a second row, "
    "with the verdict `ok` and `requeued_from`.",
    (
        Column(
            "raw",
            "STRING",
            "the record as received; bytes that are not UTF-8 are decoded as ISO-8859-1. Of a record that holds "
            "several events, the rows after its first one have null, unless they are in quarantine",
        ),
        Column(
            "source",
            "STRING",
            "origin: file and byte range, or topic, partition and offset; then the number of the event in a list, as "
            "in [2], and +NAME if that source takes a record of another one, too",
        ),
        Column(
            "ingest_time",
            "TIMESTAMP",
            "when its batch was planned, or when it was requeued; equal for a whole batch; later than that of the one "
            "before, even if the clock was set back",
        ),
        Column("verdict", "STRING", "ok, or the first rule that the record breaks"),
        *_EVENT_FIELDS,
        Column("source_name", "STRING", "the source in the settings that the record belongs to; null: none"),
        Column(
            "reason",
            "STRING",
            "why the verdict is not ok: the expression that failed, and what the record has; or what was left out of "
            "an event that is",
        ),
        Column(
            "received_time",
            "TIMESTAMP",
            "when the record was received; a later event_time is rejected. Null if the verdict is ok",
        ),
        Column(
            "requeued_from",
            "TIMESTAMP",
            "null for rows as received; in a row that `adloom requeue` added: ingest_time of the quarantined row with "
            "the same raw and source",
        ),
        Column(
            "received_meta",
            "STRING",
            "the record's metadata as JSON: its file; or topic, partition, offset, key, "
            "headers and time of Kafka. Null if the verdict is ok",
        ),
    ),
    stats_columns=("ingest_time", "event_time", "verdict", "requeued_from"),
)

SILVER_EVENTS = Table(
    "silver",
    "silver/events",
    "Each event once, plus `heartbeat` rows, which only move event time on. Append only.",
    (
        *_EVENT_FIELDS,
        Column("ingest_time", "TIMESTAMP", "when the record reached bronze"),
        Column("event_date", "DATE", "date of event_time", ("event_time",)),
    ),
    partition_by=("event_type", "event_date"),
    stats_columns=("event_time", "ingest_time"),
)

ATTRIBUTIONS = Table(
    "attributions",
    "gold/attributions",
    "One row per pair of impression and click, one per impression that nobody clicked, and one per click whose "
    "impression never came.",
    (
        Column("status", "STRING", "clicked, unclicked or orphan_click", ("event_type",)),
        Column(
            "impression_id",
            "STRING",
            "id of the impression; for orphan_click, the id that the click names",
            ("event_id", "impression_id"),
        ),
        Column("impression_time", "TIMESTAMP", "null for orphan_click", ("event_time",)),
        Column("campaign_id", "STRING", "null for orphan_click"),
        Column("ad_id", "STRING", "null for orphan_click"),
        Column("user_id", "STRING", "user of the impression; for orphan_click, of the click"),
        Column("cost_micros", "BIGINT", "null for orphan_click, and if the impression came without a cost"),
        Column("click_id", "STRING", "null for unclicked", ("event_id",)),
        Column("click_time", "TIMESTAMP", "null for unclicked", ("event_time",)),
        Column(
            "click_delay_ms",
            "BIGINT",
            "click_time - impression_time in milliseconds, rounded down; clicked only; negative for early clicks",
            ("event_time",),
        ),
        Column("event_date", "DATE", "date of impression_time; for orphan_click, of click_time"),
        Column(
            "invalid",
            "ARRAY<STRING>",
            "ids of the rules that mark its impression or its click as invalid traffic, sorted; null: none does. The "
            "live query writes null, as rows of before this column have it; `adloom marks` fills it in",
            ("event_type", "event_id", "event_time"),
        ),
        Column(
            "invalid_impression",
            "BOOLEAN",
            "true if a rule marks its impression; otherwise null, as in rows of before this column",
            ("event_type", "event_id", "event_time"),
        ),
    ),
    partition_by=("event_date",),
    stats_columns=("impression_time", "click_time"),
)

SESSIONS = Table(
    "sessions",
    "gold/sessions",
    "One row per session of a user. A session ends after an event with `is_last`, or when the user's next event comes "
    "later than the gap.",
    (
        Column(
            "session_id",
            "STRING",
            "derived from the user and the first event, so a replay gives the same id",
            ("user_id", "event_id", "event_time"),
        ),
        Column("user_id", "STRING", "user of the session"),
        Column("session_start", "TIMESTAMP", "event_time of the first event", ("event_time",)),
        Column("session_end", "TIMESTAMP", "event_time of the last event", ("event_time",)),
        Column(
            "ended_by", "STRING", "is_last, or timeout (silence longer than the session gap)", ("is_last", "event_time")
        ),
        Column("event_count", "BIGINT", "events in the session", ("event_id",)),
        Column("impression_count", "BIGINT", "impressions among them", ("event_type",)),
        Column("click_count", "BIGINT", "clicks among them", ("event_type",)),
        Column("activity_count", "BIGINT", "activity events among them", ("event_type",)),
        Column(
            "events",
            "ARRAY<STRUCT<event_time: TIMESTAMP, event_type: STRING, event_id: STRING>>",
            "the events, ordered by (event_time, event_id, event_type)",
            ("event_time", "event_type", "event_id"),
        ),
        Column("event_date", "DATE", "date of session_start"),
    ),
    partition_by=("event_date",),
    stats_columns=("session_start", "session_end"),
)

_VALID = (
    "The live query counts all; `adloom marks` takes the marked ones out. In rows of before this column null, which "
    "means all"
)

CAMPAIGN_STATS = Table(
    "campaign_stats",
    "gold/campaign_stats",
    "Counts per campaign and window of event time (`campaign_stats.window`; windows overlap if `slide` is shorter). A "
    "click counts at its own time, for the campaign of its impression. With `campaign_stats.output = append`, a row "
    "comes once, when it can no longer change; with `update`, it follows its window from the first event on.",
    (
        Column("window_start", "TIMESTAMP", "first instant of the window", ("event_time",)),
        Column("window_end", "TIMESTAMP", "first instant after the window", ("event_time",)),
        Column("campaign_id", "STRING", "campaign of the impressions, and of the impressions that were clicked"),
        Column("impressions", "BIGINT", "impressions in the window", ("event_type", "event_time")),
        Column(
            "clicks", "BIGINT", "clicks in the window, by their own time", ("event_type", "event_time", "impression_id")
        ),
        Column(
            "cost_micros",
            "BIGINT",
            "cost of the impressions that have one, in micro-units of currency; null if none of them has one, 0 if the "
            "window has no impression",
        ),
        Column(
            "ctr",
            "DOUBLE",
            "clicks / impressions; null if the window has no impression",
            ("event_type", "event_time", "impression_id"),
        ),
        Column(
            "valid_impressions",
            "BIGINT",
            f"impressions without those marked as invalid traffic. {_VALID}",
            ("event_type", "event_time"),
        ),
        Column(
            "valid_clicks",
            "BIGINT",
            f"clicks without those that are marked or whose impression is. {_VALID}",
            ("event_type", "event_time", "impression_id"),
        ),
        Column("valid_cost_micros", "BIGINT", f"cost of valid_impressions, as cost_micros. {_VALID}", ("cost_micros",)),
    ),
    stats_columns=("window_start", "window_end"),
)

MOVING_AVERAGES = Table(
    "moving_averages",
    "gold/moving_averages",
    "The mean of the last `moving_average.size` values of a key: one row per new value, and one last row when the key "
    "has been silent for longer than `moving_average.timeout`.",
    (
        Column("key", "STRING", "value of the column moving_average.key"),
        Column("measure", "STRING", "name of the averaged column, one of moving_average.values"),
        Column("window_start", "TIMESTAMP", "event_time of the first value in the mean", ("event_time",)),
        Column("window_end", "TIMESTAMP", "event_time of the last value in the mean", ("event_time",)),
        Column("value_count", "BIGINT", "number of values in the mean"),
        Column("mean", "DOUBLE", "their mean; with output = every, 0 until there are moving_average.size values"),
        Column(
            "is_last", "BOOLEAN", "whether this is the last row of the key, emitted at its timeout", ("event_time",)
        ),
    ),
    stats_columns=("window_start", "window_end"),
)

USER_STATUS = Table(
    "user_status",
    "gold/user_status",
    "One row per change of a user's status: online at the first event, active at the next, inactive "
    "`user_status.idle_after` after the last.",
    (
        Column("user_id", "STRING", "user whose status changed"),
        Column("status", "STRING", "online, active or inactive", ("event_time",)),
        Column(
            "since",
            "TIMESTAMP",
            "when the status began: time of the event, or of the last event plus user_status.idle_after",
            ("event_time",),
        ),
    ),
    stats_columns=("since",),
)

LATE_EVENTS = Table(
    "late_events",
    "silver/late_events",
    "Each event that came too late for silver, once; written by `adloom repair`. Append only. Live queries never read "
    "it, so it moves no watermark.",
    (
        *_EVENT_FIELDS,
        Column("ingest_time", "TIMESTAMP", "when the record reached bronze"),
        Column("event_date", "DATE", "date of event_time"),
        Column("cause", "STRING", "late_impression, late_click, late_activity, late_conversion, or requeue"),
        Column("is_expired", "BOOLEAN", "whether it came later than repair.horizon allows, and so corrects nothing"),
        Column("repair", "BIGINT", "number of the repair that found it"),
    ),
    stats_columns=("event_time", "ingest_time", "repair"),
    key=("event_type", "event_id"),
)

RESTATEMENTS = Table(
    "restatements",
    "gold/restatements",
    "Every change of a row of gold after it was first written; written by `adloom repair`, `adloom replay`, `adloom "
    "marks` and `adloom credit`. Append only. The tables as first written and these changes give the tables as they "
    "are, and back.",
    (
        Column(
            "repair",
            "BIGINT",
            "number of the repair, of the replay that put a window in place, or of the marking; for credit, of the one "
            "behind the change, 0 without one",
        ),
        Column("table_name", "STRING", "name of the table of gold"),
        Column("change", "STRING", "insert, update or delete"),
        Column(
            "outcome", "STRING", "applied; or frozen: the row is older than repair.freeze_after, and stays as it was"
        ),
        Column("row_key", "STRING", "the key of the row, as a JSON object"),
        Column("before", "STRING", "the row before, as a JSON object; null for insert"),
        Column("after", "STRING", "the row after, as a JSON object; null for delete"),
        Column("row_time", "TIMESTAMP", "event time that the row belongs to"),
        Column("campaign_id", "STRING", "campaign of the row; null where the table has none"),
        Column("impressions", "BIGINT", "impressions after - before; null where the table does not count them"),
        Column("clicks", "BIGINT", "clicks after - before; null where the table does not count them"),
        Column("cost_micros", "BIGINT", "cost after - before, in micro-units; null where the table does not count it"),
        Column(
            "cause",
            "STRING",
            "late_impression, late_click, late_activity, late_conversion or requeue; invalid_traffic: an event was "
            "marked, or its mark revoked; replay: nothing explains why the row was not as it should be",
        ),
        Column(
            "event_type",
            "STRING",
            "type of the event that caused it, the first received if there are several; null for replay",
        ),
        Column("event_id", "STRING", "id of that event"),
        Column(
            "received_at", "TIMESTAMP", "when that event reached bronze; for invalid_traffic, when that was decided"
        ),
        Column("decided_at", "TIMESTAMP", "when it was planned"),
    ),
    stats_columns=("repair", "row_time", "decided_at"),
)

REPAIR_TABLES = (LATE_EVENTS, RESTATEMENTS)
"""The tables that no query writes, but `adloom repair`."""

DAYS = Table(
    "days",
    "gold/days",
    "When a day is done: one row for each table of gold and each date that has events, and for each date since the "
    "first event of the last 400 days; written by `adloom days` and after each repair. A query that uses the wall "
    "clock has no days.",
    (
        Column("table_name", "STRING", "name of the table of gold"),
        Column(
            "event_date",
            "DATE",
            "date (in `zone`) of its rows: of their impression, session start, window end or change",
        ),
        Column("status", "STRING", "open, complete, audited, restated or frozen"),
        Column("complete_at", "TIMESTAMP", "when the day was found complete; null while it is open"),
        Column("watermark", "TIMESTAMP", "the watermark of the query then"),
        Column("restated", "BIGINT", "how many repairs and replays have changed rows of the day since it was complete"),
        Column("restated_at", "TIMESTAMP", "when the last of them was planned; null without one"),
        Column("changes", "BIGINT", "rows that they inserted, updated or deleted"),
        Column("impressions", "BIGINT", "by how much they changed impressions; 0 where the table does not count them"),
        Column("clicks", "BIGINT", "by how much they changed clicks; 0 where the table does not count them"),
        Column("cost_micros", "BIGINT", "by how much they changed cost, in micro-units; 0 where it is not counted"),
        Column(
            "audited_at", "TIMESTAMP", "when the last replay that agreed with the whole day was decided; null: none"
        ),
        Column("frozen_at", "TIMESTAMP", "when the day was found frozen; null: it is not"),
        Column("repair", "BIGINT", "number of the last repair that was done when the day was found complete; 0: none"),
        Column("version", "BIGINT", "version of the table of gold that the row was last changed for"),
        Column("updated_at", "TIMESTAMP", "when the row was last changed"),
        Column("zone", "STRING", "the time zone of the day (`days.zone`)"),
    ),
    key=("table_name", "event_date"),
)

_CONVERSION = (
    Column("conversion_id", "STRING", "event_id of the conversion"),
    Column("user_id", "STRING", "user of the conversion"),
    Column("conversion_time", "TIMESTAMP", "event_time of the conversion"),
    Column("conversion_type", "STRING", "what the user did, such as purchase or signup"),
)
_ORDER = (
    Column("order_id", "STRING", "the order it belongs to, as the shop names it; may be null"),
    Column("revokes", "STRING", "conversion_id of the conversion that a refund takes back; null: it is no refund"),
)

PATHS = Table(
    "paths",
    "gold/paths",
    "One row for each conversion that counts, with the touches that led to it; written by `adloom credit`. A repeat "
    "of an order has none. A refund has the touches of the conversion that it takes back.",
    (
        *_CONVERSION,
        Column(
            "value_micros",
            "BIGINT",
            "what it is worth, in millionths of its currency; of a refund what it takes back, negative or zero",
        ),
        Column("currency", "STRING", "ISO 4217 code; may be null if value_micros is 0"),
        *_ORDER,
        Column(
            "outcome",
            "STRING",
            "click_through: a click is among the touches; view_through: only views are; organic: it has none",
        ),
        Column("path_length", "BIGINT", "number of touches"),
        Column(
            "touches",
            "ARRAY<STRUCT<position: INT, kind: STRING, impression_id: STRING, click_id: STRING, campaign_id: STRING, "
            "ad_id: STRING, touch_time: TIMESTAMP>>",
            "one for each impression that led to it, in order of time, position from 1: a click, at the last one of "
            "its impression, or a view, whose click_id is null",
        ),
        Column("event_date", "DATE", "date of conversion_time"),
    ),
    partition_by=("event_date",),
    stats_columns=("conversion_time",),
    key=("conversion_id",),
)

CREDITS = Table(
    "credits",
    "gold/credits",
    "What each touch of a conversion is credited with, by each model; written by `adloom credit`. The credits of a "
    "conversion by one model add up to its value exactly.",
    (
        Column("conversion_id", "STRING", "conversion_id of the path"),
        Column("model", "STRING", "last_touch, first_touch, last_click, linear, position_based or time_decay"),
        Column("position", "INT", "position of the touch; 0: there is no touch, the conversion is organic"),
        Column("campaign_id", "STRING", "campaign of the touch; null if organic"),
        Column("ad_id", "STRING", "ad of the touch; null if organic"),
        Column("click_id", "STRING", "click of the touch; null for a view, and if organic"),
        Column("impression_id", "STRING", "impression of the touch; null if organic"),
        Column("credit_micros", "BIGINT", "its part of the conversion's value, negative for a refund; may be 0"),
        Column("weight_ppm", "BIGINT", "its part of a million, whatever the value is"),
        Column("currency", "STRING", "currency of the conversion"),
        Column("conversion_time", "TIMESTAMP", "event_time of the conversion"),
        Column("event_date", "DATE", "date of conversion_time"),
    ),
    partition_by=("event_date",),
    stats_columns=("conversion_time",),
    key=("conversion_id", "model", "position"),
)

LEFT_OUT = Table(
    "left_out",
    "gold/left_out",
    "Value of conversions that is in no path, and why: of repeats of an order, and of refunds that do not fit the "
    "conversion that they name. Gross; written by `adloom credit`.",
    (
        *_CONVERSION,
        Column(
            "reason",
            "STRING",
            "repeat: another conversion of its order counts; of a refund, no_conversion: what it takes back is not "
            "there, or too old; other_currency: that has another currency; more_than_left: less is left of it",
        ),
        Column(
            "left_out_micros",
            "BIGINT",
            "the value that is left out, in millionths of its currency; of a refund, negative or zero",
        ),
        Column("currency", "STRING", "ISO 4217 code; may be null if the value is 0"),
        *_ORDER,
        Column("counted_id", "STRING", "the conversion that counts instead, or that the refund goes to; null: none"),
        Column("campaign_id", "STRING", "campaign of the last touch of that conversion; null: it has none"),
        Column("event_date", "DATE", "date of conversion_time"),
    ),
    partition_by=("event_date",),
    stats_columns=("conversion_time",),
    key=("conversion_id", "conversion_time"),
)

NET_PATHS = replace(
    PATHS,
    name="net_paths",
    path="gold/net_paths",
    meaning="As `paths`, computed without the events that are marked as invalid traffic; written by `adloom credit` "
    "once the lake has marks. A marked conversion has no row. A marked impression and its clicks are no touches; of a "
    "marked click, the impression may still be a view.",
)
NET_CREDITS = replace(
    CREDITS,
    name="net_credits",
    path="gold/net_credits",
    meaning="What each touch of a net path is credited with, by each model: as `credits`, from `net_paths`.",
)

GROSS_CREDIT_TABLES = (PATHS, CREDITS)
NET_CREDIT_TABLES = (NET_PATHS, NET_CREDITS)
"""Those that only lakes with marks have."""
CREDIT_TABLES = (*GROSS_CREDIT_TABLES, LEFT_OUT, *NET_CREDIT_TABLES)
"""The tables that no query writes, but `adloom credit`."""

MARKS = Table(
    "marks",
    "silver/marks",
    "Which events a rule takes for invalid traffic; written by `adloom marks`. Append only: a mark that no longer "
    "holds is revoked by another row. Of the rows with the same event_type, event_id, event_time, rule_id and "
    "rule_version, the one with the newest marked_at counts; no two of them have the same.",
    (
        Column("event_type", "STRING", "type of the event"),
        Column("event_id", "STRING", "id of the event"),
        Column("event_time", "TIMESTAMP", "when the event happened"),
        Column("rule_id", "STRING", "id of the rule"),
        Column("rule_version", "STRING", "version of the rule: it follows from all that the rule says"),
        Column("class", "STRING", "givt or sivt: general or sophisticated invalid traffic"),
        Column(
            "evidence",
            "STRING",
            "what was counted or matched, as a JSON object; never an ip or a user agent. If it changes later, the row "
            "stays as it is",
        ),
        Column("marked_at", "TIMESTAMP", "when the row was decided; equal for a whole commit"),
        Column("revoked", "BOOLEAN", "whether the row takes the mark back"),
        Column("event_date", "DATE", "date of event_time", ("event_time",)),
    ),
    partition_by=("event_date",),
    stats_columns=("event_time", "marked_at"),
)
