"""The lakes that one Airflow works on: how each is found, and how its DAGs and assets are named."""

import os
import re
from dataclasses import dataclass

from spark_jobs.errors import SettingsError

LAKES = "ADLOOM_LAKES"
_PREFIX = re.compile(r"[a-z][a-z0-9_]{0,31}")


@dataclass(frozen=True)
class LakeRef:
    """A lake of this Airflow.

    Raises:
        SettingsError: the prefix does not fit into a DAG's id.
    """

    connection: str = ""
    """The Airflow connection that describes it; empty: the one that ``ADLOOM_CONNECTION`` names, or the environment."""
    prefix: str = ""
    """Stands before the ids of its DAGs and the names of its assets, as in ``eu_``; empty if there is one lake only."""

    def __post_init__(self) -> None:
        """Checks the prefix."""
        if self.prefix and not _PREFIX.fullmatch(self.prefix):
            raise SettingsError(
                f"prefix {self.prefix!r} does not fit into the id of a DAG and a URL; use at most 32 lower-case "
                "letters, digits and _, and begin with a letter, as in eu_"
            )

    def named(self, name: str) -> str:
        """The id of its DAG ``name``, or the name of its asset ``name``."""
        return f"{self.prefix}{name}"


def lakes_here() -> tuple[LakeRef, ...]:
    """The lakes that ``ADLOOM_LAKES`` names, as in ``eu_=adloom_eu,us_=adloom_us``: prefixes and connections.

    Without it, there is one, with no prefix.

    Raises:
        SettingsError: an entry has no connection, a prefix is wrong, or there twice.
    """
    entries = [entry.strip() for entry in os.environ.get(LAKES, "").split(",") if entry.strip()]
    found: dict[str, LakeRef] = {}
    for entry in entries:
        prefix, _, connection = (part.strip() for part in entry.partition("="))
        if not connection:
            raise SettingsError(
                f"{LAKES}: {entry!r} names no connection; write PREFIX=CONNECTION, as in eu_=adloom_eu,us_=adloom_us"
            )
        if prefix in found:
            raise SettingsError(
                f"{LAKES}: the prefix {prefix!r} stands before {found[prefix].connection} and {connection}, so their "
                "DAGs would have the same ids; give each lake its own"
            )
        found[prefix] = LakeRef(connection, prefix)
    return tuple(found.values()) or (LakeRef(),)
