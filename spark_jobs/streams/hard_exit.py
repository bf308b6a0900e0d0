"""The end of a driver while batches may still be running: at once, and before its lock is free.

Spark would wait for the batches, and meanwhile another driver could start. Java ends with its Python; one that several
commands share stops the queries of a command that is gone before it gives up what the command had locked
(:mod:`spark_jobs.spark.java_host`). A lock that is a file belongs to Java until then; a lease names Java, so that on
this machine nobody takes it as long as that is running, and expires elsewhere.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import NoReturn

from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.config.durations import format_duration
from spark_jobs.errors import LockLostError
from spark_jobs.lake.lock import Check
from spark_jobs.streams.stop_signals import StopRequest, finish_batches

FAILED = 1
"""The exit code of a driver that has lost its lock, or of which a query has failed."""
TERMINATED = 143
"""The exit code of a driver that was to stop and whose batches did not finish: that of a process ended by SIGTERM."""
End = Callable[[int, str], NoReturn]
"""Ends the process with an exit code and a reason."""
_LOOK_S = 0.5
_log = logging.getLogger(__name__)


def end_at_once(code: int, why: str) -> NoReturn:
    """Ends the process with ``code``, and ``why`` as the last line of its log, without waiting for anything."""
    _log.error("%s", why)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


@contextmanager
def guarding_lock(job: str, check_lock: Check, end: End = end_at_once) -> Iterator[None]:
    """Ends the process as soon as the lock of ``job`` is lost while the block runs.

    A thread looks, because the others may be waiting for the very store that does not let the lock be renewed. It
    writes no reports: they may be those of another driver by now.

    Args:
        job: whose lock it is.
        check_lock: says whether it is lost.
        end: ends the process.
    """
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_S):
            try:
                check_lock()
            except LockLostError as error:
                end(FAILED, f"{job}: {error}")
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()  # the lock is released after this: not while it ends the process


@contextmanager
def finishing_batches(
    job: str,
    queries: Callable[[], Sequence[StreamingQuery]],
    stop: StopRequest,
    timeout_s: float,
    end: End = end_at_once,
) -> Iterator[None]:
    """Lets the running batches of ``job`` finish when the block ends, well or not; else ends the process.

    Args:
        job: the job.
        queries: gives its queries.
        stop: a second request to stop ends the wait.
        timeout_s: how long the batches may take, in seconds: ``job.stop_timeout``.
        end: ends the process.
    """
    failure: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failure = error
        raise
    finally:
        names = [query.name for query in queries()]
        _log.info("stopping: %s", ", ".join(names) or "no query was running")
        if not finish_batches(queries(), timeout_s=timeout_s, give_up=lambda: stop.is_urgent):
            limit = f"job.stop_timeout {format_duration(timedelta(seconds=timeout_s))}"
            by = "a second signal" if stop.is_urgent else limit
            running = ", ".join(query.name for query in queries() if query.isActive)
            what = f"interrupted by {by}; the next start repeats the running batches ({running})"
            end(FAILED if failure else TERMINATED, f"{job}: {failure}; {what}" if failure else f"{job}: {what}")
