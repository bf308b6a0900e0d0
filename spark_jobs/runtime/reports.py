"""What the queries of a lake told of themselves."""

from collections.abc import Iterable, Iterator

from spark_jobs.contracts.lake import Lake, progress_key
from spark_jobs.contracts.progress import QueryReport
from spark_jobs.runtime.records import find_record


def read_report(lake: Lake, query: str) -> QueryReport | None:
    """What ``query`` last told; None if it has not run, or what it told is damaged or of another version."""
    return find_record(lake, progress_key(query), QueryReport)


def read_reports(lake: Lake, queries: Iterable[str]) -> Iterator[QueryReport]:
    """What those of ``queries`` that can be read last told, in their order."""
    for query in queries:
        if report := read_report(lake, query):
            yield report
