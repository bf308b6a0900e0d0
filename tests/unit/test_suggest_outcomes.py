"""Rows that say what became of an impression: the draft makes of each all the events that it is."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from spark_jobs.config.encoding import Encoding, RecordFormat
from spark_jobs.config.settings import Settings
from spark_jobs.ingest.in_python.judge import Judge
from spark_jobs.mapping.suggest import Draft, Shape, as_toml, profile_of, suggest
from tests.support.draft_scores import settings_of

_NOW = datetime(2026, 11, 1, tzinfo=UTC)
_START = 1_772_366_400
_CLICKED, _BOUGHT = {3, 10, 11, 40, 59}, {11, 59}
_Row = dict[str, Any]


def _rows(of: Callable[[int], _Row]) -> list[_Row]:
    return [
        {
            "id": 10_000 + n,
            "ts": _START + 7 * n,
            "uid": f"u{n % 9}",
            "campaign": f"c{n % 4}",
            "ad": f"a{n % 7}",
            **of(n),
        }
        for n in range(60)
    ]


def _draft(rows: list[_Row]) -> Draft:
    return suggest(profile_of(json.dumps(row).encode() for row in rows), "joined", _NOW)


def _events(rows: list[_Row]) -> list[_Row]:
    """What the draft makes of ``rows``, once it was written and read again."""
    draft = _draft(rows)
    encoded = [json.dumps(row).encode() for row in rows]
    loaded, _ = settings_of(as_toml(draft, Shape(Encoding(RecordFormat.JSON)), profile_of(encoded), []))
    assert loaded == Settings.model_validate({"source": draft.settings()})
    judged = [one for row in encoded for one in Judge(loaded).judge(row, _NOW)]
    assert {one.verdict for one in judged} == {"ok"}
    return [dict(one.event) for one in judged]


@pytest.mark.parametrize(
    "flag",
    [
        pytest.param(lambda yes: {"click": int(yes)}, id="number"),
        pytest.param(lambda yes: {"clk": str(int(yes))}, id="text"),
        pytest.param(lambda yes: {"is_clicked": yes}, id="boolean"),
        pytest.param(lambda yes: {"Clicked": "Yes" if yes else "No"}, id="words"),
        pytest.param(lambda yes: {"outcome": {"hasClick": "Y" if yes else ""}}, id="blank for no"),
        pytest.param(lambda yes: {"clicked": True} if yes else {}, id="missing for no"),
    ],
)
def test_a_row_that_was_clicked_is_an_impression_and_a_click(flag: Callable[[bool], _Row]) -> None:
    events = _events(_rows(lambda number: flag(number in _CLICKED)))
    shown = [event for event in events if event["event_type"] == "impression"]
    clicks = [event for event in events if event["event_type"] == "click"]
    assert [event["event_id"] for event in shown] == [str(10_000 + number) for number in range(60)]
    assert [event["campaign_id"] for event in shown] == [f"c{number % 4}" for number in range(60)]
    assert [event["impression_id"] for event in clicks] == [str(10_000 + number) for number in sorted(_CLICKED)]
    by_id = {event["event_id"]: event for event in shown}
    for click in clicks:
        of = by_id[click["impression_id"]]
        assert (click["event_time"], click["user_id"]) == (of["event_time"], of["user_id"])
    assert len(events) == len(shown) + len(clicks)


def test_a_click_and_a_conversion_have_their_own_times_and_worth() -> None:
    def of(number: int) -> _Row:
        clicked = {"clicked": 1, "click_time": _START + 7 * number + 2} if number in _CLICKED else {"clicked": 0}
        bought = {"converted": 1, "order_value": 9.5, "currency": "EUR"} if number in _BOUGHT else {"converted": 0}
        return {**clicked, **bought}

    events = _events(_rows(of))
    times = [event["event_time"].timestamp() for event in events if event["event_type"] == "click"]
    assert times == [_START + 7 * number + 2 for number in sorted(_CLICKED)]
    sales = [event for event in events if event["event_type"] == "conversion"]
    assert [event["event_time"].timestamp() for event in sales] == [_START + 7 * number for number in sorted(_BOUGHT)]
    assert {(one["conversion_type"], one["value_micros"], one["currency"]) for one in sales} == {
        ("conversion", 9_500_000, "EUR")
    }


def test_a_click_that_converted_stays_a_click() -> None:
    rows = _rows(lambda number: {"click_id": f"k{number}", "impression_id": f"i{number}", "conv": number in _BOUGHT})
    bare = [{name: value for name, value in row.items() if name not in ("id", "campaign", "ad")} for row in rows]
    types = [event["event_type"] for event in _events(bare)]
    assert types.count("click") == 60
    assert types.count("conversion") == len(_BOUGHT)
    assert "impression" not in types


def test_what_was_chosen_is_to_be_checked() -> None:
    first, click = _draft(_rows(lambda number: {"click": int(number in _CLICKED)})).sources
    assert (first.name, first.also, click.when) == ("joined_shown", ("joined_clicked",), "$.click = '1'")
    assert first.event_type.checks == ("is each row of the type impression?",)
    assert click.fields["event_time"].checks == (
        "the click has no time of its own, so it counts as of the time of its row",
    )


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(lambda n: {"clicks": n % 3}, id="a count"),
        pytest.param(lambda _: {"click": 1}, id="always yes"),
        pytest.param(lambda _: {"click": 0}, id="never"),
        pytest.param(lambda n: {"event": "click" if n % 2 else "impression", "click": n % 2, "imp": 1}, id="a type"),
        pytest.param(lambda n: {"click": f"k{n}"}, id="an id"),
    ],
)
def test_other_columns_are_no_outcome(of: Callable[[int], _Row]) -> None:
    assert not any(source.also for source in _draft(_rows(of)).sources)


def test_an_outcome_has_the_id_that_is_named_after_it() -> None:
    rows = _rows(lambda number: {"converted": int(number in _BOUGHT), "conversion_id": f"v{number}"})
    sales = [event for event in _events(rows) if event["event_type"] == "conversion"]
    assert [event["event_id"] for event in sales] == [f"v{number}" for number in sorted(_BOUGHT)]
    assert [check for one in _draft(rows).sources for check in one.checks] == []


def test_a_time_that_counts_from_a_start_of_its_own_is_named() -> None:
    rows = [{**row, "ts": 7 * number} for number, row in enumerate(_rows(lambda n: {"click": int(n in _CLICKED)}))]
    hint = "if $.ts counts seconds from a start of its own: timestamp_seconds($.ts + START)"
    assert [one.fields["event_time"].checks[-1] for one in _draft(rows).sources] == [hint, hint]
