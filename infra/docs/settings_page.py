"""``docs/settings.md``: every setting."""

import inspect
from itertools import groupby

from infra.docs.markdown import code, page, table
from spark_jobs.cli.settings import SettingInfo, describe_settings
from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import SourceSettings

_HEAD = """\
A value comes from the setting's environment variable, else from the TOML file given with `--config`, else from the
default. `adloom settings` prints the values in effect.

```toml
[sessionize]
gap = "10min"
```

Durations carry their unit: `500ms`, `90s`, `5min`, `1h30min`, `2d`. A setting that is unknown, or that would lose rows
in combination with another one, is refused before anything starts.

State in a checkpoint depends on some settings, such as the join type or the state store. To change one of those for an
existing lake, stop the job and run `adloom checkpoints reset`; `adloom preflight` says which changes need it
([Checkpoints](architecture.md#checkpoints))."""


def settings_page() -> str:
    """The page: one table per section."""
    sections = groupby(describe_settings(Settings()), key=lambda info: info.name.partition(".")[0])
    return page("Settings", _HEAD, *(_section(name, list(infos)) for name, infos in sections), _source())


def _source() -> str:
    """The section of a named source; by default no source is named."""
    defaults = {
        name: field.get_default(call_default_factory=True) for name, field in SourceSettings.model_fields.items()
    }
    rows = [
        (code(f"source.NAME.{name}"), code(str(defaults[name] or "")) or "none", field.description or "")
        for name, field in SourceSettings.model_fields.items()
    ]
    head = "Where records come from, and how they become events: see [Your events](events.md). In the file only."
    return f"## [source.NAME]\n\n{head}\n\n" + table(("setting", "default", "meaning"), rows)


def _section(name: str, infos: list[SettingInfo]) -> str:
    # "``[ingest]``: reading records." and what follows, as the class says it.
    meaning = inspect.getdoc(type(getattr(Settings(), name))) or ""
    meaning = meaning.partition(": ")[2].replace("``", "`")
    meaning = meaning[:1].upper() + meaning[1:]
    rows = [(code(info.name), code(info.default) or "none", code(info.variable), info.meaning) for info in infos]
    return f"## [{name}]\n\n{meaning}\n\n" + table(("setting", "default", "variable", "meaning"), rows)
