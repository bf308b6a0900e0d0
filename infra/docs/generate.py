"""Writes the reference pages of ``docs/``, and the dashboards, from the code: ``make docs``; tests fail if they differ.

A page is either written by hand or generated as a whole. To add one, write a module with a function that returns its
Markdown and add it to :data:`PAGES`.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from infra.docs.cli_page import cli_page
from infra.docs.contract_page import contract_page
from infra.docs.dags_page import dags_page
from infra.docs.environment_page import environment_page
from infra.docs.mapping_page import mapping_page
from infra.docs.queries_page import queries_page
from infra.docs.settings_page import settings_page
from infra.docs.tables_page import tables_page
from infra.grafana.business import BUSINESS
from infra.grafana.model import Dashboard, dashboard_json
from infra.grafana.operations import OPERATIONS
from infra.grafana.quality import QUALITY

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "contract.md": contract_page,
    "environment.md": environment_page,
    "mapping.md": mapping_page,
    "queries.md": queries_page,
    "settings.md": settings_page,
    "tables.md": tables_page,
}
"""By file name, what makes its text."""
DASHBOARDS: dict[Path, Dashboard] = {
    DOCS.parent / "infra" / "grafana" / "dashboards" / f"{dashboard.name}.json": dashboard
    for dashboard in (OPERATIONS, QUALITY, BUSINESS)
}
"""By its file, each dashboard of Grafana."""
DAGS_PAGE = "dags.md"
"""The only page that needs Airflow, which takes its home folder from the environment when it is first imported."""


def main() -> None:
    """Writes all pages and dashboards."""
    for file, dashboard in DASHBOARDS.items():
        file.write_text(dashboard_json(dashboard), encoding="utf-8")
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"AIRFLOW_HOME": home, "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR"}
        (DOCS / DAGS_PAGE).write_text(dags_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
