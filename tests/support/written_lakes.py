"""Lakes written by hand, commit by commit, as Delta and the queries write them; no Spark."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.contract.tables import Table
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote
from spark_jobs.restatements.plan import RepairDone, RepairPlan, TablePlan, done_key, events_key, plan_key

Record = Mapping[str, Any]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_TYPES = {
    "STRING": pa.string(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "BOOLEAN": pa.bool_(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
}
_EVENTS = pa.list_(
    pa.struct([("event_time", pa.timestamp("us", "UTC")), ("event_type", pa.string()), ("event_id", pa.string())])
)


def at(minutes: float) -> datetime:
    """A time: minutes after noon."""
    return NOON + timedelta(minutes=minutes)


GOOD: Record = {
    "event_type": "click",
    "event_id": "a",
    "event_time": at(0),
    "ingest_time": at(1),
    "event_date": at(0).date(),
    "verdict": "ok",
    "source": "t/0/1",
    "source_name": "ads",
}
"""A record that fits: columns of bronze."""


def ms_at(minutes: float) -> int:
    """The same, in milliseconds since 1970."""
    return int(at(minutes).timestamp() * 1000)


class WrittenLake:
    """Writes commits to ``lake``."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._next: Counter[str] = Counter()
        self._partitions: dict[tuple[str, str], Mapping[str, str | None]] = {}

    def commit(
        self,
        table: Table,
        rows: Sequence[Record] = (),
        note: CommitNote | None = None,
        *,
        removed: Sequence[str] = (),
        moves: bool = False,
    ) -> list[str]:
        """Adds a commit with ``rows``, and takes the files ``removed`` away; returns the files added.

        If it only ``moves`` rows, it is like a compaction.
        """
        version = self._next[table.path]
        self._next[table.path] += 1
        parts: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
        for row in rows:
            parts[tuple(row.get(name) for name in table.partition_by)].append(row)
        lines: list[dict[str, Any]] = [{"commitInfo": {"userMetadata": note.as_metadata() if note else None}}]
        added = []
        for number, (values, members) in enumerate(parts.items()):
            path = f"part-{version}-{number}.parquet"
            partition = {
                name: None if value is None else str(value)
                for name, value in zip(table.partition_by, values, strict=True)
            }
            self.lake.files.write(f"{table.path}/{path}", _parquet(table, members))
            stats = json.dumps({"numRecords": len(members)})
            lines.append({"add": {"path": path, "partitionValues": partition, "dataChange": not moves, "stats": stats}})
            self._partitions[table.path, path] = partition
            added.append(path)
        for path in removed:
            held = self._partitions[table.path, path]
            lines.append({"remove": {"path": path, "dataChange": not moves, "partitionValues": held}})
        self.lake.files.write(commit_key(table, version), "\n".join(map(json.dumps, lines)).encode())
        return added

    def batch(
        self,
        table: Table,
        query: str,
        rows: Sequence[Record],
        *,
        reached: int = 0,
        watermark: float | None = None,
        frontier: float | None = None,
        settled: int = -1,
    ) -> list[str]:
        """A batch of ``query``, which has read version ``reached``, under a watermark at some minutes after noon.

        Of the versions after ``settled`` it has read the rows up to ``frontier``, in minutes after noon; None: all.
        """
        offset: dict[str, Any] = {"reservoirVersion": reached, "index": 5}
        if frontier is not None:
            held_from = {"reservoirVersion": settled, "index": 5} if settled >= 0 else None
            offset |= {"frontier_us": ms_at(frontier) * 1000, "held_from": held_from}
        note = CommitNote(
            writer="w",
            batch=self._next[table.path],
            query=query,
            watermark_ms=0 if watermark is None else ms_at(watermark),
            reached=[offset],
        )
        return self.commit(table, rows, note)

    def repair(self, number: int, bronze_version: int, waiting: Sequence[Record] = (), table: str = "sessions") -> None:
        """A repair that is done: what it looked at, and the events that wait in ``table``."""
        part = TablePlan(
            version=0,
            silver_version=0,
            watermark_ms=0,
            events=len(waiting),
            pending=len(waiting),
            inserts=0,
            deletes=0,
            frozen=0,
        )
        plan = RepairPlan(
            number=number,
            draft="d",
            decided_at=NOON,
            bronze_version=bronze_version,
            late_events=0,
            expired=0,
            tables={table: part},
        )
        names = ("event_type", "event_id", "event_time")
        held = pa.table({name: [row[name] for row in waiting] for name in names} | {"waits": [True] * len(waiting)})
        sink = pa.BufferOutputStream()
        pq.write_table(held, sink)
        self.lake.files.write(f"{events_key(plan.folder, table)}/part-0.parquet", sink.getvalue().to_pybytes())
        self.lake.files.write(plan_key(number), plan.model_dump_json().encode())
        self.lake.files.write(done_key(number), RepairDone(versions={}).model_dump_json().encode())


def _parquet(table: Table, rows: Sequence[Record]) -> bytes:
    columns = [column for column in table.columns if column.name not in table.partition_by]
    arrays = {
        column.name: pa.array([row.get(column.name) for row in rows], _TYPES.get(column.sql_type, _EVENTS))
        for column in columns
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays), sink)
    return bytes(sink.getvalue().to_pybytes())
