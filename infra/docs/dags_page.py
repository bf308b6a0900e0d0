"""``docs/dags.md``: every DAG, from its docstring, schedule and form."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from infra.docs.markdown import code, page, table

_DAGS = Path(__file__).resolve().parents[2] / "dags"
_HEAD = """\
What each DAG does, when it runs, and the fields of its form. How Airflow, the drivers and the lake work together is
described in [Airflow](airflow.md). Times are UTC."""


def dags_page() -> str:
    """The page: one section per DAG.

    Raises:
        RuntimeError: The DAG file cannot be imported.
    """
    # Imported late: Airflow looks for its configuration when it is imported.
    from airflow.dag_processing.dagbag import DagBag

    sys.path.insert(0, str(_DAGS))
    try:
        bag = DagBag(_DAGS)
    finally:
        sys.path.remove(str(_DAGS))
    if bag.import_errors:
        raise RuntimeError(f"the DAG file cannot be imported: {bag.import_errors}")
    return page("DAGs", _HEAD, *(_section(name, dag) for name, dag in sorted(bag.dags.items())))


def _section(name: str, dag: Any) -> str:
    parts = [f"## {name}", f"*{_when(dag.schedule)}*", (dag.doc_md or "").strip()]
    if dag.params:
        rows = [_row(key, dag.params.get_param(key)) for key in dag.params]
        parts.append(table(("field", "default", "values", "meaning"), rows))
    return "\n\n".join(parts)


def _when(schedule: Any) -> str:
    match schedule:
        case None:
            return "Runs when triggered."
        case str():
            return f"Schedule: cron `{schedule}`."
        case timedelta():
            return f"Schedule: every {schedule.total_seconds() / 60:g} minutes."
        case _:
            assets = ", ".join(asset.name for asset in schedule.asset_condition.objects)
            return f"Schedule: cron `{schedule.timetable.expression}`, and when the asset `{assets}` changes."


def _row(key: str, param: Any) -> tuple[str, str, str, str]:
    schema = param.schema
    kinds = schema.get("type", "")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    values = ", ".join(map(code, schema["enum"])) if "enum" in schema else ", ".join(set(kinds) - {"null"})
    if not param.has_value:
        default = "none" if "null" in kinds else "required"
    else:
        default = code(param.value) if param.value not in ([], "") else "none"
    return code(key), default, values, str(param.description or "")
