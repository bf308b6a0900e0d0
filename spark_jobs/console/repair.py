"""``adloom repair``: what was late, and what it changed in gold."""

import os
from contextlib import suppress
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from spark_jobs.console.run import session
from spark_jobs.console.terminal import terminal
from spark_jobs.contracts.errors import LakeInUseError
from spark_jobs.contracts.repair import RepairPlan
from spark_jobs.contracts.settings import load_settings
from spark_jobs.jobs.days import update_days_with
from spark_jobs.jobs.repair import repair
from spark_jobs.runtime.lakes import open_existing


def repair_lake(location: str, *, dry_run: bool, config: Path | None) -> None:
    """Repairs the lake at ``location``; if ``dry_run``, only prints what would be changed.

    Raises:
        SettingsError: the settings are wrong.
        LakeError: there is no lake, or it was changed in each attempt.
        LakeInUseError: another repair is at work.
    """
    console, settings = terminal(is_uncut=True), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as spark, console.status("opening the lake …") as status:

        def show(step: str) -> None:
            status.update(f"{step} …")

        plan = repair(spark, settings, lake, dry_run=dry_run, on_step=show)
        if not dry_run:
            show("looking which days it has restated")
            with suppress(LakeInUseError):  # another process is doing so
                update_days_with(spark, lake, settings)
    if plan is None:
        console.print(f"nothing to repair: {lake.place()} has read nothing since the last repair", soft_wrap=True)
        return
    _print_plan(console, plan, lake.place(), dry_run=dry_run)


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
