"""``adloom settings``: every setting on one page."""

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table

from spark_jobs.cli.terminal import terminal
from spark_jobs.config.differences import as_text
from spark_jobs.config.settings import ENV_PREFIX, Settings, load_settings
from spark_jobs.config.sources import SourceSettings

if TYPE_CHECKING:
    from pydantic import BaseModel
import typer

from spark_jobs.cli.options import ConfigOption

app = typer.Typer()


@app.command(epilog="Example:  adloom settings --config adloom.toml")
def settings(config: ConfigOption = None) -> None:
    """List every setting with its default, its current value, its environment variable and its meaning."""
    table = Table(title="Settings: from the TOML file (--config) and the environment, which wins", title_justify="left")
    for heading in ("setting", "default", "now", "variable", "meaning"):
        table.add_column(heading, overflow="fold")
    for info in describe_settings(load_settings(config, os.environ)):
        table.add_row(*info, style="bold" if info.value != info.default else "")
    terminal().print(table)


class SettingInfo(NamedTuple):
    """A setting as shown to a user."""

    name: str
    default: str
    value: str
    variable: str
    meaning: str


def describe_settings(settings: Settings) -> Iterator[SettingInfo]:
    """Every setting with its value in ``settings``."""
    defaults = Settings()
    for section_name in Settings.model_fields:
        section: BaseModel | dict[str, SourceSettings] = getattr(settings, section_name)
        if isinstance(section, dict):
            yield from _describe_sources(section)
            continue
        for name, field in type(section).model_fields.items():
            yield SettingInfo(
                f"{section_name}.{name}",
                as_text(getattr(getattr(defaults, section_name), name)),
                as_text(getattr(section, name)),
                f"{ENV_PREFIX}{section_name}__{name}".upper(),
                field.description or "",
            )


def _describe_sources(sources: dict[str, SourceSettings]) -> Iterator[SettingInfo]:
    """The settings of each named source; sources are set in the file only."""
    for source, given in sources.items():
        for name, value in given.model_dump(exclude_defaults=True, by_alias=True).items():
            meaning = SourceSettings.model_fields[name].description or ""
            for key, one in value.items() if isinstance(value, dict) else [("", value)]:
                place = f"source.{source}.{name}{f'.{key}' if key else ''}"
                text = json.dumps(one) if isinstance(one, dict) else as_text(one)
                yield SettingInfo(place, "", text, "", meaning)
