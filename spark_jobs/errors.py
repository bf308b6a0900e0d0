"""The errors that adloom raises on purpose. Their texts say what, which value, why, and what to do."""

from typing import ClassVar


class AdloomError(Exception):
    """Raised when adloom refuses to go on or fails; the text is meant for the user. Base of all others."""

    exit_code: ClassVar[int] = 1
    """Of the command that ends with this error."""


class SettingsError(AdloomError):
    """Raised when a setting is unknown, malformed, or unsafe in combination with another."""


class EnvironmentMissingError(AdloomError):
    """Raised when Java, a jar or another prerequisite on the machine is missing or has the wrong version."""


class RulesError(AdloomError):
    """Raised when rules of invalid traffic are malformed, or what they refer to is missing."""


class SourceError(AdloomError):
    """Raised when the input cannot be read: a missing folder, no files, a damaged file, an unreachable broker."""


class RegistryError(AdloomError):
    """Raised when the schema registry refuses the client, answers what is no registry's, or stays away too long."""


class LakeError(AdloomError):
    """Raised when a lake or one of its tables is missing or unusable."""


class LakeInUseError(LakeError):
    """Raised when another process holds a lock of the lake."""


class LockLostError(LakeError):
    """Raised when a lock that this process held has expired or was taken by another."""


class CheckpointError(LakeError):
    """Raised when a checkpoint does not fit the settings, the source or its table."""


class PreflightError(AdloomError):
    """Raised when preflight cannot compare the settings with the checkpoints."""

    exit_code: ClassVar[int] = 2
    """Exit code 1 of preflight means that it did compare, and found a breaking change."""


class ContractError(AdloomError):
    """Raised when two contracts cannot be compared."""

    exit_code: ClassVar[int] = 2
    """Exit code 1 of a check means that it did compare, and found a breaking change."""


class QueryFailedError(AdloomError):
    """Raised when a streaming query fails."""


class LedgerError(AdloomError):
    """Raised when the ledger of a run does not balance to the row."""


class SqlError(AdloomError):
    """Raised when a statement of SQL is wrong, or fails."""


class AirflowApiError(AdloomError):
    """Raised when Airflow does not answer a request to its REST API, or refuses it."""


class LineageError(AdloomError):
    """Raised when an event of lineage cannot be sent."""
