"""How right a draft is: what its mapping gives for each record, field by field, against what the record is."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from spark_jobs.config.settings import Settings
from spark_jobs.ingest.in_python.judge import Judge
from tests.support.other_formats import ANY, Event

FIELDS = (
    *("event_type", "event_id", "event_time", "user_id"),
    *("campaign_id", "ad_id", "cost_micros", "impression_id", "data"),
)
_NOW = datetime(2026, 11, 1, tzinfo=UTC)
_ENOUGH = 0.99


@dataclass
class Scores:
    """By field, what became of it.

    Attributes:
        fields: ``right``: 99 % of the records that have the field get its value, and no other record gets one;
            ``missing``:
            none gets a value; else ``wrong``.
        ok: the share of the records that fit.
    """

    fields: dict[str, str] = field(default_factory=dict)
    ok: float = 0.0

    def count(self, what: str) -> int:
        """How many fields are so."""
        return Counter(self.fields.values())[what]


def settings_of(draft: str) -> tuple[Settings, dict[str, Any]]:
    """The settings that a draft is, and by source what it says of the format."""
    sections = tomllib.loads(draft)
    formats = {
        name: {key: source[key] for key in ("format", "delimiter", "files") if key in source}
        for name, source in sections["source"].items()
    }
    return Settings.model_validate(sections), formats


def scores_of(draft: str, records: Iterable[bytes], events: Iterable[Event]) -> Scores:
    """The scores of a draft for ``records``, each of which is one of ``events``."""
    judge = Judge(settings_of(draft)[0])
    given: list[tuple[Event, Mapping[str, Any]]] = []
    fits = 0
    for record, event in zip(records, events, strict=True):
        (judged,) = judge.judge(record, _NOW)
        fits += judged.verdict == "ok"
        given.append((event, judged.event))
    found = {name: verdict for name in FIELDS if (verdict := _verdict(name, given))}
    return Scores(found, fits / len(given))


def _verdict(name: str, given: list[tuple[Event, Mapping[str, Any]]]) -> str:
    expected = [event.get(name) for event, _ in given]
    values = [event.get(name) for _, event in given]
    if all(value is None for value in expected):
        return ""
    of_type = [number for number, (event, _) in enumerate(given) if event.get(name) is not None]
    if all(values[number] is None for number in of_type):
        return "missing"
    seen = Counter((event["event_type"], value) for (event, _), value in zip(given, values, strict=True))
    right = sum(
        values[number] == expected[number]
        if expected[number] is not ANY
        else values[number] is not None and seen[given[number][0]["event_type"], values[number]] == 1
        for number in of_type
    )
    return "right" if right >= _ENOUGH * len(of_type) else "wrong"
