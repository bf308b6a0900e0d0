"""A row of a file, or why a part of the file could not be read."""

from typing import NamedTuple

MOST_RAW_BYTES = 1024 * 1024


class FileRow(NamedTuple):
    """A row, or a part of a file that could not be read.

    Attributes:
        place: in the file: ``row=<n>``, counted from 0; of what could not be read, the rows or bytes.
        text: the row as JSON; None without one.
        verdict: one of ``contracts.events.DECODE_VERDICTS``, or None.
        reason: why, for people.
        raw: the bytes that could not be decoded, at most a MiB of them; empty where no bytes belong to a row.
    """

    place: str
    text: str | None
    verdict: str | None = None
    reason: str | None = None
    raw: bytes = b""
