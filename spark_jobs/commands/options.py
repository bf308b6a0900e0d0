"""Options that several commands take."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.contracts.errors import SettingsError

LakeOption = Annotated[
    str,
    typer.Option(
        envvar="ADLOOM_LAKE",
        help="Where the tables are: a folder, made if it does not exist, or s3a://bucket/prefix.",
        metavar="URI",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="ADLOOM_CONFIG",
        help="Settings as a TOML file; `adloom settings` lists them.",
        metavar="FILE",
    ),
]


def parse_time(text: str, option: str) -> datetime:
    """The time that ``text`` says; without a zone if it names none.

    Raises:
        SettingsError: it says none.
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingsError(f"{option} {text!r} is not a time; write it as in 2025-01-06T00:00:00Z") from error
