"""Printing for people: text as it is, times in UTC."""

from datetime import UTC, datetime

from rich.console import Console

_UNLIMITED = 10_000
"""More columns than any line has."""


def terminal(*, stderr: bool = False, is_uncut: bool = False) -> Console:
    """A console that prints every text as it is.

    Paths, errors and records may hold ``[x]`` or ``:x:``, which rich would take for a style or an emoji.

    Args:
        stderr: print to standard error.
        is_uncut: where there is no terminal, print lines of any length; by default they have 80 columns there.
    """
    console = Console(stderr=stderr, markup=False, emoji=False, highlight=False)
    if is_uncut and not console.is_terminal:
        console.width = _UNLIMITED
    return console


def utc(time: datetime, timespec: str = "seconds") -> str:
    """``time``, which has a zone, as in ``2026-03-01T12:00:00Z``; ``timespec`` as for :meth:`datetime.isoformat`."""
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=timespec)}Z"
