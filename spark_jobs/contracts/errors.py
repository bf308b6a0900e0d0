"""Every error adloom raises on purpose. The text says what, which value, why, and what to do."""

from typing import ClassVar


class AdloomError(Exception):
    """Raised when adloom itself refuses or fails; the text is meant for the user. Base of all others."""

    exit_code: ClassVar[int] = 1
    """Of the command that ends with this error."""


class SettingsError(AdloomError):
    """Raised when a setting is unknown, malformed, or unsafe together with another."""


class EnvironmentMissingError(AdloomError):
    """Raised when Java, a jar or another part of the machine's set-up is missing or has the wrong version."""


class SourceError(AdloomError):
    """Raised when the input cannot be read: no such folder, no files, a damaged file."""


class LakeError(AdloomError):
    """Raised when a lake or one of its tables is not there or cannot be used."""


class LakeInUseError(LakeError):
    """Raised when another run holds the lake's lock."""


class CheckpointError(LakeError):
    """Raised when a checkpoint was made with other settings and would be misused."""


class PreflightError(AdloomError):
    """Raised when preflight cannot compare the settings with the checkpoints."""

    exit_code: ClassVar[int] = 2
    """Exit code 1 of preflight means that it did compare, and found a breaking change."""


class QueryFailedError(AdloomError):
    """Raised when a streaming query ends with an error."""


class LedgerError(AdloomError):
    """Raised when the accounts of a run do not balance to the row."""
