"""``adloom doctor``: what is wrong with a lake and what surrounds it, and what to do."""

import json
import os
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.console.terminal import terminal
from spark_jobs.contracts.settings import load_settings
from spark_jobs.doctor import Finding, Severity, Subject
from spark_jobs.doctor import examine as look_at
from spark_jobs.runtime.lakes import open_lake

_MARKS = {Severity.FINE: ("✓", "green"), Severity.WARNING: ("!", "yellow"), Severity.WRONG: ("✗", "bold red")}


def examine(location: str, *, as_json: bool, config: Path | None) -> bool:
    """Prints what each check finds; returns whether nothing is wrong.

    Args:
        location: of the lake.
        as_json: print one JSON array instead: ``check``, ``severity``, ``text``, ``todo`` of each finding.
        config: the file of settings.

    Raises:
        SettingsError: the settings are wrong, so that nothing else can be looked at.
    """
    settings = load_settings(config, os.environ)
    subject = Subject(open_lake(location, settings.s3), settings, datetime.now(UTC))
    console, counts = terminal(), Counter[Severity]()
    found: list[dict[str, str]] = []
    for check, findings in look_at(subject):
        counts.update(finding.severity for finding in findings)
        found.extend({"check": check.name, **asdict(finding)} for finding in findings)
        if not as_json:
            console.print(Text(check.name, style="bold"))
            for finding in findings:
                _print(console, finding)
    if as_json:
        console.out(json.dumps(found), highlight=False)
    else:
        console.print(_summary(counts))
    return not counts[Severity.WRONG]


def _print(console: Console, finding: Finding) -> None:
    line = Table.grid(padding=(0, 1))
    line.add_row("", Text(*_MARKS[finding.severity]), Text(finding.text, overflow="fold"))
    if finding.todo:
        line.add_row("", "", Text(f"→ {finding.todo}", overflow="fold"))
    console.print(line)


def _summary(counts: Counter[Severity]) -> Text:
    if not counts[Severity.WRONG] and not counts[Severity.WARNING]:
        return Text("nothing is wrong", style="green")
    parts = [(counts[Severity.WRONG], "wrong", "bold red"), (counts[Severity.WARNING], "to do soon", "yellow")]
    return Text(", ").join(Text(f"{count} {what}", style=style) for count, what, style in parts if count)
