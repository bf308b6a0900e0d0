"""Commands on the checkpoints of a lake."""

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption
from spark_jobs.queries import JOB_OF_QUERY

checkpoints_app = typer.Typer(
    no_args_is_help=True,
    help="Inspect the checkpoints of a lake, reset one, and remove those that are no longer in use.",
)


@checkpoints_app.command("list", epilog="Example:  adloom checkpoints list --lake lake")
def list_checkpoints(lake: LakeOption, config: ConfigOption = None) -> None:
    """List all checkpoints with start time, version, batches done and size. Those no longer in use are dimmed."""
    from spark_jobs.console.checkpoints import list_all

    list_all(lake, config)


@checkpoints_app.command("show", epilog="Example:  adloom checkpoints show attribute/sessionize/v1 --lake lake")
def show(
    checkpoint: Annotated[str, typer.Argument(help="`<job>/<query>/v<N>`.", metavar="CHECKPOINT")],
    lake: LakeOption,
    config: ConfigOption = None,
) -> None:
    """Show one checkpoint: its location, whether it is in use, and the settings its state depends on."""
    from spark_jobs.console.checkpoints import show_one

    show_one(checkpoint, lake, config)


@checkpoints_app.command(
    "reset",
    epilog="Example:  adloom checkpoints reset sessionize --lake lake --config new.toml   Stop the job first. The old "
    "checkpoint stays until `adloom checkpoints clean` removes it.",
)
def reset(
    query: Annotated[str, typer.Argument(help=f"One of {', '.join(JOB_OF_QUERY)}.", metavar="QUERY")],
    lake: LakeOption,
    source: Annotated[
        Path | None,
        typer.Option(
            help="For ingest: the folder, if it reads one by this option. New files are read in.", metavar="DIR"
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Replace a query's checkpoint after damage or a change of settings: no row is lost or written twice.

    The state is rebuilt from the tables: they say how far the query had read and which events were still open.
    """
    from spark_jobs.console.checkpoints import reset_checkpoint

    reset_checkpoint(query, lake, source, config)


@checkpoints_app.command("clean", epilog="Example:  adloom checkpoints clean --lake lake --delete")
def clean(
    lake: LakeOption,
    checkpoint: Annotated[
        list[str] | None, typer.Argument(help="Only these: `<job>/<query>/v<N>`.", metavar="CHECKPOINT")
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove them; without it, only list what would be removed.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Remove checkpoints that were replaced longer ago than job.checkpoint_retention, and nothing else."""
    from spark_jobs.console.checkpoints import clean as clean_checkpoints

    clean_checkpoints(checkpoint or [], lake, delete=delete, config=config)
