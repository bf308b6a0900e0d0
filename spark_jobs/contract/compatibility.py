"""The meaning of a change of a setting for a checkpoint."""

from dataclasses import dataclass
from enum import StrEnum


class Compatibility(StrEnum):
    """The meaning of a changed setting for an existing checkpoint."""

    SAFE = "safe"
    """The new value takes effect from the next batch on."""
    IGNORED = "ignored"
    """The value stored in the checkpoint stays in effect."""
    BREAKING = "breaking"
    """Rows would be wrong or the query would fail: it does not start."""


@dataclass(frozen=True)
class SettingChange:
    """A setting that differs between a checkpoint and a start."""

    query: str
    setting: str
    before: str
    now: str
    verdict: Compatibility
    why: str
