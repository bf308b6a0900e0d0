"""``adloom repair``: what was late, and what it changed in gold."""

import os
from contextlib import suppress
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import LakeInUseError
from spark_jobs.lake.open import open_existing
from spark_jobs.restatements.plan import RepairPlan

app = typer.Typer()


@app.command(
    epilog="Examples:  adloom repair --lake lake --config adloom.toml --dry-run   |   "
    "adloom repair --lake lake --config adloom.toml",
)
def repair(
    location: LakeOption,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be changed, and change no table.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Correct gold to what it would be if no event had been late.

    The live queries leave out what lies behind their watermark. A repair finds these events, recomputes the rows that
    they touch, and changes these rows, each once. Jobs may keep running: nothing live reads a late event, and rows
    that the live queries may still change are left for a later repair. Every change is recorded in gold/restatements,
    with the row before and after and the event that caused it. A repair that was killed is completed by the next one.
    """
    from spark_jobs.days.update import update_days_with
    from spark_jobs.restatements.repair import repair as bring_in

    console, settings = terminal(is_uncut=True), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as opened, console.status("opening the lake …") as status:

        def show(step: str) -> None:
            status.update(f"{step} …")

        plan = bring_in(opened, dry_run=dry_run, on_step=show)
        if not dry_run:
            show("looking which days it has restated")
            with suppress(LakeInUseError):  # another process is doing so
                update_days_with(opened)
    if plan is None:
        console.print(f"nothing to repair: {lake.shown()} has read nothing since the last repair", soft_wrap=True)
        return
    _print_plan(console, plan, lake.shown(), dry_run=dry_run)


def _print_plan(console: Console, plan: RepairPlan, place: str, *, dry_run: bool) -> None:
    table = Table(title=f"{place}: repair {plan.number}", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("table")
    for heading in ("late events", "they wait", "rows out", "rows in", "frozen"):
        table.add_column(heading, justify="right")
    for name, part in plan.tables.items():
        numbers = (part.events, part.pending, part.deletes, part.inserts, part.frozen)
        table.add_row(name, *[f"{number:,}" for number in numbers])
    console.print(table)
    came = f"{plan.late_events:,} events came too late for silver"
    console.print(f"{came}, {plan.expired:,} of them later than repair.horizon allows", soft_wrap=True)
    if dry_run:
        console.print("dry run: no table was changed")
    elif plan.changes:
        console.print("each changed row is in gold/restatements: `adloom show restatements`", soft_wrap=True)
    if plan.pending:
        console.print("what waits can still change by itself; a later repair brings it in", soft_wrap=True)
