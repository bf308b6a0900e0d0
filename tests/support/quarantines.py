"""Lakes with a quarantine: records put into bronze under one mapping, to be requeued under another."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.ingest.judge import judge
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.spark.write_delta import append_rows
from tests.support.foreign import SOURCE, settings_for

_RIGHT_TYPES = SOURCE["event_type"]
WRONG_TYPES = _RIGHT_TYPES.replace("'clk'", "'klick'")
"""The mapping of event types with a mistake: no record is a click."""
RIGHT = settings_for(SOURCE)
WRONG = settings_for({**SOURCE, "event_type": WRONG_TYPES})


@dataclass(frozen=True)
class Record:
    """A record as a source gives it."""

    raw: bytes
    place: str
    received: datetime
    origin: str | None = None
    meta: str | None = None


def put(
    spark: SparkSession, lake: Lake, batch: int, time: datetime, records: Sequence[Record], settings: Settings
) -> None:
    """Judges ``records`` by ``settings`` and appends them to bronze, as the batch ``batch`` of ``time``."""
    values = [(bytearray(one.raw), one.place, one.origin, time, one.received, one.meta) for one in records]
    names = (
        "bytes BINARY, source STRING, origin STRING, ingest_time TIMESTAMP, received_time TIMESTAMP, "
        "received_meta STRING"
    )
    frame = spark.createDataFrame(values, names).coalesce(1).withColumn("raw", F.col("bytes").cast("string"))
    append_rows(judge(frame.drop("bytes"), settings), lake, BRONZE_EVENTS, CommitNote(writer="test", batch=batch))
