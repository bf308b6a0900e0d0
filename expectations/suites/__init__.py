"""What must hold for each table, and for the tables together.

A module named after a table holds its rules, as a function ``suite``. A table without one gets the rules that follow
from its declared key.
"""

from importlib import import_module
from pkgutil import iter_modules

from expectations.suites.base import Suite
from expectations.suites.keyed import keyed_suite
from expectations.suites.lake import lake_rules
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import CREDIT_TABLES
from spark_jobs.queries import TABLES

__all__ = ["Suite", "lake_rules", "table_suites"]


def table_suites(settings: Settings) -> tuple[Suite, ...]:
    """The suite of every table, in the order of the data flow, and those of credit."""
    modules = {module.name for module in iter_modules(__path__)}
    return tuple(
        import_module(f"{__name__}.{table.name}").suite(settings) if table.name in modules else keyed_suite(table)
        for table in (*TABLES, *CREDIT_TABLES)
    )
