"""``adloom doctor``: what is wrong with a lake and what surrounds it, and what to do."""

import json
import os
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import load_settings
from spark_jobs.lake.open import open_lake

if TYPE_CHECKING:
    from spark_jobs.operations.doctor import Finding, Severity

app = typer.Typer()


@app.command(
    epilog="Example:  adloom doctor --lake lake --config adloom.toml   Exit code 1: something is wrong.",
)
def doctor(
    location: LakeOption,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    config: ConfigOption = None,
) -> None:
    """Say what is wrong, and what to do: machine, store, topics, checkpoints, tables, jobs, ledger.

    It takes seconds and may run while jobs run. It changes nothing, but for a file of a few bytes that it writes to an
    object store and deletes, to see whether it can.
    """
    from spark_jobs.operations.doctor import Severity, Subject
    from spark_jobs.operations.doctor import examine as look_at

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
    if counts[Severity.WRONG]:
        raise typer.Exit(1)


def _print(console: Console, finding: "Finding") -> None:
    from spark_jobs.operations.doctor import Severity

    marks = {Severity.FINE: ("✓", "green"), Severity.WARNING: ("!", "yellow"), Severity.WRONG: ("✗", "bold red")}
    line = Table.grid(padding=(0, 1))
    line.add_row("", Text(*marks[finding.severity]), Text(finding.text, overflow="fold"))
    if finding.todo:
        line.add_row("", "", Text(f"→ {finding.todo}", overflow="fold"))
    console.print(line)


def _summary(counts: "Counter[Severity]") -> Text:
    from spark_jobs.operations.doctor import Severity

    if not counts[Severity.WRONG] and not counts[Severity.WARNING]:
        return Text("nothing is wrong", style="green")
    parts = [(counts[Severity.WRONG], "wrong", "bold red"), (counts[Severity.WARNING], "to do soon", "yellow")]
    return Text(", ").join(Text(f"{count} {what}", style=style) for count, what, style in parts if count)
