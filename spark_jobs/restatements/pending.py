"""The events that were too late for gold and that no repair has applied yet.

A repair applies them; a replay explains differences by them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.events import KEY
from spark_jobs.contract.tables import LATE_EVENTS, SILVER_EVENTS
from spark_jobs.lake.log import BatchSpan
from spark_jobs.lake.notes import CommitNote, version_reached
from spark_jobs.queries.arrivals import read_up_to, spans_read
from spark_jobs.queries.correction import Correction
from spark_jobs.queries.deduplicate.query import QUERY as DEDUPLICATE
from spark_jobs.queries.facts import IS_EXPIRED
from spark_jobs.queries.initial_state import has_taken
from spark_jobs.queries.kept_columns import with_columns
from spark_jobs.queries.manifests import read_manifest
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.places import checkpoint_in_use
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import QUERIES
from spark_jobs.restatements.late_events import late_for, new_late_events, replaced
from spark_jobs.restatements.plan import events_key
from spark_jobs.restatements.plans import LastRepair
from spark_jobs.spark.open_lake import OpenLake

IS_PENDING = "waits"
"""Column: whether an event waits for the next repair."""


@dataclass(frozen=True)
class TableToCorrect:
    """A table to correct: its query, and the progress of that query when it was read."""

    query: Query
    correction: Correction
    version: int
    note: CommitNote
    silver_version: int

    @property
    def watermark(self) -> datetime | None:
        """The watermark of the query's last batch; None: it had no watermark."""
        return self.note.watermark


def tables_to_correct(lake: OpenLake) -> list[TableToCorrect]:
    """The existing tables that are corrected, in the order in which rows flow."""
    return [found for query in QUERIES if (found := _wanted(lake, query))]


def _wanted(lake: OpenLake, query: Query) -> TableToCorrect | None:
    table = query.writes
    if not query.is_corrected(lake.settings) or not lake.has(table):
        return None
    if query.initial_state and query.initial_state.known and has_taken(lake, query):
        return None  # the events behind its initial state are unknown, so nothing can be recomputed
    version = lake.newest_commit(table.path) or 0
    note = last_note(lake, query.name, until=version)
    if note is None:
        return None
    return TableToCorrect(query, query.correction(), version, note, min(map(version_reached, note.reached)))


class PendingLateEvents:
    """The late events since the last repair, and those that waited then.

    Args:
        lake: the lake.
        before: the last repair; None: this is the first.
        kept: stores the new late events, so that they are computed once.
        since: late events with earlier times are left out; None: all count.
    """

    def __init__(
        self,
        lake: OpenLake,
        before: LastRepair | None,
        kept: Callable[[DataFrame], DataFrame],
        *,
        since: datetime | None = None,
    ) -> None:
        self._lake, self._kept = lake, kept
        self._before = before.plan if before else None
        self._failed = before.failed if before else ()
        self._oldest = since
        self.silver_version = lake.newest_commit(SILVER_EVENTS.path) or 0
        """The version of silver that was read."""

    @cached_property
    def spans(self) -> list[BatchSpan]:
        """The batches of ``deduplicate`` since the last repair."""
        return spans_read(self._lake, DEDUPLICATE, self._since_bronze, until=self.silver_version)

    @property
    def bronze_version(self) -> int:
        """The version of bronze up to which ``deduplicate`` has read."""
        return self.spans[-1].last if self.spans else self._since_bronze

    @property
    def _since_bronze(self) -> int:
        return self._before.bronze_version if self._before else -1

    def has_any(self, wanted: list[TableToCorrect]) -> bool:
        """Whether anything can be pending."""
        before = self._before
        if self.spans or before is None or before.pending or self._failed:
            return True
        return any(one.silver_version > self._since(one.query) for one in wanted)

    @cached_property
    def fresh(self) -> DataFrame | None:
        """Events that were late for silver and are not in ``silver/late_events`` yet; None: no event.

        The columns of ``silver/late_events`` without ``repair``.
        """
        silver = read_up_to(self._lake, SILVER_EVENTS, self.silver_version)
        found = new_late_events(self._lake, self.spans, silver) if self.spans else None
        found = None if found is None else self._kept(found)
        return None if found is None or found.isEmpty() else found

    @cached_property
    def known(self) -> DataFrame | None:
        """All events that were late for silver and are not too old, expired ones too; None: no event."""
        there = self._lake.read(LATE_EVENTS) if self._lake.has(LATE_EVENTS) else None
        found = [rows for rows in (there, self.fresh) if rows is not None]
        if not found:
            return None
        rows = found[0] if len(found) == 1 else found[0].unionByName(found[1], allowMissingColumns=True)
        if self._oldest:
            rows = rows.where(F.col("event_time") >= F.lit(self._oldest))
        return rows.drop("repair").persist()

    @cached_property
    def late(self) -> DataFrame | None:
        """The events of :attr:`known` that have not expired; None: no event."""
        return None if self.known is None else _counting(self.known)

    def events(self, one: TableToCorrect, silver: DataFrame, dates: Sequence[date] | None = None) -> DataFrame | None:
        """The events that were late for the table, and copies that are replaced; None: no event.

        Args:
            one: the table.
            silver: the rows that its query has read.
            dates: only events of these dates; None: of all.

        Returns:
            The columns of silver, ``cause`` and ``is_counted``.
        """
        name = one.query.writes.name
        spans = spans_read(self._lake, one.query, self._since(one.query), until=one.version)
        counted, found = F.lit(True).alias("is_counted"), []
        if (own := late_for(self._lake, spans)) is not None:
            found.append(own.select("*", counted))
        on_time = None if self.fresh is None else _counting(self.fresh)
        if self._before and name not in self._before.tables:
            # Earlier repairs found late events while this table had no rows, or was not corrected.
            on_time = self.late
        if on_time is not None:
            found.append(on_time.select("*", counted))
        if self._before and name in self._before.tables and self._before.tables[name].events:
            earlier = self._lake.read_parquet(events_key(self._before.folder, name))
            chosen = earlier if name in self._failed else earlier.where(IS_PENDING)
            found.append(chosen.drop(IS_PENDING))
        if self.late is not None and (spans or on_time is not None):
            copies = replaced(self._lake, spans, silver, self.late, on_time)
            found.append(copies.select("*", F.lit(False).alias("is_counted")))
        if not found:
            return None
        if dates is not None:
            found = [rows.where(F.col("event_date").isin(list(dates))) for rows in found]
        rows = found[0]
        for more in found[1:]:
            rows = rows.unionByName(more, allowMissingColumns=True)
        # Events that waited may be older than a kept column.
        whole = with_columns(rows, dict(silver.dtypes))
        return whole.dropDuplicates([*KEY, "event_time", "is_counted"]).localCheckpoint()

    def _since(self, query: Query) -> int:
        """The version of silver up to which a repair has looked for late events, or there were none for ``query``."""
        part = self._before.tables.get(query.writes.name) if self._before else None
        if part:
            return part.silver_version
        manifest = read_manifest(self._lake, query.name, checkpoint_in_use(self._lake, query.name))
        return manifest.at_rest_until if manifest else -1


def _counting(known: DataFrame) -> DataFrame:
    return known.where(~F.col(IS_EXPIRED)).drop(IS_EXPIRED)
