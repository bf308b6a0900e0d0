"""The queries of a bounded run, working in step."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.contract.tables import Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.queries.initial_state import is_ready
from spark_jobs.queries.output import BatchContext
from spark_jobs.queries.query import Query

Begin = Callable[[Query, BatchContext], StreamingQuery]
"""Starts a query; each of its batches is to be written within the context."""


class Flow:
    """Queries in step: a batch is written once all readers of its table have consumed the previous ones.

    So a batch of one query is a batch of the next, and state stays as small as in a live stream, however large the
    backlog. A query starts when the table that it reads has its first rows: an empty batch costs seconds.
    """

    def __init__(self, queries: Iterable[Query], lake: Lake, begin: Begin) -> None:
        """Nothing starts yet.

        Args:
            queries: all participants.
            lake: their lake.
            begin: starts one of them.
        """
        self._queries, self._lake, self._begin = tuple(queries), lake, begin
        self._running: dict[Query, StreamingQuery] = {}

    @property
    def running(self) -> dict[Query, StreamingQuery]:
        """The queries that were started and not stopped."""
        return dict(self._running)

    def take_in(self) -> list[StreamingQuery]:
        """Starts the queries that read input from outside."""
        return [self._started(query) for query in self._queries if not query.reads]

    def catch_up(self, table: Table) -> None:
        """Returns when every query that reads ``table`` has consumed its current content."""
        # All of them start first, to work in parallel.
        for query in [self._started(query) for query in self._readers(table) if self._can_start(query)]:
            query.processAllAvailable()

    def finish(self, table: Table) -> None:
        """Like :meth:`catch_up`, and then for the tables that those queries write, to the end of the flow."""
        self.catch_up(table)
        for query in self._readers(table):
            self.finish(query.writes)

    def stop_writers_of(self, table: Table) -> None:
        """Stops the queries that write ``table``, and all that come before them."""
        for query in self._queries:
            if query.writes == table:
                for read in query.reads:
                    self.stop_writers_of(read)
                self._stop(query)

    def stop(self) -> None:
        """Stops all running queries."""
        for query in self.running:
            self._stop(query)

    def _readers(self, table: Table) -> list[Query]:
        return [query for query in self._queries if table in query.reads]

    def _can_start(self, query: Query) -> bool:
        return query in self._running or is_ready(query, self._lake)

    def _started(self, query: Query) -> StreamingQuery:
        if query not in self._running:
            self._running[query] = self._begin(query, partial(self._caught_up, query.writes))
        return self._running[query]

    @contextmanager
    def _caught_up(self, table: Table, _note: CommitNote) -> Iterator[None]:
        self.catch_up(table)
        yield

    def _stop(self, query: Query) -> None:
        if query in self._running:
            self._running.pop(query).stop()
