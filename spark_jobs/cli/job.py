"""``adloom job``: runs a job until it is stopped, logging to stderr for a supervisor."""

import logging
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import PlainFormatter
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import check_store, open_lake
from spark_jobs.spark.java import Lifetime
from spark_jobs.spark.logs import spark_log

if TYPE_CHECKING:
    from spark_jobs.streams.service import ServiceOutcome
    from spark_jobs.streams.stop_requests import StopRequests
    from spark_jobs.streams.stop_signals import StopRequest

app = typer.Typer(
    name="job",
    no_args_is_help=True,
    help="Run a streaming job as a Spark application of its own. SIGTERM stops it once its running batches are done.",
    epilog="Exit code 0: stopped. 143: a second SIGTERM, or job.stop_timeout, aborted the running batches; the next "
    "start repeats them. 1: a query failed, or the job lost its lock on the lake; the last line says why.",
)

_log = logging.getLogger("adloom")


@app.command("deduplicate", epilog="Example:  adloom job deduplicate --lake lake --config adloom.toml")
def deduplicate(
    location: LakeOption,
    source: Annotated[
        str | None,
        typer.Option(
            help="Folder of files to watch; without it, the folders or topics of the settings.", metavar="DIR"
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Read records, validate them into bronze, and write each event once to silver."""
    from spark_jobs.queries.jobs import DEDUPLICATE_JOB

    run_job(DEDUPLICATE_JOB, location, source=source, config=config)


@app.command("attribute", epilog="Example:  adloom job attribute --lake lake --config adloom.toml")
def attribute(location: LakeOption, config: ConfigOption = None) -> None:
    """Join clicks to impressions and group each user's events into sessions, from silver."""
    from spark_jobs.queries.jobs import ATTRIBUTE_JOB

    run_job(ATTRIBUTE_JOB, location, source=None, config=config)


@app.command("measure", epilog="Example:  adloom job measure --lake lake --config adloom.toml")
def measure(location: LakeOption, config: ConfigOption = None) -> None:
    """Compute campaign statistics, moving averages and user status, from silver."""
    from spark_jobs.queries.jobs import MEASURE_JOB

    run_job(MEASURE_JOB, location, source=None, config=config)


def run_job(job: str, location: str, *, source: str | None, config: Path | None) -> None:
    """Runs ``job`` on the lake at ``location`` until a signal stops it.

    Raises:
        AdloomError: see :mod:`spark_jobs.streams.service`.
    """
    from spark_jobs.spark.session import is_submitted
    from spark_jobs.streams.service import ServiceOutcome
    from spark_jobs.streams.stop_requests import StopRequests
    from spark_jobs.streams.stop_signals import stop_on_signals

    _log_to_stderr()
    settings = load_settings(config, os.environ)
    check_store(open_lake(location, settings.s3))
    lake = open_lake(location, settings.s3, is_patient=True)
    with stop_on_signals() as stop:
        # As early as possible: Spark takes a while to start, and whoever asks meanwhile means this driver.
        requests = StopRequests(lake, job, is_cleared=is_submitted())
        outcome = _run(job, settings, lake, stop, requests, source)
    _log.info(
        "%s: %s",
        job,
        "everything is processed" if outcome is ServiceOutcome.DONE else "stopped after the running batches",
    )


def _run(
    job: str, settings: Settings, lake: Lake, stop: "StopRequest", requests: "StopRequests", source: str | None
) -> "ServiceOutcome":
    from expectations.contract import contract_of
    from spark_jobs.spark import shared_java
    from spark_jobs.spark.open_lake import OpenLake
    from spark_jobs.spark.session import start_session, stop_session
    from spark_jobs.streams.service import run_job as run_job_queries

    log = spark_log(lake, settings.job, job)
    _log.info("%s: starting Spark for lake %s, process %d, logging to %s", job, lake.root, os.getpid(), log)
    spark = start_session(settings, lake=lake, log_file=log, lifetime=Lifetime.SERVICE)
    if where := shared_java.place():
        _log.info("%s: shares %s", job, where)
    try:
        opened = OpenLake.of(lake, settings, spark)
        return run_job_queries(opened, job, stop, requests=requests, source=source, contract=contract_of(settings))
    finally:
        stop_session(spark)


def _log_to_stderr() -> None:
    formatter = PlainFormatter("%(asctime)sZ %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    for name in ("adloom", "spark_jobs"):
        logging.getLogger(name).setLevel(logging.INFO)
        logging.getLogger(name).addHandler(handler)
