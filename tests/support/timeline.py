"""Golden cases, written as a timeline with the expected rows beside it.

A line of a timeline is one record, in order of arrival; ``---`` begins the next file, which is the next batch:

    12:00:00          imp  i1 u1 c1 cost=250      impression i1 of user u1, campaign c1
    12:00:00.000001   clk  k1 u1 ->i1 last        click k1 on i1; it ends the session
    12:05:00          act  a1 u1                  activity
    12:20:00          cnv  p1 u1 purchase 5 EUR order=o1   conversion worth 5 micros; also revokes=p0
    2099-01-01T00:00:00  act  a2 u1               a time on another day than the cases' own
    raw {"event_type"                             a record as it stands

What follows ``#`` is a remark. Every id and user is put under a prefix of its case, so that cases share a run.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import ACTIVITY, CLICK, CONVERSION, IMPRESSION
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS
from tests.support.oracle import Row, compared_columns
from tests.support.source_files import write_files

DAY = "2024-05-01"
_TYPES = {"imp": IMPRESSION, "clk": CLICK, "act": ACTIVITY, "cnv": CONVERSION}
_NAMING = {"order": "order_id", "revokes": "revokes"}
_VERBS = {event_type: verb for verb, event_type in _TYPES.items()}


@dataclass(frozen=True)
class Run:
    """A run of the pipeline that several cases share. Every file is a batch of its own."""

    name: str
    settings: Settings
    drain: bool = True
    measure: bool = False


@dataclass(frozen=True)
class Case:
    """A timeline and what it must lead to. An expectation that is None is not looked at.

    ``attributions``: lines ``clicked i1 k1 delay=<ms>``, ``unclicked i1``, ``orphan_click i1 k1``.
    ``sessions``: lines ``u1 timeout i1 k1`` (user, ended_by, events in order); an id that two types share is written
    ``imp/x``. ``kept``: the events of silver. ``quarantined``: the verdicts of bad records. ``late``: records dropped.
    """

    title: str
    timeline: str
    run: Run
    attributions: str | None = None
    sessions: str | None = None
    kept: str | None = None
    quarantined: str | None = None
    late: int = 0

    @property
    def slug(self) -> str:
        """The title as one word."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    @property
    def prefix(self) -> str:
        """What every id of the case begins with."""
        return f"{self.slug}/"

    def files(self) -> list[list[bytes]]:
        """The records of each file."""
        files: list[list[bytes]] = [[]]
        for line in self.timeline.splitlines():
            text = line.partition(" #")[0].strip()
            if text == "---":
                files.append([])
            elif text:
                files[-1].append(self._record(text).encode())
        return files

    def _record(self, line: str) -> str:
        if line.startswith("raw "):
            return line.removeprefix("raw ")
        time, verb, event_id, user_id, *rest = line.split()
        event: dict[str, Any] = {
            "event_type": _TYPES[verb],
            "event_id": self.prefix + event_id,
            "event_time": f"{time if 'T' in time else f'{DAY}T{time}'}Z",
            "user_id": self.prefix + user_id,
        }
        if verb == "imp":
            event |= {"campaign_id": rest.pop(0), "ad_id": "ad1"}
        elif verb == "clk":
            event["impression_id"] = self.prefix + rest.pop(0).removeprefix("->")
        elif verb == "cnv":
            event |= {"conversion_type": rest.pop(0), "value_micros": int(rest.pop(0)), "currency": rest.pop(0)}
        for word in rest:
            name, _, value = word.partition("=")
            if name == "last":
                event["is_last"] = True
            elif name == "cost":
                event["cost_micros"] = int(value)
            elif name in _NAMING:
                event[_NAMING[name]] = self.prefix + value
            else:
                raise ValueError(f"{self.title}: {word!r} in {line!r} is no part of the notation; see the module")
        return json.dumps(event)


def write_case(case: Case, source: Path) -> Path:
    """Write the files of ``case`` alone to the new folder ``source``."""
    return write_files(source, case.files())


def merge_cases(cases: Sequence[Case], source: Path) -> Path:
    """Write the files of all ``cases`` to the new folder ``source``: their first files as one, their second ones, …"""
    return write_files(
        source,
        [
            [record for records in parts for record in records]
            for parts in zip_longest(*(case.files() for case in cases), fillvalue=())
        ],
    )


def due(case: Case) -> dict[str, list[str]]:
    """What ``case`` expects, as sorted lines by the name of the expectation."""
    lines = {"attributions": case.attributions, "sessions": case.sessions}
    words = {"kept": case.kept, "quarantined": case.quarantined}
    tables = {name: text.strip().splitlines() for name, text in lines.items() if text is not None}
    tables |= {name: text.split() for name, text in words.items() if text is not None}
    return {name: sorted(" ".join(line.split()) for line in text) for name, text in tables.items()}


def found(case: Case, tables: Mapping[str, Iterable[Row]]) -> dict[str, list[str]]:
    """What ``tables`` (name → rows of the compared columns) hold of ``case``, in the notation of its expectations."""
    records = {record.decode() for file in case.files() for record in file}
    named = {name: [dict(zip(columns, row, strict=True)) for row in tables[name]] for name, columns in _COLUMNS.items()}
    own = {name: [row for row in rows if _is_of(case, row)] for name, rows in named.items()}
    verdicts = [row["verdict"] for row in named["bronze"] if row["raw"] in records and row["verdict"] != "ok"]
    shown = {
        "attributions": [_attribution(case, row) for row in own["attributions"]],
        "sessions": [_session(case, row) for row in own["sessions"]],
        "kept": [_event(case, row["event_type"], row["event_id"]) for row in own["silver"]],
        "quarantined": verdicts,
    }
    return {name: sorted(lines) for name, lines in shown.items() if getattr(case, name) is not None}


_COLUMNS = {table.name: compared_columns(table) for table in (BRONZE_EVENTS, SILVER_EVENTS, ATTRIBUTIONS, SESSIONS)}


def _is_of(case: Case, row: Mapping[str, Any]) -> bool:
    return (row["user_id"] or "").startswith(case.prefix)


def _attribution(case: Case, row: Mapping[str, Any]) -> str:
    words = [row["status"], *(row[name] and _bare(case, row[name]) for name in ("impression_id", "click_id"))]
    words += [] if row["click_delay_ms"] is None else [f"delay={row['click_delay_ms']}"]
    return " ".join(word for word in words if word is not None)


def _session(case: Case, row: Mapping[str, Any]) -> str:
    events = [_event(case, event_type, event_id) for _, event_type, event_id in row["events"]]
    return " ".join([_bare(case, row["user_id"]), row["ended_by"], *events])


def _event(case: Case, event_type: str, event_id: str) -> str:
    """The event's bare id, with its type in front if the timeline uses the id for several types."""
    bare = _bare(case, event_id)
    verbs = set(re.findall(rf"^\s*\S+\s+(imp|clk|act|cnv)\s+{re.escape(bare)}\s", case.timeline, re.MULTILINE))
    return bare if verbs == {_VERBS[event_type]} else f"{_VERBS[event_type]}/{bare}"


def _bare(case: Case, prefixed: str) -> str:
    return prefixed.removeprefix(case.prefix)
