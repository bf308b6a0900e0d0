"""Views for people, in SQL: one module each, which declares all there is to know about it as ``VIEW``.

A module that is added to this folder is known to ``adloom sql``, ``adloom show``, ``adloom export`` and the docs.
"""

from importlib import import_module
from pkgutil import iter_modules

from spark_jobs.sql.views.description import View

__all__ = ["VIEWS", "View"]


def _declared() -> dict[str, View]:
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    views = [module.VIEW for module in modules if hasattr(module, "VIEW")]
    return {view.name: view for view in sorted(views, key=lambda view: view.name)}


VIEWS = _declared()
"""By name."""
