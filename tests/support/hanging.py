"""`adloom` with a batch that never ends, and that says at its end whether it still has its lock.

Once the second batch of ``ingest`` hangs, what the environment variable HANG names happens:

=========== ============================================
``fails``   the query ``deduplicate`` fails
``loses``   the lock is lost
``nothing`` nothing: it waits to be stopped
=========== ============================================

It prints ``hanging`` when the batch does, and how it ends.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest
from pyspark.sql import DataFrame

from spark_jobs import cli
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS, Table
from spark_jobs.errors import LockLostError
from spark_jobs.lake.file_lock import is_locked
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lock import Check, hold_job
from spark_jobs.lake.notes import CommitNote
from spark_jobs.places import lock_key
from spark_jobs.queries.jobs import DEDUPLICATE_JOB
from spark_jobs.spark import open_lake, write_delta

_hangs = threading.Event()


def main() -> None:
    """`adloom`, with a batch that hangs."""
    what, append_rows, end = os.environ["HANG"], write_delta.append_rows, os._exit
    lakes: list[Lake] = []

    def append_or_hang(rows: DataFrame, lake: Lake, table: Table, note: CommitNote) -> None:
        if table == BRONZE_EVENTS and note.batch == 1:
            print("hanging", flush=True)
            _hangs.set()
            time.sleep(3600)
        if table == SILVER_EVENTS and what == "fails":
            _hangs.wait()
            raise RuntimeError("it was to fail")
        append_rows(rows, lake, table, note)

    @contextmanager
    def hold_or_lose(lake: Lake, *arguments: Any, **named: Any) -> Iterator[Check]:
        def check() -> None:
            if what == "loses" and _hangs.is_set():
                raise LockLostError("it was to lose its lock")

        lakes.append(lake)
        with hold_job(lake, *arguments, **named):
            yield check

    def say_and_end(code: int) -> NoReturn:
        is_held = is_locked(lakes[0].path / lock_key(DEDUPLICATE_JOB))
        print(f"ends at once, {'with' if is_held else 'without'} its lock", flush=True)
        end(code)

    patched = pytest.MonkeyPatch()
    patched.setattr(write_delta, "append_rows", append_or_hang)
    patched.setattr(open_lake, "hold_job", hold_or_lose)
    patched.setattr(os, "_exit", say_and_end)
    cli.main()
