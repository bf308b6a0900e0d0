"""The messages about an expression that cannot be used."""

from spark_jobs.errors import SettingsError


class MappingError(SettingsError):
    """Raised when an expression is not one of the mapping language.

    Attributes:
        text: the expression as written.
        line: counted from 1.
        column: counted from 1, in characters.
        reason: what is wrong, with the value that is.
        remedy: what to write instead; empty if unknown.
    """

    def __init__(self, text: str, offset: int, reason: str, remedy: str = "") -> None:
        before = text[:offset]
        self.text = text
        self.line = before.count("\n") + 1
        self.column = offset - (before.rfind("\n") + 1) + 1
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"line {self.line}, column {self.column}: {reason}{f'; {remedy}' if remedy else ''}")


class RefusalError(Exception):
    """Raised by a part that does not know where it stands in the text; becomes a :class:`MappingError` there."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(reason)
