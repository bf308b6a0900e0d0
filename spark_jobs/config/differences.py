"""Settings as text, how two files of settings differ, and what a file must not hold if others may read it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr, ValidationError

from spark_jobs.config.durations import format_duration
from spark_jobs.config.sections import Section
from spark_jobs.config.settings import ENV_PREFIX, Settings, read_toml
from spark_jobs.errors import SettingsError

_NOT_SET: Final = "not set"
_SOURCE: Final = "source"
"""The table of the named sources. It holds no secrets, and a field of a record may well be called token."""
_SECRET: Final = re.compile(r"password|passphrase|secret|token(?!\.endpoint)|jaas|keystore\.key", re.IGNORECASE)
"""In the name of an option of a client: its value is not shown."""
_LOGIN: Final = re.compile(r"(?<=://)[^/?#@\s]*(?=@)")
"""User and password in an address."""
_MASK: Final = "**********"
_SECTIONS: Final[dict[str, type[Section]]] = {
    name: field.annotation
    for name, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}
"""All but the named sources, which have no fixed names."""


@dataclass(frozen=True)
class SettingChange:
    """A setting with different values in two files. Secrets are masked."""

    setting: str
    before: str
    now: str

    @property
    def variable(self) -> str:
        """The environment variable that sets it too, and wins."""
        return f"{ENV_PREFIX}{self.setting.replace('.', '__')}".upper()

    def describe(self, environ: Mapping[str, str]) -> str:
        """The change in one line. It says so if ``environ`` has the setting, because neither value then counts."""
        wins = f" ({self.variable} is set here and wins)" if self.variable in environ else ""
        return f"{self.setting} was {self.before or 'empty'}, is {self.now or 'empty'}{wins}"


def setting_changes(before: Path | None, now: Path | None) -> list[SettingChange]:
    """The settings whose values differ between two TOML files, by name; None is a file that sets nothing.

    Values are compared by their meaning: 60s is 1min, and a default that is written out is no difference. A setting
    that this version does not know, such as one of another release, is compared as text.

    Raises:
        SettingsError: a file cannot be read.
    """
    old, new = (dict(_values(read_toml(file))) if file else {} for file in (before, now))
    found = [
        SettingChange(name, old.get(name, _default(name)), new.get(name, _default(name)))
        for name in sorted(old.keys() | new.keys())
    ]
    return [change for change in found if change.before != change.now]


def refuse_secrets(file: Path) -> None:
    """Checks that the settings in ``file`` hold no secret.

    Raises:
        SettingsError: they do; the text names the setting and not its value. Or the file cannot be read.
    """
    for section, name, value in _leaves(read_toml(file)):
        kind = _SECTIONS.get(section)
        field = kind.model_fields.get(name) if kind else None
        options = value if isinstance(value, dict) and kind else {}
        secret = next((f"{name}.{option}" for option in options if _SECRET.search(option)), "")
        if field and field.annotation is SecretStr and value:
            secret = name
        if kind and _LOGIN.search(json.dumps(value, default=str)):
            secret = f"{name}, an address with a user"
        if secret:
            variable = f"{ENV_PREFIX}{section}__{name}".upper()
            raise SettingsError(
                f"settings file {file} holds a secret: {section}.{secret}. A release stores the file in the lake, "
                f"for all who may read it; take the secret out of the file and set {variable} where the drivers run"
            )


def as_text(value: Any) -> str:
    """The value of a setting as people read it, with secrets masked."""
    match value:
        case timedelta():
            return format_duration(value)
        case None | ():
            return ""
        case ((_, _), *_):
            return json.dumps({name: _MASK if _SECRET.search(name) else text for name, text in value})
        case tuple():
            text = ",".join(value)
        case _:
            text = str(value)  # asterisks if it is a secret
    return _LOGIN.sub(_MASK, text)


def _values(settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The settings in a file: names and values as text."""
    for section, name, value in _leaves(settings):
        try:
            kind = _SECTIONS[section]
            text = as_text(getattr(kind.model_validate({name: value}), name))
        except (KeyError, AttributeError, ValidationError):
            is_secret = section != _SOURCE and _SECRET.search(name)
            text = _MASK if is_secret else _LOGIN.sub(_MASK, _plain(value))
        yield f"{section}.{name}", text


def _leaves(settings: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Section, name and value of all that a file sets; the names of sources and their mappings hold dots."""
    for section, table in settings.items():
        for name, value in table.items() if isinstance(table, dict) else [("", table)]:
            if section in _SECTIONS or not isinstance(value, dict):
                yield section, name, value
            else:
                yield from ((section, f"{name}.{below}", leaf) for below, leaf in _flat(value))


def _flat(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{below}", leaf) for below, leaf in _flat(value))
        else:
            yield name, value


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _default(setting: str) -> str:
    section, _, name = setting.partition(".")
    kind = _SECTIONS.get(section)
    return as_text(getattr(kind(), name)) if kind and name in kind.model_fields else _NOT_SET
