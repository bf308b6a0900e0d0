"""The content of the page: the counts by table and cause, what they are worth, and the first rows that differ."""

import json
from dataclasses import dataclass

from expectations import charts
from expectations.restated.page import RestatedPart
from expectations.templates import load_template
from spark_jobs.lake.layout import Lake
from spark_jobs.restatements.replay import Replayed
from spark_jobs.restatements.replay_report import Differing

_TIME = "%-d %B %Y, %H:%M:%S"


@dataclass(frozen=True)
class Shown:
    """A row that differs, as shown: what is wrong with it, its key, and the row as it is and as it should be."""

    is_late: bool
    what: str
    key: str
    before: str
    after: str


def render(lake: Lake, found: Replayed) -> str:
    """The page of the replay ``found`` of ``lake``."""
    report = found.report
    return load_template("replay.html.j2").render(
        lake=lake,
        report=report,
        begin=report.begin.strftime(_TIME),
        end=report.end.strftime(_TIME),
        late=sum(part.late for part in report.tables.values()),
        still_open=sum(part.open for part in report.tables.values()),
        rows={name: [_shown(row) for row in rows] for name, rows in found.first.items() if rows},
        name=charts.printable,
        signed=RestatedPart.signed,
        money=RestatedPart.money,
    )


def _shown(row: Differing) -> Shown:
    key = charts.printable(", ".join(f"{name} = {value}" for name, value in json.loads(row.row_key).items()))
    return Shown(row.is_late, row.outcome_word, key, _text(row.before, row.columns), _text(row.after, row.columns))


def _text(text: str | None, columns: list[str]) -> str:
    if text is None:
        return ""
    row = json.loads(text)
    chosen = columns or [name for name in row if name != "events"]
    return charts.printable(", ".join(f"{name} = {row.get(name)}" for name in chosen))
