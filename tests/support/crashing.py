"""`adloom` that dies right after it has committed a batch to a table, before Spark knows of it.

The environment variable CRASH_AFTER says when: ``<table>:<batch>``. It dies by SIGKILL, with its whole process group.
"""

import os
import signal

from pyspark.sql import DataFrame

from spark_jobs import cli
from spark_jobs.contracts.commits import CommitNote
from spark_jobs.contracts.lake import Lake
from spark_jobs.contracts.tables import Table
from spark_jobs.sinks import delta


def main() -> None:
    """`adloom`, doomed."""
    doomed_table, doomed_batch = os.environ["CRASH_AFTER"].split(":")
    append_rows = delta.append_rows

    def append_and_die(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
        append_rows(rows, lake, table, note)
        if (table.name, note.batch) == (doomed_table, int(doomed_batch)):
            os.killpg(os.getpgid(0), signal.SIGKILL)

    delta.append_rows = append_and_die
    cli.main()
