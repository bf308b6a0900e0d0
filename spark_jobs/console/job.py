"""``adloom job``: runs a job until it is stopped, logging to stderr for a supervisor."""

import logging
import os
import sys
import time
from pathlib import Path

from expectations.contract import contract_of
from spark_jobs.contracts.durations import format_duration
from spark_jobs.contracts.settings import Settings, load_settings
from spark_jobs.jobs.service import Outcome
from spark_jobs.jobs.service import run_job as run_job_queries
from spark_jobs.lake.layout import Lake
from spark_jobs.runtime import shared_java
from spark_jobs.runtime.java import Lifetime
from spark_jobs.runtime.lakes import check_store, open_lake
from spark_jobs.runtime.logs import spark_log
from spark_jobs.runtime.session import start_session, stop_session
from spark_jobs.runtime.stopping import StopRequest, stop_on_signals

_TERMINATED = 143
"""The exit code of a process ended by SIGTERM."""
_log = logging.getLogger("adloom")


def run_job(job: str, location: str, *, source: Path | None, config: Path | None) -> None:
    """Runs ``job`` on the lake at ``location`` until a signal stops it.

    Raises:
        AdloomError: see :mod:`spark_jobs.jobs.service`.
    """
    _log_to_stderr()
    settings = load_settings(config, os.environ)
    check_store(open_lake(location, settings.s3))
    lake = open_lake(location, settings.s3, is_patient=True)
    with stop_on_signals() as stop:
        outcome = _run(job, settings, lake, stop, source)
    if outcome is Outcome.ABORTED:
        why = "a second signal" if stop.is_urgent else f"job.stop_timeout {format_duration(settings.job.stop_timeout)}"
        _log.warning("%s: interrupted by %s; the next start repeats the running batches", job, why)
        logging.shutdown()
        # Bypasses Spark, which would wait for the batches. Java ends with this process.
        os._exit(_TERMINATED)
    _log.info(
        "%s: %s", job, "everything is processed" if outcome is Outcome.DONE else "stopped after the running batches"
    )


def _run(job: str, settings: Settings, lake: Lake, stop: StopRequest, source: Path | None) -> Outcome:
    log = spark_log(lake, settings.job, job)
    _log.info("%s: starting Spark for lake %s, process %d, logging to %s", job, lake.root, os.getpid(), log)
    spark = start_session(settings, lake=lake, log_file=log, lifetime=Lifetime.SERVICE)
    if where := shared_java.place():
        _log.info("%s: shares %s", job, where)
    outcome = None
    try:
        outcome = run_job_queries(spark, settings, lake, job, stop, source=source, contract=contract_of(settings))
        return outcome
    finally:
        if outcome is not Outcome.ABORTED:
            stop_session(spark)


def _log_to_stderr() -> None:
    formatter = logging.Formatter("%(asctime)sZ %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    for name in ("adloom", "spark_jobs"):
        logging.getLogger(name).setLevel(logging.INFO)
        logging.getLogger(name).addHandler(handler)
