"""Options that several commands take."""

from pathlib import Path
from typing import Annotated

import typer

LakeOption = Annotated[
    str, typer.Option(help="Folder or file:/// URI that holds the tables; made if it does not exist.", metavar="URI")
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="Settings as a TOML file; `adloom settings` lists them.", metavar="FILE")
]
