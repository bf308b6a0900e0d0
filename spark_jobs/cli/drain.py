"""``adloom drain``: closes what is open, and says what that costs."""

import os
from datetime import datetime

import typer
from rich.console import Console

from spark_jobs.cli.ledger import print_account
from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.durations import format_duration
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.lake.open import open_existing
from spark_jobs.queries.jobs import MEASURE_JOB
from spark_jobs.queries.places import checkpoint_versions
from spark_jobs.queries.registry import QUERIES_OF_JOB

app = typer.Typer()


@app.command(
    epilog="Example:  adloom drain --lake lake   Stop the jobs of the lake first (`adloom stop`): running jobs would "
    "inherit the drained watermark.",
)
def drain(location: LakeOption, config: ConfigOption = None) -> None:
    """Close all that is open in a lake whose input has ended, and balance the ledger.

    A drain moves event time past everything that is open. Events that arrive later with an earlier time are late:
    silver keeps them, but gold lacks them. The drain prints up to which time. A lake can go on live after it, and is on
    time again once the wall clock has passed that time. To end jobs without moving event time, use `adloom stop`.
    """
    from spark_jobs.streams.bounded_run import run
    from spark_jobs.streams.drain import drain_lead

    console, settings = terminal(), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    console.print(
        f"A drain moves event time {format_duration(drain_lead(settings))} past the last event, to close everything "
        f"that is open. To stop running jobs without that, use `adloom stop --lake {location}`.",
    )
    with session(console, settings, lake) as opened, console.status("draining …"):
        # A drain does not start a job that never ran on this lake.
        has_measured = any(checkpoint_versions(lake, query) for query in QUERIES_OF_JOB[MEASURE_JOB])
        result = run(opened, None, drain=True, measure=has_measured)
    print_account(console, result.ledger, lake.shown())
    if result.drained_to:
        print_cost(console, settings, result.drained_to)


def print_cost(console: Console, settings: Settings, drained_to: datetime) -> None:
    """Prints which events are late from now on."""
    from spark_jobs.streams.drain import late_up_to

    late = late_up_to(settings, drained_to)
    console.print(
        f"drained: event time is {utc(drained_to, 'milliseconds')}. Of the events that arrive from now on, those with "
        f"a time up to {utc(max(late.values()), 'milliseconds')} are late: silver keeps them, but gold lacks them:",
    )
    for table, time in late.items():
        console.print(f"  {table}: up to {utc(time, 'milliseconds')}")
