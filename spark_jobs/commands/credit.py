"""The command that gives conversions their credit."""

from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption, parse_time

app = typer.Typer()


@app.command(
    rich_help_panel="Streaming: long-running jobs",
    epilog="Examples:  adloom credit --lake lake --config adloom.toml   |   "
    "adloom credit --lake lake --from 2026-03-01T00:00:00Z --to 2026-04-01T00:00:00Z",
)
def credit(
    lake: LakeOption,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Compute conversions from this time on again, as after a change of [credit]; with offset or Z.",
            metavar="T",
        ),
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="End of that window, exclusive.", metavar="T")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be written, and change no table.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Tell which impressions and clicks led to each conversion, and share its value among them.

    Paths are kept in gold/paths, credits by six models in gold/credits; the credits of a conversion by one model add up
    to its value exactly. A conversion is computed when no touch of it can come in time any more, and again when a
    repair brings in a late one: then stale rows go, and each change is told in gold/restatements. Jobs may keep
    running; Spark starts only if there is something to do. A run that was killed goes on where it stopped.

    Where events are marked as invalid traffic, gold/net_paths and gold/net_credits have the same without them.
    """
    from spark_jobs.console.credit import credit_conversions

    bounds = tuple(parse_time(text, name) if text else None for text, name in ((begin, "--from"), (end, "--to")))
    credit_conversions(lake, bounds[0], bounds[1], dry_run=dry_run, config=config)
