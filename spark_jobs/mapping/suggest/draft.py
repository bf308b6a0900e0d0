"""A draft: what was chosen for each field, why, and what is left for a person to decide."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_jobs.config.encoding import Encoding


@dataclass(frozen=True)
class Shape:
    """How the records lie in the file.

    Attributes:
        encoding: how its records are read.
        unread: rows that could not be read, and why the first one.
        files: the pattern for names as that of the file; empty: those of the format have it.
    """

    encoding: Encoding
    unread: tuple[int, str] = (0, "")
    files: str = ""


@dataclass(frozen=True)
class DraftField:
    """The expression of a field.

    Attributes:
        expression: in the mapping language.
        why: what it was chosen by.
        checks: what a person should decide.
        columns: what it reads.
    """

    expression: str
    why: str
    checks: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceDraft:
    """One ``[source.NAME]``.

    Attributes:
        name: of the source.
        event_type: the type.
        fields: by field, its expression.
        each: path to the list whose elements are its records; empty: its records are whole.
        when: the condition of the records that it means; empty: all.
        also: the sources that take its records, too.
        may_lack_user: whether events without a user are good.
        checks: what a person should decide about it as a whole.
    """

    name: str
    event_type: DraftField
    fields: Mapping[str, DraftField]
    each: str = ""
    when: str = ""
    also: tuple[str, ...] = ()
    may_lack_user: bool = False
    checks: tuple[str, ...] = ()

    def settings(self) -> dict[str, Any]:
        """As in the settings, but for the format."""
        given: dict[str, Any] = {"event_type": self.event_type.expression}
        given["map"] = {name: one.expression for name, one in self.fields.items()}
        if self.each:
            given["each"] = self.each
        if self.when:
            given["when"] = self.when
        if self.also:
            given["also"] = ", ".join(self.also)
        if self.may_lack_user:
            given["may_lack"] = "user_id"
        return given


@dataclass(frozen=True)
class Draft:
    """The sources of a sample.

    Attributes:
        sources: the first one that means a record has it.
    """

    sources: tuple[SourceDraft, ...]

    def settings(self) -> dict[str, Any]:
        """The section ``source`` of the settings; records that are not JSON count as the JSON made of them."""
        return {source.name: source.settings() for source in self.sources}
