"""The metadata of a record, what is known of it besides its value, as :mod:`spark_jobs.ingest.meta` has it in Spark."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Message

EARLIEST_TIME, LATEST_TIME = datetime(2011, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""Of a record of Kafka, which is not older; and the latest that is written."""
_EARLIEST_MS, _LATEST_MS = (round(time.timestamp() * 1000) for time in (EARLIEST_TIME, LATEST_TIME))


def of_file(place: str) -> str:
    """The metadata of a record of a file, whose ``source`` begins with ``place``."""
    return json.dumps({"file": place})


def of_message(message: "Message") -> str:
    """The metadata of a record that was received from Kafka."""
    place = str(message.topic()), message.partition() or 0, message.offset() or 0
    return of_kafka(place, message.key(), message.headers() or (), message.timestamp()[1])


def of_kafka(
    place: tuple[str, int, int], key: bytes | None, headers: Sequence[tuple[str, bytes | None]], timestamp: int
) -> str:
    """The metadata of a record of Kafka.

    Args:
        place: its topic, partition and offset.
        key: its key.
        headers: its headers.
        timestamp: milliseconds since 1970.
    """
    known = dict(zip(("topic", "partition", "offset"), place, strict=True))
    known |= {"key": _text(key), "headers": {name: _text(value) for name, value in headers} or None}
    if _EARLIEST_MS <= timestamp < _LATEST_MS:
        time = datetime.fromtimestamp(timestamp // 1000, UTC)
        known["time"] = f"{time:%Y-%m-%dT%H:%M:%S}.{timestamp % 1000:03d}Z"
    return json.dumps(known)


def _text(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("iso-8859-1")
