"""Printing for people: text as it is but for what would steer the terminal, times in UTC."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from spark_jobs.printable import printable

_UNLIMITED = 10_000
"""More columns than any line has."""


def terminal(*, stderr: bool = False, is_uncut: bool = False) -> Console:
    """A console that prints every text as it is, and of records no escape sequence: see :func:`printable`.

    Paths, errors and records may hold ``[x]`` or ``:x:``, which rich would take for a style or an emoji.

    Args:
        stderr: print to standard error.
        is_uncut: where there is no terminal, print lines of any length; by default they have 80 columns there.
    """
    console = _PlainConsole(stderr=stderr, markup=False, emoji=False, highlight=False)
    if is_uncut and not console.is_terminal:
        console.width = _UNLIMITED
    return console


class _PlainConsole(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments to show; the console's own control codes are segments without text of others."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


class PlainFormatter(logging.Formatter):
    """Of log lines: their messages and errors may quote records."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, as :func:`printable` has it."""
        return printable(super().format(record))


def utc(time: datetime, timespec: str = "seconds") -> str:
    """``time``, which has a zone, as in ``2026-03-01T12:00:00Z``; ``timespec`` as for :meth:`datetime.isoformat`."""
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=timespec)}Z"
