"""The docs as a site: ``make docs`` builds it into ``build/site/html``, and fails if a link leads nowhere.

Pages and what they link to are laid out as in the repository, so that their links hold. MkDocs has its own environment:
nothing else needs it.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from infra.environments import python_of

_ROOT = Path(__file__).resolve().parents[2]
_SITE = _ROOT / "build" / "site"
_LINK = re.compile(r"\]\(([^)#\s]+)")
_NAV: dict[str, tuple[str, ...]] = {
    "Start": ("README.md", "docs/first-ten-minutes.md", "docs/events.md", "docs/query-gold.md"),
    "Concepts": (
        *("docs/architecture.md", "docs/late-truth.md", "docs/credit.md", "docs/invalid-traffic.md"),
        "docs/validation.md",
    ),
    "Operate": (
        *("docs/airflow.md", "docs/containers.md", "docs/executors.md", "docs/runbook.md", "docs/security.md"),
        *("docs/reliability.md", "docs/scaling.md", "docs/performance.md", "benchmarks/README.md"),
    ),
    "Reference": (
        *("docs/tables.md", "docs/queries.md", "docs/settings.md", "docs/environment.md", "docs/cli.md"),
        *("docs/dags.md", "docs/contract.md", "docs/mapping.md", "docs/generator.md", "docs/lineage.md"),
        *("docs/glossary.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"),
    ),
}
"""By group of the menu, its pages."""
_CONFIG = {
    "site_name": "adloom",
    "docs_dir": "source",
    "site_dir": "html",
    "theme": {
        "name": "material",
        # Nothing is loaded from elsewhere.
        "font": False,
        "features": ["navigation.tabs", "navigation.top", "toc.follow", "content.code.copy", "search.highlight"],
        "palette": [
            {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "indigo"},
            {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "indigo"},
        ],
    },
    "markdown_extensions": ["tables", "toc", "pymdownx.superfences", "pymdownx.highlight"],
    "validation": {"anchors": "warn", "links": {"anchors": "warn", "not_found": "warn"}},
    "plugins": ["search"],
}


def main() -> int:
    """Builds the site and says where it is."""
    shutil.rmtree(_SITE, ignore_errors=True)
    pages = [page for section in _NAV.values() for page in section]
    missing = {f"docs/{page.name}" for page in (_ROOT / "docs").glob("*.md")} - set(pages)
    if missing:
        sys.stderr.write(f"docs: {', '.join(sorted(missing))} must have a place in _NAV of {Path(__file__).name}\n")
        return 1
    for page in pages:
        _put(page)
        for link in _LINK.findall((_ROOT / page).read_text(encoding="utf-8")):
            target = (_ROOT / page).parent / link
            if not link.startswith(("http:", "https:")) and target.is_file():
                _put(str(target.resolve().relative_to(_ROOT)))
    nav = [{title: list(section)} for title, section in _NAV.items()]
    # JSON is YAML.
    (_SITE / "mkdocs.yml").write_text(json.dumps(_CONFIG | {"nav": nav}, indent=2), encoding="utf-8")
    command = [python_of("docs"), "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(_SITE / "mkdocs.yml")]
    done = subprocess.run(command, check=False)
    if done.returncode == 0:
        sys.stdout.write(f"site: {_SITE / 'html' / 'index.html'}\n")
    return done.returncode


def _put(file: str) -> None:
    place = _SITE / "source" / file
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_ROOT / file, place)


if __name__ == "__main__":
    sys.exit(main())
