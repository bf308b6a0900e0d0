"""Fields that forms of several DAGs have."""

from typing import Any

from airflow.sdk import Param

_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})$"
"""Airflow enforces a pattern, but accepts any text as a date-time."""


def time_field(title: str, description: str, *, is_optional: bool = False) -> Param:
    """A time with its zone; None if it is optional and left empty."""
    form: dict[str, Any] = {"format": "date-time", "pattern": _TIME, "title": title, "description": description}
    return Param(None, type=["null", "string"], **form) if is_optional else Param(type="string", **form)
