"""Variables whose value is in a file, as secrets are in Docker, Kubernetes and Vault's agent."""

from collections.abc import Mapping
from pathlib import Path

from spark_jobs.errors import SettingsError

SUFFIX = "_FILE"


def value_of(environment: Mapping[str, str], name: str) -> str:
    """The variable ``name``, or else what the file holds that ``<name>_FILE`` names; empty if neither is set.

    The file is read at each call, so that a process that starts again has the secret as it is now.

    Raises:
        SettingsError: both are set, or the file cannot be read.
    """
    value, file = environment.get(name, ""), environment.get(f"{name}{SUFFIX}", "")
    if not file:
        return value
    if value:
        raise SettingsError(f"{name} and {name}{SUFFIX} are both set; leave out one, so that it is clear which counts")
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise SettingsError(
            f"{name}{SUFFIX} names {file}, which cannot be read: {why}; check path and rights"
        ) from None
