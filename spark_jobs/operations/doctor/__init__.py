"""The checks of ``adloom doctor``: one module for each, which it declares as ``CHECK``. Spark is not started."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from spark_jobs.operations.doctor.description import Check, Finding, Severity, Subject, attempt

__all__ = ["CHECKS", "Check", "Finding", "Severity", "Subject", "examine", "findings_of"]


def _declared() -> tuple[Check, ...]:
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return tuple(sorted((one.CHECK for one in modules if hasattr(one, "CHECK")), key=lambda check: check.order))


CHECKS = _declared()
"""All checks, in their order."""


def examine(subject: Subject) -> Iterator[tuple[Check, list[Finding]]]:
    """The findings of each check; one that cannot run says why."""
    for check in CHECKS:
        yield check, list(findings_of(check, subject))


def findings_of(check: Check, subject: Subject) -> Iterator[Finding]:
    """The findings of ``check``; an error that ends it is the last."""
    return attempt(check.look(subject))
