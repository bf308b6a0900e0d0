"""`adloom` that dies at a moment of a batch that is hard to hit by chance.

The environment variable CRASH_AFTER says when: ``<moment>:<table>:<batch>``; ``*`` is the first batch that a query
writes to the table, ``requeue`` the first requeue. It dies by SIGKILL, with its whole process group.

========== ============================================================================
``plan``   Spark has written down what the batch takes, and has computed nothing
``state``  the batch is computed and its state committed; the table has nothing of it
``commit`` the table has the batch, and Spark has not noted its end
========== ============================================================================
"""

import os
import signal

from pyspark.sql import DataFrame

from spark_jobs import cli
from spark_jobs.contract.tables import Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.spark import write_delta

MOMENTS = ("plan", "state", "commit")


def main() -> None:
    """`adloom`, doomed."""
    moment, doomed_table, doomed_batch = os.environ["CRASH_AFTER"].split(":")
    append_rows = write_delta.append_rows

    def append_or_die(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
        batches = ("*", str(note.batch)) if note.query else (note.writer.split()[0],)
        is_doomed = table.name == doomed_table and doomed_batch in batches
        if is_doomed and moment == "plan":
            _die()
        if is_doomed and moment == "state":
            rows.write.format("noop").mode("overwrite").save()
            _die()
        append_rows(rows, lake, table, note)
        if is_doomed:
            _die()

    write_delta.append_rows = append_or_die
    cli.main()


def _die() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)
