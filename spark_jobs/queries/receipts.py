"""The time at which a batch counts as received: its ``ingest_time``, which never goes back.

::

    the clock says    12:00  12:01   set back: 11:30          11:31                 12:01
    batches count as  12:00  12:01             12:01:00.000001  12:01:00.000002 …   12:01:00.000009, then by the clock

Of several copies of an event the one that was received first counts, and what a query has read is found by the times of
receipt. So a clock that is set back, or a second machine whose clock lies behind, must not turn their order round.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import EPOCH, microseconds
from spark_jobs.contract.tables import Table
from spark_jobs.lake.batches import last_arrival
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.spark.columns import uncompiled


class ReceiptClock:
    """Says for each batch of the only writer of ``table`` when it counts as received.

    Args:
        lake: where the table lies.
        table: has ``ingest_time``.
        last: the note of its last batch; None: it has none.
    """

    def __init__(self, lake: Lake, table: Table, last: CommitNote | None) -> None:
        self._last = last
        received = last_arrival(lake, table, lake.newest_commit(table.path) or 0)
        self._last_us = microseconds(received - EPOCH) if received else 0

    def corrected(self, planned_us: int, *, writer: str, batch_id: int) -> int:
        """When the batch counts as received (microseconds since 1970); 0: as it was planned, at ``planned_us``."""
        last = self._last
        if last and (last.writer, last.batch) == (writer, batch_id):
            return last.received_us  # it is in the table already, and runs again after a crash
        is_behind = planned_us <= self._last_us
        self._last_us = max(planned_us, self._last_us + 1)
        return self._last_us if is_behind else 0


def as_received(rows: DataFrame, note: CommitNote) -> DataFrame:
    """``rows`` with the time of receipt that ``note`` has, if it has one."""
    if not note.received_us:
        return rows
    return rows.withColumn("ingest_time", uncompiled(F.timestamp_micros(F.lit(note.received_us))))
