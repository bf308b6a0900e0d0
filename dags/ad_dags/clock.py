"""The wall clock. Code whose decisions depend on time takes the time, or a clock, as an argument."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)
