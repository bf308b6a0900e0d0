"""Options that several commands take."""

from pathlib import Path
from typing import Annotated

import typer

LakeOption = Annotated[
    str,
    typer.Option(
        help="Where the tables are: a folder, made if it does not exist, or s3a://bucket/prefix.", metavar="URI"
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="Settings as a TOML file; `adloom settings` lists them.", metavar="FILE")
]
