"""Printing for people: text as it is, times in UTC."""

from datetime import UTC, datetime

from rich.console import Console


def terminal(*, stderr: bool = False) -> Console:
    """A console that prints every text as it is.

    Paths, errors and records may hold ``[x]`` or ``:x:``, which rich would take for a style or an emoji.
    """
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def utc(time: datetime) -> str:
    """``time``, which has a zone, to the second, as in ``2026-03-01T12:00:00Z``."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"
