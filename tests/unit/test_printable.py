"""No escape sequence of a record reaches a terminal, by whichever way its text is printed."""

import json
import logging
import os
import pty
import re
import subprocess
import tomllib
from io import StringIO
from pathlib import Path

import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.terminal import PlainFormatter, terminal
from spark_jobs.printable import printable
from tests.support.drivers import ADLOOM

_HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x08\u202e\x7fé\u2029"
_SEEN = "]0;owned[2J31mé"
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Independent of the code: what may not be there."""


def _table(text: str) -> Table:
    table = Table(title=text)
    table.add_column(text)
    table.add_row(Text(text))
    table.add_row(text)
    return table


@pytest.mark.parametrize("make", [str, Text, _table, Panel], ids=["text", "styled", "table", "panel"])
def test_whatever_is_printed_steers_no_terminal(make: type) -> None:
    console, page = terminal(), StringIO()
    console.file = page
    console.print(make(f"before {_HOSTILE}\nafter"), soft_wrap=True)
    assert not _OBEYED.search(page.getvalue())
    assert _SEEN in page.getvalue().replace("\N{REPLACEMENT CHARACTER}", "")


def test_a_line_of_a_log_and_its_traceback_steer_no_terminal() -> None:
    fault = ValueError(_HOSTILE)
    record = logging.LogRecord("a", logging.ERROR, "", 1, "%s", (_HOSTILE,), (ValueError, fault, None))
    assert not _OBEYED.search(PlainFormatter().format(record))


def test_what_people_write_stays_as_it_is() -> None:
    text = "Zürich\tİstanbul 日本 \U0001f469\u200d\U0001f4bb a\u00a0b\n[x] :smile:"
    assert printable(text) == text


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """A record whose user, and one whose key, hold escape sequences; and one that is no JSON."""
    good = {"event_id": "a", "event_type": "impression", "user_id": f"u{_HOSTILE}", f"k{_HOSTILE}": _HOSTILE}
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join([json.dumps(good, ensure_ascii=False), f"no json {_HOSTILE}"]) + "\n", encoding="utf-8")
    return file


def _on_a_terminal(*words: str) -> str:
    """What ``adloom WORDS`` sends to a terminal, without the colours and cursor moves that rich makes."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "200", "NO_COLOR": "1"}
    with subprocess.Popen([*ADLOOM, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        sent = bytearray()
        while True:
            try:
                sent += os.read(ours, 65536)
            except OSError:  # the command has ended
                break
    os.close(ours)
    return sent.decode(errors="replace").replace("\r\n", "\n")


@pytest.mark.parametrize(
    "words", [["check-events"], ["check-events", "--json"], ["suggest-mapping"]], ids=["table", "json", "toml"]
)
def test_a_record_that_is_shown_steers_no_terminal(records: Path, words: list[str]) -> None:
    command, *options = words
    sent = _on_a_terminal(command, str(records), *options)
    assert not _OBEYED.search(sent), sent
    assert "owned" in sent


def test_a_draft_of_settings_keeps_each_character_of_a_key(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text("".join(json.dumps({"type\x9b\u202e": "view", "n": n}) + "\n" for n in range(9)))
    done = subprocess.run([*ADLOOM, "suggest-mapping", str(file)], capture_output=True, text=True, check=False)
    assert not _OBEYED.search(done.stdout)
    tomllib.loads(done.stdout)
