"""The replays that were made last, for the page Data quality: what each found, and where its page is."""

from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from expectations.timelines import TIME
from spark_jobs.lake.layout import Lake
from spark_jobs.restatements.replay_model import REPLAYS, Replay

SHOWN = 10


@dataclass(frozen=True)
class LatestReplay:
    """A replay as shown; ``page`` is the key of its page in the lake."""

    report: Replay
    page: str

    @property
    def counts(self) -> dict[str, int]:
        """The rows of its tables, by kind."""
        tables = self.report.tables.values()
        return {kind: sum(getattr(table, kind) for table in tables) for kind in ("same", "late", "open", "unknown")}

    @property
    def window(self) -> str:
        """The window, for people; a whole day (UTC) by its date."""
        begin, end = self.report.begin, self.report.end
        if (end - begin).days == 1 and begin.time() == end.time() == datetime.min.time():
            return f"{begin:%-d %B %Y}"
        return f"{begin:{TIME}} to {end:{TIME}}"

    @property
    def made_at(self) -> str:
        """When it was made."""
        return f"{self.report.decided_at:{TIME}}"

    @property
    def state(self) -> str:
        """``applied`` if what differed was put in place, else ``unknown``, ``differs`` or ``agrees``."""
        if self.report.number is not None:
            return "applied"
        if self.report.unknown:
            return "unknown"
        return "agrees" if self.report.audited else "differs"


def latest_replays(lake: Lake, most: int = SHOWN) -> list[LatestReplay]:
    """The replays of ``lake`` that were made last, newest first; a report that cannot be read is left out.

    Reports of all windows are listed, but only the newest are read: there may be one for each day of years.
    """
    files = sorted(lake.files.walk(REPLAYS), key=lambda file: file.modified_at, reverse=True)
    newest = [file.key for file in files if file.key.endswith(".json")][:most]
    found = []
    for key in newest:
        try:
            report = Replay.model_validate_json(lake.files.read(key) or b"")
        except ValidationError:
            continue
        found.append(LatestReplay(report, f"{key.removesuffix('.json')}.html"))
    return sorted(found, key=lambda one: one.report.decided_at, reverse=True)
