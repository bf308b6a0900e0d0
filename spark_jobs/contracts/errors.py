"""Every error adloom raises on purpose. The text says what, which value, why, and what to do."""


class AdloomError(Exception):
    """Raised when adloom itself refuses or fails; the text is meant for the user. Base of all others."""


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


class QueryFailedError(AdloomError):
    """Raised when a streaming query ends with an error."""


class LedgerError(AdloomError):
    """Raised when the accounts of a run do not balance to the row."""
