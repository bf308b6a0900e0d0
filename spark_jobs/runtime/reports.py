"""What the queries of a lake told of themselves."""

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from spark_jobs.contracts.lake import Lake, progress_key
from spark_jobs.contracts.progress import QueryReport


def read_report(lake: Lake, query: str) -> QueryReport | None:
    """What ``query`` last told; None if it has not run, or what it told is damaged or of another version."""
    try:
        return QueryReport.model_validate_json(lake.files.read(progress_key(query)) or b"")
    except ValidationError:
        return None


def read_reports(lake: Lake, queries: Iterable[str]) -> Iterator[QueryReport]:
    """What those of ``queries`` that can be read last told, in their order."""
    for query in queries:
        if report := read_report(lake, query):
            yield report
