"""Which replays agreed: read from their reports."""

import re
from collections.abc import Collection
from datetime import UTC, datetime

from pydantic import ValidationError

from spark_jobs.contracts.days import Day, DayStatus
from spark_jobs.contracts.replay import REPLAYS, Replay
from spark_jobs.lake.layout import Lake
from spark_jobs.rules.days import Audit

_NAME = re.compile(r"(\d{8}T\d{6}\.\d{6}Z)_(\d{8}T\d{6}\.\d{6}Z)(_[a-z_]+)?\.json")
_TIME = "%Y%m%dT%H%M%S.%fZ"


def read_audits(lake: Lake, days: Collection[Day]) -> list[Audit]:
    """The replays in ``lake`` that agreed with a table, as far as they can make one of ``days`` audited.

    A window's report is replaced when the window is replayed again, so what was read before may be another one now.
    A report that is damaged, or of another version, says nothing.
    """
    wanted = [day for day in days if day.status in (DayStatus.COMPLETE, DayStatus.RESTATED)]
    if not wanted:
        return []
    found = []
    for name in lake.files.names(REPLAYS):
        window = _NAME.fullmatch(name)
        if window is None:
            continue
        begin, end = (datetime.strptime(text, _TIME).replace(tzinfo=UTC) for text in window.groups()[:2])
        if any(begin <= day.start and day.end <= end for day in wanted):
            found += _agreed(lake.files.read(f"{REPLAYS}/{name}") or b"")
    return found


def _agreed(text: bytes) -> list[Audit]:
    try:
        report = Replay.model_validate_json(text)
    except ValidationError:
        return []
    agreed = (name for name, one in report.tables.items() if one.audited)
    return [Audit(name, report.begin, report.end, report.decided_at) for name in agreed]
