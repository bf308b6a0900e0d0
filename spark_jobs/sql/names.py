"""The names that can be queried: the tables of a lake, and the views for people."""

from spark_jobs.errors import SettingsError
from spark_jobs.queries.registry import SHOWN_TABLES
from spark_jobs.sql.views import VIEWS

NAMES = tuple(sorted({*SHOWN_TABLES, *VIEWS}))


def check_name(name: str) -> None:
    """Checks that ``name`` can be queried.

    Raises:
        SettingsError: it is neither a table nor a view.
    """
    if name not in NAMES:
        raise unknown(name)


def unknown(name: str) -> SettingsError:
    """The error for a ``name`` that is neither a table nor a view."""
    return SettingsError(f"no table {name!r}; there are {', '.join(NAMES)}")
