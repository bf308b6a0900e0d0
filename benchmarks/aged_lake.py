"""Makes a lake with a year behind it, within minutes: what a lake is like once it has run for a while.

::

    rows       a generated day, and the same day again for each day of the year before: a file per partition
    today      besides, hundreds of small files, as a day of commits leaves them
    logs       as many commits as 30 days have, each with the note of a batch, or of a heartbeat: silver ends with a
               fortnight of those; one checkpoint at their end
    jobs       measure has never run; the last notes of the others say that all has been read, and
               `adloom checkpoints reset` is to make their checkpoints
"""

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import HEARTBEAT, IMPRESSION
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS, Table
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.batch import Batches, batch_in, thinned
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.notes import CommitNote
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.store.objects import Objects
from spark_jobs.places import BATCHES, CHECKPOINTS, PROGRESS, batches_key
from spark_jobs.queries.jobs import MEASURE_JOB
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.query import Query
from spark_jobs.queries.registry import QUERIES, TABLES, queries_of
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.bounded_run import run

Said = Callable[[str], None]
_AT_ONCE = 20_000
"""Objects in one upload."""


@dataclass(frozen=True)
class Age:
    """How old a lake is.

    Attributes:
        days: that its rows cover.
        events: of each day.
        commits: in the logs of bronze and silver; those of gold have a thirtieth.
        heartbeats: at the end of silver's log.
        small_files: of the last day, in each partition.
        partitions: of the topic, which every note of ``ingest`` names.
    """

    days: int = 365
    events: int = 2_000
    commits: int = 259_200
    heartbeats: int = 20_160
    small_files: int = 300
    partitions: int = 12


def make_aged(spark: SparkSession, lake: Lake, objects: Objects, age: Age, work: Path, say: Said) -> None:
    """Makes ``lake``, which is empty, in the object store of ``objects``.

    Args:
        spark: a session that can write to ``work``.
        lake: the lake.
        objects: of the lake.
        age: how old it is to be.
        work: an empty folder.
        say: called with what is done next.
    """
    say("a day of events")
    local = open_lake(str(work / "lake"))
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    spec = GeneratorSpec(events=age.events, seed=1, start=today - timedelta(days=1), files=4, late=0, conversions=0.3)
    generate(spec, work / "source")
    run(OpenLake.of(local, Settings(), spark), work / "source", measure=False)
    for query in queries_of(MEASURE_JOB):
        local.files.delete_folder(query.writes.path)
    notes = {query.name: last_note(local, query.name) for query in QUERIES if local.has(query.writes)}
    for table in (one for one in TABLES if local.has(one)):
        say(f"a year of {table.path}")
        _add_days(spark, local, table, age)
    for folder in (CHECKPOINTS, PROGRESS, BATCHES):
        local.files.delete_folder(folder)
    say("upload")
    _upload(objects, ((file.key, local.files.read(file.key) or b"") for file in local.files.walk("")))
    for query in (one for one in QUERIES if one.name in notes):
        say(f"commits of {query.writes.path}")
        _add_commits(lake, objects, local, query, notes[query.name], age)


def _add_days(spark: SparkSession, lake: Lake, table: Table, age: Age) -> None:
    """Adds the rows of ``table`` again for each day before, and once more in small files; then cuts the log short."""
    rows = spark.read.format("delta").load(lake.table(table)).localCheckpoint()
    days = spark.range(1, age.days).withColumnRenamed("id", "days_ago")
    earlier = _as_of_day(rows.crossJoin(F.broadcast(days)))
    if table.partition_by:
        earlier = earlier.repartition(*table.partition_by)
    elif table.stats_columns:
        earlier = earlier.repartitionByRange(12, table.stats_columns[0])
    again = _as_of_day(rows.withColumn("days_ago", F.lit(0))).repartition(age.small_files)
    for frame in (earlier, again):
        frame.write.format("delta").mode("append").partitionBy(*table.partition_by).save(lake.table(table))
    jvm: Any = spark._jvm  # noqa: SLF001
    jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, lake.table(table)).checkpoint()  # noqa: SLF001


def _as_of_day(rows: DataFrame) -> DataFrame:
    """``rows`` as they would be ``days_ago`` days earlier, with ids of their own."""
    fields = [field for field in rows.schema if field.name != "days_ago"]
    return rows.select(*_all_moved(fields, F.col, F.col("days_ago")))


def _all_moved(fields: Iterable[T.StructField], of: Callable[[str], Column], ago: Column) -> list[Column]:
    return [_moved(of(field.name), field.name, field.dataType, ago).alias(field.name) for field in fields]


def _moved(value: Column, name: str, kind: T.DataType, ago: Column) -> Column:
    if isinstance(kind, T.TimestampType):
        return value - F.make_dt_interval(ago)
    if isinstance(kind, T.DateType):
        return F.date_sub(value, ago.cast("int"))
    if isinstance(kind, T.StringType) and (name.endswith("_id") and name not in {"campaign_id", "ad_id"}):
        return F.concat(value, F.lit("-"), ago.cast("string"))
    if isinstance(kind, T.StringType) and name == "source":
        return F.concat(F.lit("day"), ago.cast("string"), F.lit("/"), value)
    if isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.StructType):
        inner = kind.elementType.fields
        return F.transform(value, lambda one: F.struct(*_all_moved(inner, one.getField, ago)))
    return value


def _add_commits(lake: Lake, objects: Objects, local: Lake, query: Query, note: CommitNote | None, age: Age) -> None:
    """Continues the log of the table of ``query`` to the number of commits, the last of which has read everything."""
    table = query.writes
    first = (local.newest_commit(table.path) or 0) + 1
    count = age.commits if table in {BRONZE_EVENTS, SILVER_EVENTS} else age.commits // 30
    silent = age.heartbeats if table == SILVER_EVENTS else 0
    ends = {one.path: age.commits for one in (BRONZE_EVENTS, SILVER_EVENTS)}
    now = datetime.now(UTC)
    place = count - count % 50  # of the newest checkpoint
    there = [local.files.read(commit_key(table, version)) or b"" for version in range(first)]
    found = [batch_in(commit, table, version) for version, commit in enumerate(there)]
    # A day that is read in one batch leaves none; a job that has run for a while is some hours behind the newest event.
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    watermark_ms = int((midnight - timedelta(hours=3)).timestamp() * 1000) if note else 0

    def commit(version: int) -> bytes:
        at = now - timedelta(days=30) * (1 - version / count)
        is_beat = count - silent <= version < count
        reached: list[Any] = [ends[one.path] if version == count else version for one in query.reads]
        own = CommitNote(
            writer="heartbeat" if is_beat else f"aged-{query.name}",
            batch=version,
            query=None if is_beat else query.name,
            watermark_ms=watermark_ms,
            reached=[]
            if is_beat
            else [_offset(local, one, end) for one, end in zip(query.reads, reached, strict=True)]
            or [{"ads": {str(number): version for number in range(age.partitions)}}],
        )
        info = {"timestamp": int(at.timestamp() * 1000), "operation": "WRITE", "userMetadata": own.as_metadata()}
        actions: list[dict[str, Any]] = [{"commitInfo": info}]
        if version <= place:
            actions.append({"add": _added(table, version, at, HEARTBEAT if is_beat else IMPRESSION)})
        data = b"".join(json.dumps(action, separators=(",", ":")).encode() + b"\n" for action in actions)
        found.append(batch_in(data, table, version))
        return data

    _upload(objects, ((commit_key(table, version), commit(version)) for version in range(first, count + 1)))
    log = f"{table.path}/_delta_log"
    pointer = json.loads(local.files.read(f"{log}/_last_checkpoint") or b"{}")
    pointer.pop("checksum", None)  # a wrong one has Delta look through the whole log instead
    state = local.files.read(f"{log}/{pointer['version']:020}.checkpoint.parquet") or b""
    lake.files.write(f"{log}/{place:020}.checkpoint.parquet", state)
    lake.files.write(f"{log}/_last_checkpoint", json.dumps(pointer | {"version": place}).encode())
    saying = [batch for batch in found if batch.note or batch.first_us is not None]
    kept = Batches(version=count, stamp=str(int(now.timestamp() * 1000)), batches=thinned(saying))
    lake.files.write(batches_key(table.name), kept.model_dump_json(exclude_defaults=True).encode())


def _added(table: Table, version: int, at: datetime, event_type: str) -> dict[str, Any]:
    """A file of a commit; long since compacted, so that no checkpoint names it."""
    partition = {"event_type": event_type, "event_date": at.date().isoformat()}
    ends = {"ingest_time": at.isoformat()} if "ingest_time" in table.stats_columns else {}
    return {
        "path": f"aged-{version}.parquet",
        "partitionValues": {name: partition[name] for name in table.partition_by},
        "size": 1000,
        "modificationTime": int(at.timestamp() * 1000),
        "dataChange": True,
        "stats": json.dumps({"numRecords": 10, "minValues": ends, "maxValues": ends}),
    }


def _offset(local: Lake, table: Table, version: int) -> dict[str, Any]:
    first = [json.loads(line) for line in (local.files.read(commit_key(table, 0)) or b"").splitlines()]
    (metadata,) = [action["metaData"] for action in first if "metaData" in action]
    return {
        "sourceVersion": 1,
        "reservoirId": metadata["id"],
        "reservoirVersion": version + 1,
        "index": -1,
        "isStartingVersion": False,
    }


def _upload(objects: Objects, files: Iterable[tuple[str, bytes]]) -> None:
    """Writes ``files`` to a store that is MinIO: it unpacks archives."""
    for archive in _archives(files):
        objects.client.put_object(
            Bucket=objects.bucket,
            Key=objects.name("archive.tar"),
            Body=archive,
            Metadata={"snowball-auto-extract": "true", "minio-snowball-prefix": objects.prefix},
        )


def _archives(files: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    waiting = iter(files)
    while chosen := list(islice(waiting, _AT_ONCE)):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for key, data in chosen:
                entry = tarfile.TarInfo(key)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        yield packed.getvalue()
