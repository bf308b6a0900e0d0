"""The command that empties the quarantine of what fits by now."""

from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption, parse_time

app = typer.Typer()


@app.command(
    rich_help_panel="Streaming: long-running jobs",
    epilog="Examples:  adloom requeue --lake lake --config adloom.toml --dry-run   |   "
    "adloom requeue --lake lake --config adloom.toml --source ads   |   "
    "adloom requeue --lake lake --config adloom.toml --verdict invalid_event_time --since 2026-03-01T00:00:00Z",
)
def requeue(
    lake: LakeOption,
    verdict: Annotated[
        list[str] | None,
        typer.Option(
            help="Only records with this verdict; may be given several times. Default: all.",
            metavar="VERDICT",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only records that reached bronze then or later, with offset or Z.", metavar="T")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Only records that reached bronze before, with offset or Z.", metavar="T")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Only records of this source of the settings.", metavar="NAME")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be requeued, and write nothing.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Judge the records in quarantine anew by the present settings, and let those that fit now flow on, once.

    A wrong mapping sends good records to the quarantine. Correct the settings, look with --dry-run, then requeue: each
    record that fits is appended to bronze again with the verdict ok, and goes on to silver and gold. The others stay;
    the table says what they break now. Jobs may keep running. A requeue adds all of its rows in one commit or none, and
    running it again adds only what is missing. Events that lie behind the watermark by now are late, and are counted.
    """
    from spark_jobs.console.requeue import requeue_records
    from spark_jobs.contracts.requeue import Selection

    selection = Selection(
        tuple(verdict or ()),
        parse_time(since, "--since") if since else None,
        parse_time(until, "--until") if until else None,
        source,
    )
    requeue_records(selection, lake, dry_run=dry_run, config=config)
