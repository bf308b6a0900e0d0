"""The command that recomputes a past window of gold."""

from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption, parse_time

app = typer.Typer()


@app.command(
    rich_help_panel="Bounded: run and finish",
    epilog="Example:  adloom replay --from 2026-03-01T00:00:00Z --to 2026-03-02T00:00:00Z --lake s3a://ads/lake   "
    "Exit code 1 if rows differ that nothing explains, unless they were put in place.",
)
def replay(
    begin: Annotated[str, typer.Option("--from", help="Start of the window, with offset or Z.", metavar="T")],
    end: Annotated[str, typer.Option("--to", help="End of the window, exclusive.", metavar="T")],
    lake: LakeOption,
    tables: Annotated[
        str, typer.Option(help="Only these tables of gold, as in attributions,sessions; default: all.", metavar="NAMES")
    ] = "",
    apply: Annotated[
        bool, typer.Option("--apply", help="Put in place what differs; each change is told in gold/restatements.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Recompute a past window of gold from bronze, compare it with the live tables, and if wanted put it in place.

    A row that differs is late if an event came too late for it, and a repair will bring that in; open if the live
    query may still change it; and otherwise unknown: somebody changed a table, or adloom has a bug. Open rows are never
    touched. Jobs may keep running. A replay that was killed while it put rows in place is completed by the next repair
    or replay.
    """
    from spark_jobs.console.replay import replay_window

    chosen = tuple(name.strip() for name in tables.split(",") if name.strip())
    is_explained = replay_window(
        parse_time(begin, "--from"), parse_time(end, "--to"), lake, chosen, is_applied=apply, config=config
    )
    if not is_explained:
        raise typer.Exit(1)
