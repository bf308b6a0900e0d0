"""``adloom replay``: its options reach the replay, and rows that nothing explains are exit code 1."""

from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner

from spark_jobs.cli import app
from spark_jobs.cli import replay as console

_WINDOW = ("--from", "2026-03-01T00:00:00Z", "--to", "2026-03-02T00:00:00+00:00", "--lake", "lake")


@pytest.mark.parametrize(("is_explained", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_all_is_explained(
    is_explained: bool,  # noqa: FBT001 a parameter
    code: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = list[tuple[tuple[Any, ...], dict[str, Any]]]()

    def replay_window(*arguments: Any, **named: Any) -> bool:
        calls.append((arguments, named))
        return is_explained

    monkeypatch.setattr(console, "replay_window", replay_window)
    result = CliRunner().invoke(app, ["replay", *_WINDOW, "--tables", "sessions, attributions", "--apply"])
    assert result.exit_code == code
    begin, end = (datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2))
    assert calls == [
        ((begin, end, "lake", ("sessions", "attributions")), {"is_applied": True, "config": None}),
    ]


def test_nothing_is_put_in_place_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    applied = list[bool]()

    def replay_window(*_: Any, is_applied: bool, **__: Any) -> bool:
        applied.append(is_applied)
        return True

    monkeypatch.setattr(console, "replay_window", replay_window)
    assert CliRunner().invoke(app, ["replay", *_WINDOW]).exit_code == 0
    assert applied == [False]
