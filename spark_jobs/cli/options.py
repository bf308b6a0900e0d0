"""Options shared by several commands."""

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_jobs.errors import SettingsError
from spark_jobs.queries.jobs import JOB_NAMES

if TYPE_CHECKING:
    from spark_jobs.lake.as_of import AsOf

LakeOption = Annotated[
    str,
    typer.Option(
        "--lake",
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
JobArgument = Annotated[str, typer.Argument(help=f"One of {', '.join(JOB_NAMES)}.", metavar="JOB")]
AsOfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--as-of",
        help="The state of the tables: a time (2026-03-01T12:00Z), or a version of one table (attributions=12; "
        "repeatable; the name may be left out where only one is read). Default: now.",
        metavar="TIME|VERSION",
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


def parse_zoned_time(text: str, option: str) -> datetime:
    """The time in ``text``, which has an offset.

    Raises:
        SettingsError: ``text`` is not a time, or has none.
    """
    time = parse_time(text, option)
    if time.tzinfo is None:
        raise SettingsError(f"{option} {text!r} has no zone; write it like 2026-03-01T12:00Z")
    return time


def parse_date(text: str, option: str) -> date:
    """The date in ``text``.

    Raises:
        SettingsError: ``text`` is not a date.
    """
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise SettingsError(f"{option} {text!r} is not a date; write it like 2025-01-06") from error


def parse_as_of(values: Sequence[str] | None) -> "AsOf":
    """The state of a lake that the options ``--as-of`` mean.

    Args:
        values: a time, ``TABLE=VERSION``, or a version of the only table that is used; None: now.

    Raises:
        SettingsError: a value is none of these, or two contradict each other.
    """
    from spark_jobs.lake.as_of import AsOf
    from spark_jobs.queries.registry import SHOWN_TABLES

    time: datetime | None = None
    version: int | None = None
    versions: dict[str, int] = {}
    for value in values or ():
        name, _, number = value.rpartition("=")
        if name and name not in SHOWN_TABLES:
            raise SettingsError(
                f"--as-of {value!r}: no table {name!r} has versions; there are {', '.join(SHOWN_TABLES)}"
            )
        if name and number.isdigit():
            versions[name] = int(number)
        elif value.isdigit():
            version = int(value)
        elif time is None:
            time = parse_time(value, "--as-of")
            if time.tzinfo is None:
                raise SettingsError(f"--as-of {value!r} has no zone; write it like 2026-03-01T12:00Z")
        else:
            raise SettingsError(f"--as-of {value!r}: there is a time already; give one")
    return AsOf(time, version, versions)
