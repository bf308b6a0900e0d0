"""The type of the ``CHECK`` that each module of this folder declares."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from spark_jobs.config.settings import Settings
from spark_jobs.errors import AdloomError
from spark_jobs.lake.layout import Lake


class Severity(StrEnum):
    """The severity of a finding."""

    FINE = "fine"
    WARNING = "warning"
    """It works, but will not forever."""
    WRONG = "wrong"
    """Something does not work, or rows are not as they should be."""


@dataclass(frozen=True)
class Finding:
    """A finding, and what to do about it; a fine one needs nothing."""

    severity: Severity
    text: str
    todo: str = ""


@dataclass(frozen=True)
class Subject:
    """The subject of the checks: a lake, the settings that its jobs run with, and the time (UTC)."""

    lake: Lake
    settings: Settings
    now: datetime


@dataclass(frozen=True)
class Check:
    """A question about a subject.

    ``order`` sorts the checks. Each runs, whatever the others find; an error that ``look`` raises is a finding.
    """

    order: int
    name: str
    look: Callable[[Subject], Iterator[Finding]]


def attempt(findings: Iterator[Finding]) -> Iterator[Finding]:
    """``findings``, which may be a part of a check; an error that ends them is the last."""
    try:
        yield from findings
    except AdloomError as error:
        yield wrong(str(error), "")
    except Exception as error:  # noqa: BLE001 the doctor is asked when things are broken: the rest must be heard
        yield wrong(f"the check itself failed: {type(error).__name__}: {error}", "report this as a bug of adloom")


def fine(text: str) -> Finding:
    """Nothing to do."""
    return Finding(Severity.FINE, text)


def warning(text: str, todo: str) -> Finding:
    """Something to do soon."""
    return Finding(Severity.WARNING, text, todo)


def wrong(text: str, todo: str) -> Finding:
    """Something to do now."""
    return Finding(Severity.WRONG, text, todo)
