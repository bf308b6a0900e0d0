"""The event contract: types, limits and verdicts."""

from enum import StrEnum
from typing import Final

IMPRESSION: Final = "impression"
CLICK: Final = "click"
ACTIVITY: Final = "activity"
CONVERSION: Final = "conversion"
EVENT_TYPES: Final = (IMPRESSION, CLICK, ACTIVITY, CONVERSION)
"""In an order that only ever grows: the ledger keeps a type as its place here."""
VISIT_TYPES: Final = (IMPRESSION, CLICK, ACTIVITY)
"""The types of events that make up sessions, and a user's status. A conversion is none of them: it is often a shop that
reports it, when the user is long gone."""
HEARTBEAT: Final = "heartbeat"
"""The event type of rows that only move time forward; never accepted from outside."""

MAX_ID_CHARACTERS: Final = 128
DEFAULT_MAX_RECORD_BYTES: Final = 1024 * 1024

# The verdicts, in the order in which the rules are tried. The first one broken names the verdict.
OK: Final = "ok"
RECORD_TOO_LARGE: Final = "record_too_large"
INVALID_ENCODING: Final = "invalid_encoding"
UNKNOWN_SCHEMA: Final = "unknown_schema"
INCOMPATIBLE_SCHEMA: Final = "incompatible_schema"
INVALID_UTF8: Final = "invalid_utf8"
MALFORMED_JSON: Final = "malformed_json"
NOT_AN_OBJECT: Final = "not_an_object"
DUPLICATE_KEY: Final = "duplicate_key"
EVENT_TIME_TOO_OLD: Final = "event_time_too_old"
EVENT_TIME_IN_FUTURE: Final = "event_time_in_future"
NO_SOURCE: Final = "no_source"
UNKNOWN_FIELD: Final = "unknown_field"
INVALID_KEPT_COLUMN: Final = "invalid_kept_column"

TEXT_LIMITS: Final = {"ip": 64, "user_agent": 1024}
"""The optional fields whose text may have any content, and how many characters they have at most. A longer one does not
count, and neither does an empty one."""
CUT_FIELDS: Final = ("user_agent",)
"""Those of which the beginning counts if they are longer."""
PERSONAL_FIELDS: Final = tuple(TEXT_LIMITS)
"""The data about a person's device. It goes no further than silver."""
COMMON_FIELDS: Final = ("event_type", "event_id", "event_time", "user_id", "is_last", *TEXT_LIMITS)
TYPE_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    IMPRESSION: ("campaign_id", "ad_id", "cost_micros"),
    CLICK: ("impression_id",),
    ACTIVITY: ("data",),
    CONVERSION: ("conversion_type", "value_micros", "currency", "order_id", "revokes"),
}
"""The fields that are read for one event type besides the common ones; the others' are ignored and stay null."""

OPTIONAL_FIELDS: Final = ("is_last", *TEXT_LIMITS, "cost_micros", "data", "currency", "order_id", "revokes")
"""``currency`` only where ``value_micros`` is 0."""
ID_FIELDS: Final = (
    *("event_id", "user_id", "campaign_id", "ad_id", "impression_id"),
    *("conversion_type", "order_id", "revokes"),
)
"""The fields that are text of 1 to ``MAX_ID_CHARACTERS`` characters, or whole numbers taken as text."""
CASELESS_IDS: Final = ("event_id", "user_id", "impression_id", "revokes")
"""The ids that different programs write: an app and a server may not agree on capital or small letters in them."""
MICROS: Final = ("cost_micros", "value_micros")
"""The fields that are whole numbers: millionths of the currency unit, not negative."""
AMOUNT_LIMITS: Final = {"cost_micros": 10**12, "value_micros": 10**15}
"""Of each field in :data:`MICROS`, the largest value: what means "no price", as the largest number of a type, is
quarantined. An impression costs a million units at most, so a window of a campaign holds 9.2 million of the dearest
before its sum leaves 63 bits; a conversion is worth a billion at most."""
CURRENCY_CHARACTERS: Final = 3
CURRENCY_PATTERN: Final = f"[A-Z]{{{CURRENCY_CHARACTERS}}}"
"""A code of ISO 4217, by its form: the list of codes changes from year to year."""
OBSERVED, QUARANTINED = "adloom", "quarantined"
"""Names of the observation that adds counts to Spark's own figures, and of a count in it."""
KEY = ("event_type", "event_id")
"""The key of an event."""


def missing(field: str) -> str:
    """The verdict of a record without a required ``field`` (absent or null)."""
    return f"missing_{field}"


def invalid(field: str) -> str:
    """The verdict of a record whose ``field`` breaks its rule."""
    return f"invalid_{field}"


ATTRIBUTION_STATUSES: Final = ("clicked", "unclicked", "orphan_click")
SESSION_ENDINGS: Final = ("is_last", "timeout")
DECODE_VERDICTS: Final = (INVALID_ENCODING, UNKNOWN_SCHEMA, INCOMPATIBLE_SCHEMA)
"""Of records that are not JSON: the bytes do not fit the format or the schema, the registry has no such schema, and the
schema cannot be read as the reader's."""
VERDICTS: Final = (
    OK,
    RECORD_TOO_LARGE,
    *DECODE_VERDICTS,
    INVALID_UTF8,
    MALFORMED_JSON,
    NOT_AN_OBJECT,
    DUPLICATE_KEY,
    NO_SOURCE,
    UNKNOWN_FIELD,
    missing("event_type"),
    invalid("event_type"),
    missing("event_id"),
    invalid("event_id"),
    missing("event_time"),
    invalid("event_time"),
    EVENT_TIME_TOO_OLD,
    EVENT_TIME_IN_FUTURE,
    missing("user_id"),
    invalid("user_id"),
    invalid("is_last"),
    invalid("ip"),
    invalid("user_agent"),
    missing("campaign_id"),
    invalid("campaign_id"),
    missing("ad_id"),
    invalid("ad_id"),
    invalid("cost_micros"),
    missing("impression_id"),
    invalid("impression_id"),
    invalid("data"),
    missing("conversion_type"),
    invalid("conversion_type"),
    missing("value_micros"),
    invalid("value_micros"),
    missing("currency"),
    invalid("currency"),
    invalid("order_id"),
    invalid("revokes"),
    INVALID_KEPT_COLUMN,
)
"""Every verdict there is."""
LEFT_OUT: Final = "left out: "
"""Begins the reason of an event that is good without something that its record gives."""
NOT_UTF8_EITHER: Final = "it is not UTF-8 either"
"""The reason of a record that is too large, if its bytes are not UTF-8; which distinguishes `raw` from text."""
MAPPED_VERDICTS: Final = (NO_SOURCE, UNKNOWN_FIELD, INVALID_KEPT_COLUMN)
"""Those that only records of mapped sources get."""


class UnknownFields(StrEnum):
    """The treatment of a record with a field at its root that the mapping does not read."""

    KEEP = "keep"
    """It stays in ``raw``, and is ignored otherwise."""
    QUARANTINE = "quarantine"
