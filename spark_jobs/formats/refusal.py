"""Why a value cannot be decoded."""

from spark_jobs.contract.events import INCOMPATIBLE_SCHEMA, INVALID_ENCODING, UNKNOWN_SCHEMA


class Refused(Exception):  # noqa: N818 it becomes a verdict, not an error
    """Raised when a value cannot be decoded; it becomes the record's verdict and reason.

    Attributes:
        verdict: one of ``contracts.events.DECODE_VERDICTS``.
        reason: what is wrong with which part, for people. It never holds the value itself.
    """

    def __init__(self, verdict: str, reason: str) -> None:
        super().__init__(reason)
        self.verdict, self.reason = verdict, reason


def invalid(reason: str) -> Refused:
    """The bytes do not fit the format or the schema."""
    return Refused(INVALID_ENCODING, reason)


def unknown(reason: str) -> Refused:
    """The registry has no such schema."""
    return Refused(UNKNOWN_SCHEMA, reason)


def incompatible(reason: str) -> Refused:
    """The writer's schema is of no use, or cannot be read as the reader's."""
    return Refused(INCOMPATIBLE_SCHEMA, reason)
