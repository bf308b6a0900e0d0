"""The command that tells when a day is done."""

from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption, parse_date

app = typer.Typer()


@app.command(
    rich_help_panel="Streaming: long-running jobs",
    epilog="Examples:  adloom days --lake lake --config adloom.toml   |   "
    "adloom days --lake lake --from 2026-03-01 --to 2026-03-31 --no-update --json",
)
def days(
    lake: LakeOption,
    since: Annotated[
        str | None,
        typer.Option("--from", help="Show days from this date on; default: the last 14 days.", metavar="DATE"),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", help="Show days up to this date, included.", metavar="DATE")
    ] = None,
    update: Annotated[bool, typer.Option(help="First bring gold/days up to date.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows of gold/days as JSON, on one line.")] = False,
    config: ConfigOption = None,
) -> None:
    """Tell for each table of gold which days are done: open, complete, audited, restated or frozen.

    A day is complete when nothing that is still on time can change its rows; after that only repairs and replays do,
    and they are counted. The answer is kept in gold/days. Jobs may keep running; Spark starts only if something has
    changed.
    """
    from spark_jobs.console.days import show_days

    first = parse_date(since, "--from") if since else None
    last = parse_date(until, "--to") if until else None
    show_days(lake, since=first, until=last, update=update, as_json=as_json, config=config)
