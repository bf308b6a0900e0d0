"""A row of a file, or why a part of the file could not be read."""

from typing import NamedTuple

from spark_jobs.contract.events import INVALID_ENCODING

MOST_RAW_BYTES = 1024 * 1024


class FileRow(NamedTuple):
    """A row, or a part of a file that could not be read.

    Attributes:
        place: in the file: ``row=<n>``, counted from 0; of JSON, and of what could not be read, the bytes.
        text: the row as JSON; None without one, and of files of JSON.
        verdict: one of ``contracts.events.DECODE_VERDICTS``, or None.
        reason: why, for people.
        raw: of JSON, the value as it is; else the bytes that could not be decoded, at most a MiB of them; empty where
            no bytes belong to a row.
        line: of JSON, the number of the line where the value begins, counted from 1 in its block; else 0.
    """

    place: str
    text: str | None
    verdict: str | None = None
    reason: str | None = None
    raw: bytes = b""
    line: int = 0


def rest_of_file(place: str, error: Exception, line: int = 0) -> FileRow:
    """The part of a file from ``place`` on, which is damaged."""
    return FileRow(place, None, INVALID_ENCODING, f"the rest of the file cannot be read: {error}", line=line)
