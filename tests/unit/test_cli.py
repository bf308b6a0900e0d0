"""The command line, as far as it goes without Spark: help, refusals, exit codes."""

import subprocess
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.markdown import Markdown
from typer.main import get_command

from spark_jobs.cli import app
from tests.support.drivers import ADLOOM

COMMANDS = (
    *("generate", "run", "validate", "show", "demo", "settings", "check-events", "suggest-mapping"),
    *("job", "status", "stop", "drain", "preflight", "checkpoints", "report", "state"),
)


def adloom(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ADLOOM, *arguments], capture_output=True, text=True, check=False, timeout=120)


def test_the_help_names_every_command() -> None:
    done = adloom("--help")
    assert done.returncode == 0
    assert [command for command in COMMANDS if command not in done.stdout] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(command: str) -> None:
    done = adloom(command, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_nothing_in_a_help_is_taken_for_markup() -> None:
    texts = [text for command in _commands(get_command(app)) for text in _texts(command)]
    assert len(texts) > 100
    assert [text for text in texts if _shown(text) != " ".join(text.replace("`", "").split())] == []


def _commands(command: Any) -> Iterator[Any]:
    yield command
    for one in getattr(command, "commands", {}).values():
        yield from _commands(one)


def _texts(command: Any) -> Iterator[str]:
    """What is shown as text: its help, its examples and what its options say."""
    yield from filter(None, [command.help, command.epilog, *(getattr(one, "help", None) for one in command.params)])


def _shown(text: str) -> str:
    """The words of ``text`` as help shows them: as Markdown."""
    page = StringIO()
    Console(width=10_000, file=page, color_system=None).print(Markdown(text))
    return " ".join(page.getvalue().split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["run", "--source", "{tmp}/none", "--lake", "{tmp}/lake"], "is not a folder", id="no-source"),
        pytest.param(["run", "--source", "{tmp}", "--lake", "{tmp}/lake"], "has no file named", id="empty-source"),
        pytest.param(
            ["run", "--source", "{tmp}", "--lake", "hdfs://b/lake"],
            "'hdfs' is not supported; give a folder",
            id="other-scheme",
        ),
        pytest.param(
            ["run", "--source", "{tmp}", "--lake", "gs://b/lake"],
            "a lock by generation numbers, are not built in",
            id="google",
        ),
        pytest.param(
            ["run", "--source", "{tmp}", "--lake", "abfss://c@a.dfs.core.windows.net/lake"],
            "a lock by ETags, are not built in",
            id="azure",
        ),
        pytest.param(["validate", "--lake", "{tmp}/none"], "{tmp}/none", id="no-lake"),
        pytest.param(["show", "silver", "--lake", "{tmp}/none"], "{tmp}/none", id="show-no-lake"),
        pytest.param(
            ["stop", "all", "--lake", "{tmp}/none"], "no job 'all'; the jobs are deduplicate", id="stop-no-job"
        ),
        pytest.param(["stop", "--lake", "{tmp}/none"], "{tmp}/none", id="stop-no-lake"),
        pytest.param(["generate", "--out", "{tmp}", "--start", "soon"], "--start 'soon' is not a time", id="no-time"),
        pytest.param(["settings", "--config", "{tmp}/none.toml"], "cannot be read", id="no-settings-file"),
    ],
)
def test_what_cannot_be_done_is_one_message_and_exit_code_1(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = adloom(*(argument.format(tmp=tmp_path) for argument in arguments))
    assert done.returncode == 1
    assert message.format(tmp=tmp_path) in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error:")


def test_an_error_is_printed_as_it_is(tmp_path: Path) -> None:
    for name in ("[x]", "[/x]", "[bold]", ":cat:"):
        done = adloom("validate", "--lake", str(tmp_path / name))
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: no lake at {tmp_path / name}")
        assert "Traceback" not in done.stderr
