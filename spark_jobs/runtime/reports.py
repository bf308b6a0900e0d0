"""Reads the progress reports of a lake's queries."""

from collections.abc import Iterable, Iterator

from spark_jobs.contracts.progress import QueryReport
from spark_jobs.lake.layout import Lake, progress_key
from spark_jobs.runtime.records import find_record


def read_report(lake: Lake, query: str) -> QueryReport | None:
    """The latest report of ``query``; None if it has not run, or the report is damaged or from another version."""
    return find_record(lake, progress_key(query), QueryReport)


def read_reports(lake: Lake, queries: Iterable[str]) -> Iterator[QueryReport]:
    """The latest reports of ``queries``, in their order, without those that cannot be read."""
    for query in queries:
        if report := read_report(lake, query):
            yield report
