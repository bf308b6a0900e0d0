"""Forms of DAGs: fields that several have, and their values, as tasks and commands get them."""

from collections.abc import Callable, Mapping
from typing import Any

from airflow.sdk import Param, task

Form = Mapping[str, Any]
"""The values filled in, by field."""

_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})$"
"""Airflow enforces a pattern, but accepts any text as a date-time."""


def time_field(title: str, description: str, *, is_optional: bool = False) -> Param:
    """A time with its zone; None if it is optional and left empty."""
    form: dict[str, Any] = {"format": "date-time", "pattern": _TIME, "title": title, "description": description}
    return Param(None, type=["null", "string"], **form) if is_optional else Param(type="string", **form)


def form_task(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The task of ``function``, which takes the form as ``params``: Airflow passes it by that name when the task runs.

    Args:
        function: its other arguments are those of the task.
        options: those of Airflow's ``task``.
    """
    decorated: Callable[..., Any] = task(**options)(function)
    return decorated


def options(form: Form, *fields: str) -> list[str]:
    """The options of a command for those ``fields`` of ``form`` that are set, of the same names.

    Each is one word with its value, so that nothing typed into the form is ever read as an option.
    """
    filled = {f"--{name.replace('_', '-')}": form[name] for name in fields if form[name]}
    return [option if value is True else f"{option}={value}" for option, value in filled.items()]
