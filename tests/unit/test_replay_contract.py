"""Windows of replays, and what their reports say."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from spark_jobs.config.durations import Window
from spark_jobs.errors import SettingsError
from spark_jobs.restatements.replay_model import Replay, ReplayedTable, page_key, replay_key

_DAY = datetime(2025, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("begin", "end", "message"),
    [
        (_DAY, _DAY, "must end later"),
        (_DAY, _DAY - timedelta(hours=1), "must end later"),
        (_DAY.replace(tzinfo=None), _DAY, "no zone"),
        (_DAY, datetime(2025, 1, 7), "no zone"),  # noqa: DTZ001 that is the mistake
    ],
)
def test_an_invalid_window_is_refused(begin: datetime, end: datetime, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Window(begin, end)


def test_a_window_has_one_name_in_any_zone() -> None:
    east = timezone(timedelta(hours=2))
    window = Window(_DAY, _DAY + timedelta(days=1))
    assert Window(window.begin.astimezone(east), window.end.astimezone(east)).name == window.name


def test_a_report_of_some_tables_does_not_replace_that_of_all() -> None:
    window = Window(_DAY, _DAY + timedelta(days=1))
    assert replay_key(window) != replay_key(window, ("sessions",))
    assert page_key(window, ("sessions",)) == replay_key(window, ("sessions",)).replace(".json", ".html")


@pytest.mark.parametrize("kind", ["late", "open", "unknown"])
def test_a_window_is_audited_if_every_row_is_the_same(kind: str) -> None:
    clean = ReplayedTable(version=3, watermark_ms=0, same=7, late=0, open=0, unknown=0)
    report = Replay(begin=_DAY, end=_DAY + timedelta(days=1), decided_at=_DAY, tables={"sessions": clean})
    assert report.audited
    assert Replay.model_validate_json(report.model_dump_json()) == report
    other = clean.model_copy(update={kind: 1})
    assert not report.model_copy(update={"tables": {"sessions": clean, "attributions": other}}).audited
