"""``adloom credit``: what conversions were computed, and which rows that changed."""

import os
from datetime import datetime
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption, parse_time
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.durations import Window
from spark_jobs.config.sections import CreditSettings
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.credit.plan import CreditPlan
from spark_jobs.errors import SettingsError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_existing

app = typer.Typer()


@app.command(
    epilog="Examples:  adloom credit --lake lake --config adloom.toml   |   "
    "adloom credit --lake lake --from 2026-03-01T00:00:00Z --to 2026-04-01T00:00:00Z",
)
def credit(
    location: LakeOption,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Compute conversions from this time on again, as after a change of [credit]; with offset or Z.",
            metavar="T",
        ),
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help="End of that window, exclusive.", metavar="T")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be written, and change no table.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Work out which impressions and clicks led to each conversion, and share its value among them.

    Paths are kept in gold/paths, credits by six models in gold/credits; the credits of a conversion by one model add up
    to its value exactly. A conversion is computed once all its touches must have arrived, except late ones, and again
    when a repair brings in a late one: outdated rows are then deleted, and each change is recorded in
    gold/restatements. Jobs may keep running; Spark starts only if there is something to do. A run that was killed is
    completed by the next one.

    Where events are marked as invalid traffic, gold/net_paths and gold/net_credits have the same without them.
    """
    from spark_jobs.credit.due import has_work
    from spark_jobs.credit.feed import refresh_feed
    from spark_jobs.credit.run import credit as compute

    begin, end = (parse_time(text, name) if text else None for text, name in ((since, "--from"), (until, "--to")))
    console, settings = terminal(is_uncut=True), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    window = _window(begin, end)
    _warn_of_other_settings(console, lake, settings)
    plan = None
    if window is not None or has_work(lake, settings):
        with session(console, settings, lake) as opened, console.status("opening the lake …") as status:
            plan = compute(opened, window=window, dry_run=dry_run, on_step=lambda step: status.update(f"{step} …"))
    if not dry_run:
        refresh_feed(lake, settings.s3)
    if plan is None:
        console.print(_why_nothing(lake, settings), soft_wrap=True)
    else:
        _print_plan(console, plan, lake.shown(), dry_run=dry_run)


def _window(begin: datetime | None, end: datetime | None) -> Window | None:
    if begin is None and end is None:
        return None
    if begin is None or end is None:
        given, missing = ("--from", "--to") if begin else ("--to", "--from")
        raise SettingsError(f"{given} without {missing}: conversions are computed again in a window with both ends")
    return Window(begin, end)


def _warn_of_other_settings(console: Console, lake: Lake, settings: Settings) -> None:
    from spark_jobs.credit.due import last_run

    last = last_run(lake)
    if last is not None and CreditSettings.model_validate_json(last.settings) != settings.credit:
        console.print(
            "[credit] has changed since the last run: new conversions use the new settings, those before keep the "
            "old ones; `adloom credit --from … --to …` computes them again",
            soft_wrap=True,
        )


def _why_nothing(lake: Lake, settings: Settings) -> str:
    from spark_jobs.credit.due import due_until

    reach = due_until(lake, settings)
    if reach is None:
        return f"nothing to credit: no watermark of {lake.shown()} has passed an event yet; run its jobs first"
    return f"nothing to credit: {lake.shown()} has no new conversion up to {utc(reach.until)}, and nothing changed"


def _print_plan(console: Console, plan: CreditPlan, place: str, *, dry_run: bool) -> None:
    # Not as the title of the table, which would be broken at its width.
    console.print(f"{place}: credit, run {plan.number}", soft_wrap=True)
    table = Table(box=SIMPLE_HEAD)
    table.add_column("table")
    for heading in ("rows out", "rows in", "frozen"):
        table.add_column(heading, justify="right")
    for name, part in plan.tables.items():
        table.add_row(name, *[f"{number:,}" for number in (part.deletes, part.inserts, part.frozen)])
    if plan.tables:
        console.print(table)
    again = f", {plan.again:,} computed again" if plan.again else ""
    later = f"; {plan.waiting:,} later ones wait until no touch of them can come any more" if plan.waiting else ""
    console.print(f"{plan.fresh:,} new conversions up to {utc(plan.reach.until)}{again}{later}", soft_wrap=True)
    if plan.net_fresh + plan.net_again:
        console.print(
            f"net of invalid traffic: {plan.net_fresh:,} conversions computed first, {plan.net_again:,} again",
            soft_wrap=True,
        )
    if plan.crowded:
        most = CreditSettings.model_validate_json(plan.settings).most_touches
        console.print(
            f"{plan.crowded:,} user ids have more than {most:,} clicks and views each: only the last ones before a "
            "conversion are touches. Many people may share such an id; `adloom check-events` names some, and "
            "ingest.nobody ends their credit",
            soft_wrap=True,
        )
    if dry_run:
        console.print("dry run: no table was changed")
    elif plan.again + plan.net_again and plan.changes:
        console.print("each row that changed is in gold/restatements: `adloom show restatements`", soft_wrap=True)
