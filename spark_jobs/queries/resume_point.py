"""How far a query has come, from the tables of the lake alone: what its state is rebuilt from."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property

from pydantic import JsonValue
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import EPOCH, microseconds, parse_duration, time_of_us
from spark_jobs.contract.tables import Table
from spark_jobs.errors import CheckpointError
from spark_jobs.lake.batches import read_batches
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import (
    CommitNote,
    adds_rows,
    before_rows_at_rest,
    frontier_of,
    is_at_rest,
    version_opened,
    version_reached,
)
from spark_jobs.queries.initial_state import read_taken
from spark_jobs.queries.manifest import Manifest
from spark_jobs.queries.manifests import keeps_initial_state, read_manifest
from spark_jobs.queries.places import checkpoint_in_use, initial_key
from spark_jobs.queries.query import Query
from spark_jobs.queries.state_settings import setting
from spark_jobs.spark.open_lake import OpenLake

_SLACK = timedelta(seconds=1)
"""Watermarks are in milliseconds, and bounds are taken a little wider."""


@dataclass(frozen=True)
class ResumePoint:
    """Where ``query`` stood after the batch of ``note``, the last one in its table.

    The settings of ``lake`` are those that the query will run with.
    """

    lake: OpenLake
    query: Query
    note: CommitNote

    @property
    def settled_before(self) -> datetime:
        """The watermark of that batch: earlier events were decided, emitted or dropped as late."""
        return EPOCH + timedelta(milliseconds=self.note.watermark_ms)

    @cached_property
    def manifest(self) -> Manifest | None:
        """Of the checkpoint in use; None if it is missing."""
        return read_manifest(self.lake, self.query.name, checkpoint_in_use(self.lake, self.query.name))

    @cached_property
    def reached(self) -> list[int]:
        """For each entry of :attr:`Query.reads`, the last version of that table that the query has read.

        Of versions that it has begun with it may have read no further than :attr:`frontier`.
        """
        return [(version_opened if is_at_rest(end) else version_reached)(end) for end in self.note.reached]

    @property
    def frontier(self) -> datetime | None:
        """How far in event time the query has read the rows that it begins with; None: it has read them all."""
        us = frontier_of(self.note.reached[0]) if is_at_rest(self.note.reached[0]) else None
        return None if us is None else time_of_us(us)

    def read(self, table: Table) -> DataFrame:
        """The rows of ``table`` as they are now; of a table that the query reads, those that it has read.

        Raises:
            CheckpointError: the log of a table that the query reads does not go back to the position.
        """
        if table not in self.query.reads:
            return self.lake.read(table)
        return self.read_until(table, max(self.reached))

    def read_within(self, table: Table, horizon: timedelta) -> DataFrame:
        """The rows of :meth:`read` from the day (UTC) on that lies ``horizon`` before :attr:`settled_before`.

        Files of other days are not opened. The row that the watermark is derived from is among these.
        """
        rows, first = self.read(table), self.first_day(horizon)
        return rows if first is None else rows.where(F.col("event_date") >= F.lit(first))

    def first_day(self, horizon: timedelta) -> date | None:
        """The first day of :meth:`read_within`; None: it has all days."""
        horizon += _SLACK
        return None if horizon >= self.settled_before - EPOCH else (self.settled_before - horizon).date()

    @cached_property
    def received_until(self) -> datetime | None:
        """The last ``ingest_time`` that the query has read, if the log of its table no longer has what came next.

        None: the log has it, or nothing came.

        Raises:
            CheckpointError: the log has lost it, and nothing shows which rows were read.
        """
        table = self.query.table_read
        if table is None or not (lost := lost_commit(self.lake, table, min(self.reached))):
            return None
        us = read_batches(self.lake, table, lambda found: found.begins <= lost).last_arrival(lost - 1)
        if us is None or len(set(self.reached)) > 1 or self.frontier:
            raise CheckpointError(
                f"the log of table {table.name} no longer has version {lost}, the first that query {self.query.name} "
                "has not read, and nothing shows which rows are newer, because `adloom maintain` did not run while the "
                "query was down; start a new lake from the source"
            )
        return time_of_us(us)

    @property
    def begun_with(self) -> dict[str, int]:
        """The fields of a manifest that say which rows lay there when the query began, or went on after a lost log."""
        kept = {"at_rest_until", "received_after_us"}
        own = self.manifest.model_dump(include=kept) if self.manifest else {}
        return own | ({"received_after_us": microseconds(self.received_until - EPOCH)} if self.received_until else {})

    @property
    def next_positions(self) -> list[JsonValue]:
        """For each entry of :attr:`Query.reads`, the position in it that the query goes on from.

        Where the log has lost what came next, that is before the first of the rows that lie there now.
        """
        table = self.query.table_read
        if table is None or self.received_until is None:
            return self.note.reached
        newest = self.lake.newest_commit(table.path) or 0
        return [before_rows_at_rest(end, newest) for end in self.note.reached]

    def read_until(self, table: Table, version: int) -> DataFrame:
        """The rows that versions up to ``version`` of ``table`` added.

        They are read at rest, from the newest version that has just these rows: the files that an older one names may
        have been compacted and removed.

        Raises:
            CheckpointError: the log of ``table`` does not go back to ``version``.
        """
        if self.received_until:
            return self.lake.read(table).where(F.col("ingest_time") <= F.lit(self.received_until))
        rows = self.lake.read(table, version=version_at_rest(self.lake, table, version))
        if self.frontier is None:
            return rows
        # What was read before the log was lost may lie beyond the frontier.
        earlier = time_of_us(self.manifest.received_after_us if self.manifest else 0)
        return rows.where((F.col("event_time") <= F.lit(self.frontier)) | (F.col("ingest_time") <= F.lit(earlier)))

    def read_initial(self) -> DataFrame | None:
        """The rows of the initial state that the query started with, if it still counts; None without one.

        Raises:
            CheckpointError: it is not in the lake any more.
        """
        if not keeps_initial_state(self.manifest, self.query, self.lake.settings, self.lake):
            return None
        key = initial_key(self.query.name)
        if not self.lake.is_table(key):
            raise CheckpointError(
                f"query {self.query.name} began with an initial state, and its copy {self.lake.shown(key)} is gone, so "
                "the state cannot be rebuilt; restore the copy, or start a new lake from the source"
            )
        return read_taken(self.lake, self.query)

    def longest(self, name: str) -> timedelta:
        """A duration: the longer of its value in ``settings`` and its value when the checkpoint was created."""
        return max(self._now(name), self.before(name))

    def before(self, name: str) -> timedelta:
        """A duration that the state depends on: its value when the checkpoint was created; now, if that is missing."""
        if self.manifest is None:
            return self._now(name)
        (own,) = (one for one in self.query.state if one.name == name)
        return parse_duration(self.manifest.settings.get(name, own.before_it_existed))

    def _now(self, name: str) -> timedelta:
        now = setting(self.lake.settings, name)
        assert isinstance(now, timedelta), f"{name} is not a duration"  # noqa: S101 a mistake of the caller
        return now


def lost_commit(lake: Lake, table: Table, reached: int) -> int | None:
    """The version after ``reached`` if the log of ``table`` has lost it; None: it is there, or does not exist yet."""
    newest = lake.newest_commit(table.path)
    is_past = newest is not None and reached < newest
    return reached + 1 if is_past and lake.files.read(commit_key(table, reached + 1)) is None else None


def version_at_rest(lake: Lake, table: Table, reached: int) -> int | None:
    """The newest version of ``table`` with the rows of version ``reached`` and no others; None: the table as it is.

    Raises:
        CheckpointError: the log of ``table`` does not go back to ``reached``.
    """
    for version in range(reached + 1, (lake.newest_commit(table.path) or 0) + 1):
        commit = lake.files.read(commit_key(table, version))
        if commit is None:
            raise CheckpointError(
                f"the log of table {table.name} no longer has version {version}, which comes after the last one that "
                f"the query has read ({reached}): the query cannot go on there; start a new lake from the source"
            )
        if adds_rows(commit):
            return version - 1
    return None
