"""Lakes with credit: events some of which are late, marks, and the rows that are due by the oracle."""

import shutil
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

from pyspark.sql import SparkSession

from spark_jobs.config.durations import EPOCH, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import CLICK, CONVERSION, HEARTBEAT, IMPRESSION
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    LATE_EVENTS,
    LEFT_OUT,
    MARKS,
    NET_PATHS,
    PATHS,
    SILVER_EVENTS,
    Table,
)
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.places import MARKS_WRITER
from spark_jobs.spark.write_delta import append_rows
from spark_jobs.traffic_rules.reached import Reached, RulesInUse
from tests.support.credit_oracle import Conversion, Expected, Shown, expected_credit, in_order
from tests.support.lakes import read_table, rows_by_name
from tests.support.oracle import compared_columns, expected_tables
from tests.support.source_files import read_files

Key = tuple[str, str]
"""Type and id of an event."""
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Facts:
    """What credit is computed from, as if no event had been late."""

    conversions: list[Conversion]
    shown: list[Shown]

    def credit(self, settings: Settings, marked: AbstractSet[Key] = frozenset()) -> Expected:
        """The credit that is due without the ``marked`` events."""
        conversions = [one for one in self.conversions if (CONVERSION, one.event_id) not in marked]
        shown = [one for one in self.shown if (IMPRESSION, one.impression_id) not in marked]
        shown = [
            one._replace(status="unclicked", click_id=None, click_us=None)
            if one.status == "clicked" and (CLICK, one.click_id) in marked
            else one
            for one in shown
        ]
        return expected_credit(conversions, shown, settings.credit)


def facts_of(source: Path, settings: Settings) -> Facts:
    """The facts in the files of ``source``."""
    due = expected_tables(source, settings, datetime.now(UTC))
    events = _named(due.silver, compared_columns(SILVER_EVENTS))
    conversions = [
        Conversion._make([_us(row["event_time"]) if name == "time_us" else row[name] for name in Conversion._fields])
        for row in events
        if row["event_type"] == CONVERSION
    ]
    shown = [
        Shown._make([_time_of(row, name) if name.endswith("_us") else row[name] for name in Shown._fields])
        for row in _named(due.attributions, compared_columns(ATTRIBUTIONS))
    ]
    return Facts(conversions, shown)


def credit_rows(lake: Lake, table: Table) -> list[tuple[Any, ...]]:
    """The rows of a table of credit, as the oracle has them."""
    return in_order(list(map(_plain, row)) for row in read_table(lake, table))


def due_rows(expected: Expected, table: Table) -> list[tuple[Any, ...]]:
    """Those that are due."""
    if table == LEFT_OUT:
        return expected.left_out
    return expected.paths if table in (PATHS, NET_PATHS) else expected.credits


def copy_lake(lake: Lake, folder: Path) -> Lake:
    """A copy of ``lake`` below ``folder``."""
    return open_lake(str(shutil.copytree(lake.path, folder / "lake")))


def in_order_of_arrival(made: Path) -> list[list[bytes]]:
    """The files of ``made``, and in the end what comes too late for all of them: records of the first two."""
    files = [list(records) for records in read_files(made)]
    late = [record for records in files[:2] for record in records if _is_late(record)]
    on_time = [[record for record in records if record not in late] for records in files]
    return [*on_time, late]


def draw(lake: Lake, *remainders: int) -> frozenset[Key]:
    """Some of the events that ``lake`` has, the same in each run: each of six remainders gives about a sixth."""
    return frozenset(key for key in _times(lake) if crc32(key[1].encode()) % 6 in remainders)


def mark(spark: SparkSession, lake: Lake, marked: AbstractSet[Key], rule: str = "drawn") -> None:
    """Brings the marks by ``rule`` to the events in ``marked``, in one commit, as `adloom marks` does."""
    rows = rows_by_name(lake, MARKS) if lake.has(MARKS) else []
    active = set[Key]()
    for row in sorted((row for row in rows if row["rule_id"] == rule), key=lambda row: row["marked_at"]):
        (active.discard if row["revoked"] else active.add)((row["event_type"], row["event_id"]))
    version = lake.newest_commit(MARKS.path)
    batch = 1 if version is None else version + 2
    times, marked_at = _times(lake), _BEGIN + timedelta(seconds=batch)
    changes = [(key, False) for key in marked - active] + [(key, True) for key in active - marked]
    new = [
        (*key, times[key], rule, "v1", "givt", "{}", marked_at, revoked, times[key].date()) for key, revoked in changes
    ]
    in_use = RulesInUse(digest="drawn", since=marked_at, by="a test")
    reached = Reached(in_use=in_use, marked_at_us=_us(marked_at)).model_dump(mode="json")
    note = CommitNote(writer=MARKS_WRITER, batch=batch, reached=[reached])
    append_rows(spark.createDataFrame(new, MARKS.ddl), lake, MARKS, note)


def _times(lake: Lake) -> dict[Key, datetime]:
    """By event, when it happened."""
    tables = [table for table in (SILVER_EVENTS, LATE_EVENTS) if lake.has(table)]
    rows = [row for table in tables for row in read_table(lake, table)]
    return {(row[0], row[1]): row[2].replace(tzinfo=UTC) for row in rows if row[0] != HEARTBEAT}


def _us(time: datetime) -> int:
    return microseconds(time.replace(tzinfo=UTC) - EPOCH)


def _time_of(row: dict[str, Any], name: str) -> int | None:
    time = row[f"{name.removesuffix('_us')}_time"]
    return None if time is None else _us(time)


def _named(rows: Iterable[Sequence[Any]], columns: Sequence[str]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return _us(value)
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _is_late(record: bytes) -> bool:
    """Some of each type, the same in each run."""
    types = tuple(f'{{"event_type":"{name}"'.encode() for name in (IMPRESSION, CLICK, CONVERSION))
    return record.startswith(types) and crc32(record) % 4 == 0
