"""The events that all contenders read, in folders from which each can read them in time order."""

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.common import make_events

EVENTS = "events"
"""JSON Lines files in time order."""
AND_LATER = "events-and-later"
"""The same plus events a year later, for contenders that emit open results only when time advances."""
DEALT = "events-dealt"
"""The same events distributed over one compressed file per core, for Flink, which reads the files of a folder, and the
blocks of a splittable file, in no particular order."""
LATER = "later"
"""The user of the later events."""
_LATER_TIME = "2026-01-01T00:00:00.000Z"


def make_inputs(events: int, out: Path, cores: int) -> int:
    """Writes the folders in ``out`` with ``events`` good events each; returns the number of records in each.

    The events use only what all contenders support: UTC times with milliseconds, and no sessions ended by an event.
    """
    raw, folder, later, dealt = (out / name for name in ("raw", EVENTS, AND_LATER, DEALT))
    records = make_events(events, raw)
    for place in (folder, later, dealt):
        place.mkdir(parents=True)
    with ExitStack() as opened:
        hands = [
            opened.enter_context(gzip.open(dealt / f"events-{hand}.jsonl.gz", "wt", compresslevel=1))
            for hand in range(cores)
        ]
        for number, file in enumerate(sorted(raw.iterdir())):
            made = folder / file.name
            lines = [json.dumps(_plain(json.loads(line)), separators=(",", ":")) + "\n" for line in file.open()]
            made.write_text("".join(lines))
            # Spark reads files in order of modification time.
            os.utime(made, (1_700_000_000 + number, 1_700_000_000 + number))
            os.link(made, later / file.name)
            for hand, writer in enumerate(hands):
                writer.writelines(lines[hand::cores])
    (later / "events-99999.jsonl").write_text("".join(json.dumps(event) + "\n" for event in _later_events()))
    shutil.rmtree(raw)
    return records


def _plain(event: dict[str, Any]) -> dict[str, Any]:
    event.pop("is_last", None)
    time = datetime.fromisoformat(event["event_time"]).astimezone(UTC)
    return event | {"event_time": time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z"}


def _later_events() -> Iterator[dict[str, Any]]:
    common = {"event_time": _LATER_TIME, "user_id": LATER}
    yield {"event_type": "impression", "event_id": LATER, "campaign_id": "c", "ad_id": "a", "cost_micros": 0, **common}
    yield {"event_type": "click", "event_id": LATER, "impression_id": LATER, **common}
    yield {"event_type": "activity", "event_id": LATER, **common}
