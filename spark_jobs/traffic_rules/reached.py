"""The progress of marking, and the rules in use."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

RULES = "_rules"
"""The folder of the sets of rules that were in use, ``<digest>.json``, and of the record of the current one."""


RULES_IN_USE = f"{RULES}/active.json"
"""The set that is in use, as JSON: see :class:`RulesInUse`."""


def rules_key(digest: str) -> str:
    """A set of rules, as canonical JSON."""
    return f"{RULES}/{digest}.json"


class RulesInUse(BaseModel):
    """The set of rules that new events are checked against, since when, and who chose it."""

    model_config = ConfigDict(frozen=True)

    digest: str
    since: datetime
    by: str


class Reached(BaseModel):
    """The progress of marking, in the note of each commit of ``silver/marks``.

    ``in_use`` are the rules from then on. Events before ``until_us`` (microseconds since 1970) were checked if they
    were in ``silver_version``, or in ``silver/late_events`` with the number of a repair up to ``repair``; None: no
    event was. ``marked_at_us`` is the time of the rows of the commit.
    """

    model_config = ConfigDict(frozen=True)

    in_use: RulesInUse
    marked_at_us: int
    until_us: int | None = None
    silver_version: int = -1
    repair: int = 0
