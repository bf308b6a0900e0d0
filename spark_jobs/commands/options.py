"""Options shared by several commands."""

from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.contracts.errors import SettingsError

LakeOption = Annotated[
    str,
    typer.Option(
        envvar="ADLOOM_LAKE",
        help="Root of the lake: a folder (created if missing) or s3a://bucket/prefix.",
        metavar="URI",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="ADLOOM_CONFIG",
        help="TOML file with settings; `adloom settings` lists them all.",
        metavar="FILE",
    ),
]


def parse_time(text: str, option: str) -> datetime:
    """The time in ``text``; naive if it has no offset.

    Raises:
        SettingsError: ``text`` is not a time.
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingsError(f"{option} {text!r} is not a time; write it like 2025-01-06T00:00:00Z") from error


def parse_date(text: str, option: str) -> date:
    """The date in ``text``.

    Raises:
        SettingsError: ``text`` is not a date.
    """
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise SettingsError(f"{option} {text!r} is not a date; write it like 2025-01-06") from error
