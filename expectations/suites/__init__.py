"""The rules that must hold for each table, and for the tables together.

A module named after a table holds its rules, as a function ``suite``. What is computed net of invalid traffic keeps the
rules of its gross table. A table without a module gets the rules that follow from its declared key.
"""

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from expectations.suites.base import Suite
from expectations.suites.keyed import keyed_suite
from expectations.suites.lake import lake_rules
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import GROSS_CREDIT_TABLES, NET_CREDIT_TABLES, Table
from spark_jobs.queries.registry import VALIDATED_TABLES

__all__ = ["Suite", "lake_rules", "table_suites"]


def table_suites(settings: Settings) -> tuple[Suite, ...]:
    """The suite of every table, in the order of the data flow, and those of credit."""
    return tuple(_suite(table, settings) for table in VALIDATED_TABLES)


_GROSS = dict(zip(NET_CREDIT_TABLES, GROSS_CREDIT_TABLES, strict=True))
_MODULES = {module.name for module in iter_modules(__path__)}


def _suite(table: Table, settings: Settings) -> Suite:
    name = _GROSS.get(table, table).name
    if name not in _MODULES:
        return keyed_suite(table)
    suite: Suite = import_module(f"{__name__}.{name}").suite(settings)
    return replace(suite, table=table)
