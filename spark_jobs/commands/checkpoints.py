"""Commands on the checkpoints of a lake."""

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption

checkpoints_app = typer.Typer(
    no_args_is_help=True,
    help="Look at the checkpoints of a lake, begin one anew, and remove those that others took the place of.",
)


@checkpoints_app.command("list")
def list_checkpoints(lake: LakeOption, config: ConfigOption = None) -> None:
    """List them: begun when, by which version, batches done, size. Those no longer in use are dim."""
    from spark_jobs.console.checkpoints import list_all

    list_all(lake, config)


@checkpoints_app.command("show", epilog="Example:  adloom checkpoints show attribute/sessionize/v1 --lake lake")
def show(
    checkpoint: Annotated[str, typer.Argument(help="<job>/<query>/v<N>.", metavar="CHECKPOINT")],
    lake: LakeOption,
    config: ConfigOption = None,
) -> None:
    """Show one: where it lies, whether it is in use, and the settings that its state depends on."""
    from spark_jobs.console.checkpoints import show_one

    show_one(checkpoint, lake, config)


@checkpoints_app.command(
    "reset",
    epilog="Example:  adloom checkpoints reset sessionize --lake lake --config new.toml   The job must be stopped. The "
    "old version stays until `clean` removes it.",
)
def reset(
    query: Annotated[str, typer.Argument(help="ingest, deduplicate, attribute or sessionize.", metavar="QUERY")],
    lake: LakeOption,
    source: Annotated[
        Path | None,
        typer.Option(help="For ingest: the folder it reads; without it, Kafka. New files are taken in.", metavar="DIR"),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Begin a query's checkpoint anew, after damage or with other settings: no row is lost, none comes twice.

    The tables say how far the query had come and what was still open; from that the state is rebuilt.
    """
    from spark_jobs.console.checkpoints import reset_checkpoint

    reset_checkpoint(query, lake, source, config)


@checkpoints_app.command("clean", epilog="Example:  adloom checkpoints clean --lake lake --delete")
def clean(
    lake: LakeOption,
    checkpoint: Annotated[
        list[str] | None, typer.Argument(help="Only these: <job>/<query>/v<N>.", metavar="[CHECKPOINT]...")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Remove them; without it, only tell what would go.")] = False,
    config: ConfigOption = None,
) -> None:
    """Remove checkpoints that have had a successor for job.checkpoint_retention, and nothing else."""
    from spark_jobs.console.checkpoints import clean as clean_checkpoints

    clean_checkpoints(checkpoint or [], lake, delete=delete, config=config)
