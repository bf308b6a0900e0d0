"""Events for spans of commits.

A span is a run: the commits of a table that one writer made since the last event. One event reports that it is
complete, with its inputs, up to which version, and its outputs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from spark_jobs.config.settings import Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import Commit
from spark_jobs.lake.notes import version_reached
from spark_jobs.lineage.facets import Event, Facets, complete, documentation, facet, job_type, schema, version
from spark_jobs.lineage.naming import Name, name_of_table, names_of_sources
from spark_jobs.queries.query import Query


@dataclass(frozen=True)
class VersionSpan:
    """Commits of one writer to the table of ``query``, oldest first; versions ``first`` to ``last`` were looked at."""

    query: Query
    writer: str
    first: int
    last: int
    changes: Sequence[Commit]

    @property
    def is_of_query(self) -> bool:
        """Whether the query itself is the writer: not a repair, a requeue or maintenance."""
        return self.writer == self.query.name


def spans(query: Query, first: int, last: int, found: Sequence[Commit]) -> Iterator[VersionSpan]:
    """The commits ``found`` between two versions, by their writer: the query, or the first word of another's name."""
    by_writer: dict[str, list[Commit]] = {}
    for change in found:
        by_writer.setdefault(_writer(query, change), []).append(change)
    for writer, changes in by_writer.items():
        if any(not change.is_empty for change in changes):
            yield VersionSpan(query, writer, first, last, changes)


def _writer(query: Query, change: Commit) -> str:
    if change.is_of(query.name):
        return query.name
    return change.note.writer.split()[0] if change.note else "maintenance"


def event_of(span: VersionSpan, lake: Lake, settings: Settings, at: datetime) -> Event:
    """The event that ``span`` is complete; ``at`` is the time (UTC) of its last commit."""
    table = span.query.writes
    output = name_of_table(lake, table)
    return complete(
        f"{output.namespace}/{output.name}#{span.first}-{span.last} {span.writer}",
        {
            "name": span.query.name if span.is_of_query else f"{span.writer}.{table.name}",
            "facets": {
                "jobType": job_type("STREAMING", "QUERY"),
                **({"documentation": documentation(span.query.summary)} if span.is_of_query else {}),
            },
        },
        settings,
        at,
        inputs=_inputs(span, lake, settings),
        outputs=[_output(span, lake, settings, output)],
    )


def _inputs(span: VersionSpan, lake: Lake, settings: Settings) -> Iterator[dict[str, object]]:
    read = span.query.table_read
    if read is None:
        for name in names_of_sources(settings):
            yield {"namespace": name.namespace, "name": name.name}
        return
    name = name_of_table(lake, read)
    notes = [change.note for change in span.changes if change.note and change.note.reached]
    facets: Facets = {"schema": schema(read)}
    if span.is_of_query and notes:
        facets["version"] = version(min(version_reached(offset) for offset in notes[-1].reached))
    yield {"namespace": name.namespace, "name": name.name, "facets": facets}


def _output(span: VersionSpan, lake: Lake, settings: Settings, name: Name) -> dict[str, object]:
    table, added = span.query.writes, [file for change in span.changes for file in change.added]
    facets: Facets = {"version": version(span.last), "schema": schema(table)}
    if span.is_of_query and span.query.table_read:
        facets["columnLineage"] = _columns(span.query, lake, settings)
    statistics = facet(
        "OutputStatisticsOutputDatasetFacet",
        rowCount=sum(file.rows or 0 for file in added),
        fileCount=len(added),
    )
    return {
        "namespace": name.namespace,
        "name": name.name,
        "facets": facets,
        "outputFacets": {"outputStatistics": statistics},
    }


def _columns(query: Query, lake: Lake, settings: Settings) -> dict[str, object]:
    assert query.table_read  # noqa: S101 asked for by the caller
    source = name_of_table(lake, query.table_read)
    fields = {
        name: {"inputFields": [{"namespace": source.namespace, "name": source.name, "field": one} for one in columns]}
        for name, columns in sources_of_columns(query, settings).items()
    }
    return facet("ColumnLineageDatasetFacet", fields=fields)


def sources_of_columns(query: Query, settings: Settings) -> dict[str, tuple[str, ...]]:
    """By column of the table of ``query``, those of the table it reads of which it is computed; without the others."""
    there = set(query.table_read.column_names) if query.table_read else set[str]()
    decided = query.column_sources(settings)
    found: dict[str, tuple[str, ...]] = {}
    for column in query.writes.columns:
        of = tuple(decided.get(column.name, ())) or column.of or (column.name,)
        if known := tuple(one for one in of if one in there):
            found[column.name] = known
    return found
