"""The validation reports in the lake: which files of the lake may be served, and no others."""

import re

from spark_jobs.lake.layout import Lake
from spark_jobs.places import REPORTS

INDEX = "index.html"
_SHOWN = re.compile(
    r"index\.html|overview\.html|data_docs/(?:[A-Za-z0-9_+-][A-Za-z0-9_.+-]*/)*[A-Za-z0-9_+-][A-Za-z0-9_.+-]*\.html"
)
"""HTML pages only, and no name that starts with a dot."""


def read_page(lake: Lake, name: str) -> bytes | None:
    """The page ``name`` of the reports of ``lake``; None if there is no such page, or it is not one of the reports."""
    if not _SHOWN.fullmatch(name):
        return None
    key = f"{REPORTS}/{name}"
    if lake.is_local and not (lake.path / key).resolve().is_relative_to((lake.path / REPORTS).resolve()):
        return None  # a link that leads out of the reports
    return lake.files.read(key)
