"""docs/events.md: each recipe does what it says."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.formats.decoding import Decoded
from spark_jobs.ingest.in_python.judge import Judge
from tests.support.recipes import BLOCK, PAGE, Recipe, plain, recipes

_NOW = datetime(2026, 8, 1, tzinfo=UTC)


def _events(settings: Settings, records: Iterable[bytes | Decoded]) -> list[dict[str, Any]]:
    judge, events = Judge(settings), []
    for line in records:
        found = judge.judge(line, _NOW)
        assert found, line
        for judged in found:
            assert judged.verdict == "ok", judged
            events.append(plain({**judged.event, **judged.kept}))
    return events


@pytest.mark.parametrize("recipe", list(recipes()), ids=lambda recipe: recipe.name)
def test_a_recipe_gives_the_events_shown(recipe: Recipe) -> None:
    assert _events(recipe.settings, recipe.records) == list(recipe.events)


def test_the_native_examples_are_events() -> None:
    ((_, text),) = BLOCK.findall(PAGE.partition("| field")[0])
    events = _events(Settings(), (line.encode() for line in text.splitlines()))
    assert [event["event_type"] for event in events] == ["impression", "click", "activity", "conversion"]
