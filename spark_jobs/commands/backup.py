"""The commands that copy a lake, and make one of a copy."""

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption

app = typer.Typer()
_PANEL = "Streaming: long-running jobs"
_Copy = Annotated[str, typer.Argument(help="Where the copy is: a folder or s3a://bucket/prefix.", metavar="COPY")]


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom backup s3a://backups/ads --lake s3a://ads/lake   Again, and only what is new is copied.",
)
def backup(copy: _Copy, lake: LakeOption, config: ConfigOption = None) -> None:
    """Copy a lake, while its jobs run, so that `adloom restore` can make a lake of it again.

    The copy has all tables at versions that belong together, and what else is not computed from them. Kafka must keep
    what comes after it for as long as you may want to restore it.
    """
    from spark_jobs.console.backup import take_backup

    take_backup(copy, lake, config=config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom restore s3a://backups/ads --lake s3a://ads/lake-2   Then start the jobs.",
)
def restore(
    copy: _Copy,
    lake: LakeOption,
    source: Annotated[
        Path | None,
        typer.Option(help="The folder of files that the lake was fed from, if it was not Kafka.", metavar="DIR"),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Make a lake of a copy: the tables, and checkpoints that go on where they end.

    The lake must be a new, empty place. No row is lost or repeated, provided that Kafka still holds what came after the
    copy was taken.
    """
    from spark_jobs.console.backup import restore_lake

    restore_lake(copy, lake, source=source, config=config)
