"""Commands for the long-running jobs."""

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.checkpoints import checkpoints_app
from spark_jobs.commands.options import ConfigOption, LakeOption
from spark_jobs.commands.releases import JobArgument, releases_app
from spark_jobs.commands.state import state_app
from spark_jobs.contracts.choices import Role
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.queries import MAINTAINED_TABLES

app = typer.Typer()
_PANEL = "Streaming: long-running jobs"
job_app = typer.Typer(
    no_args_is_help=True,
    help="Run a streaming job as a Spark application of its own. SIGTERM stops it once its running batches are done.",
    epilog="Exit code 0: stopped. 143: a second SIGTERM, or job.stop_timeout, aborted the running batches; the next "
    "start repeats them. 1: a query failed; the last line says why.",
)
app.add_typer(job_app, name="job", rich_help_panel=_PANEL)
app.add_typer(checkpoints_app, name="checkpoints", rich_help_panel=_PANEL)
app.add_typer(state_app, name="state", rich_help_panel=_PANEL)
app.add_typer(releases_app, name="releases", rich_help_panel=_PANEL)


@job_app.command("deduplicate", epilog="Example:  adloom job deduplicate --lake lake --config adloom.toml")
def job_deduplicate(
    lake: LakeOption,
    source: Annotated[
        Path | None,
        typer.Option(
            help="Folder of files to watch; without it, the folders or topics of the settings.", metavar="DIR"
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Read records, validate them into bronze, and write each event once to silver."""
    from spark_jobs.console.job import run_job
    from spark_jobs.contracts.jobs import DEDUPLICATE_JOB

    run_job(DEDUPLICATE_JOB, lake, source=source, config=config)


@job_app.command("attribute", epilog="Example:  adloom job attribute --lake lake --config adloom.toml")
def job_attribute(lake: LakeOption, config: ConfigOption = None) -> None:
    """Join clicks to impressions and group each user's events into sessions, from silver."""
    from spark_jobs.console.job import run_job
    from spark_jobs.contracts.jobs import ATTRIBUTE_JOB

    run_job(ATTRIBUTE_JOB, lake, source=None, config=config)


@job_app.command("measure", epilog="Example:  adloom job measure --lake lake --config adloom.toml")
def job_measure(lake: LakeOption, config: ConfigOption = None) -> None:
    """Compute campaign statistics, moving averages and user status, from silver."""
    from spark_jobs.console.job import run_job
    from spark_jobs.contracts.jobs import MEASURE_JOB

    run_job(MEASURE_JOB, lake, source=None, config=config)


@app.command(
    "driver",
    rich_help_panel=_PANEL,
    epilog="Example:  adloom driver attribute --lake s3a://ads/lake   The process becomes the job, and stops as on "
    "SIGTERM when its supervisor ends.",
)
def driver(
    job: JobArgument,
    lake: LakeOption,
    source: Annotated[Path | None, typer.Option(help="As for `adloom job deduplicate`.", metavar="DIR")] = None,
    config: ConfigOption = None,
) -> None:
    """Run a job with the release deployed for it and its settings, or with this installation if there is none.

    The settings given here say where the lake is. They count for all else if the release holds none.
    """
    from spark_jobs.console.releases import drive

    drive(job, lake, source, config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom submit attribute --lake s3a://ads/lake --master k8s://https://10.0.0.1:6443 "
    "--properties kubernetes.conf   The file names image, namespace and service account; keys come from the cluster.",
)
def submit(
    job: JobArgument,
    lake: LakeOption,
    master: Annotated[str, typer.Option(help="yarn, or k8s://https://host:port.", metavar="URL")],
    source: Annotated[Path | None, typer.Option(help="As for `adloom job deduplicate`.", metavar="DIR")] = None,
    properties: Annotated[
        Path | None,
        typer.Option(help="File of Spark properties that take precedence over adloom's own.", metavar="FILE"),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Submit the driver of a job to a cluster (Kubernetes or YARN), which runs it like `adloom driver`.

    Memory, cores and the like come from the settings of the release deployed for the job, if it holds some.
    """
    from spark_jobs.console.submit import submit as put

    put(job, lake, master=master, source=source, config=config, properties=properties)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom doctor --lake lake --config adloom.toml   Exit code 1: something is wrong.",
)
def doctor(
    lake: LakeOption,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    config: ConfigOption = None,
) -> None:
    """Say what is wrong, and what to do: machine, store, topics, checkpoints, tables, jobs, ledger.

    It takes seconds and may run beside the jobs. It changes nothing, but for a file of a few bytes that it writes to an
    object store and deletes, to see whether it can.
    """
    from spark_jobs.console.doctor import examine

    if not examine(lake, as_json=as_json, config=config):
        raise typer.Exit(1)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom init --lake s3a://ads/lake --user adloom-jobs   It needs s3.endpoint, and the keys of an "
    "administrator in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. It can be run again.",
)
def init(
    lake: LakeOption,
    user: Annotated[
        str | None,
        typer.Option(
            help="Create this user with access to this lake only; its keys go to an AWS profile of the same name.",
            metavar="NAME",
        ),
    ] = None,
    role: Annotated[
        Role,
        typer.Option(
            help="Rights of the user: jobs may change the lake; airflow reads it and writes reports and releases; "
            "analyst may only read gold."
        ),
    ] = Role.JOBS,
    partitions: Annotated[
        int, typer.Option(min=1, help="Partitions of a Kafka topic that has to be created.", metavar="N")
    ] = 1,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Create nothing: check that Kafka has the topics and that the bucket can be written, for which the "
            "jobs' keys are enough.",
        ),
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Prepare a lake: bucket, versioning, lifecycle rules, policy and user, and the Kafka topics."""
    from spark_jobs.console.init import check_servers, prepare_lake

    if check and user:
        raise SettingsError(f"--check creates no user, and --user {user} asks for one; leave out one of the two")
    if check:
        check_servers(lake, config=config)
        return
    prepare_lake(lake, user=user, role=role, partitions=partitions, config=config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom status --lake lake   Ctrl-C ends it. Printed once if the output is not a terminal.",
)
def status(
    lake: LakeOption,
    once: Annotated[bool, typer.Option("--once", help="Print the table once instead of refreshing it.")] = False,
    config: ConfigOption = None,
) -> None:
    """Show what each query of a lake is doing: rate, watermark, state, late rows, backlog and last error."""
    from spark_jobs.console.status import show_status

    show_status(lake, once=once, config=config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom exporter --lake s3a://ads/lake --listen 127.0.0.1:9110   The jobs serve metrics of each "
    "query themselves: setting job.metrics.",
)
def exporter(
    lake: LakeOption,
    listen: Annotated[str, typer.Option(help="Address to serve on.", metavar="HOST:PORT")] = "127.0.0.1:9110",
    config: ConfigOption = None,
) -> None:
    """Serve Prometheus metrics of a lake: which jobs should run, validation, ledger, campaigns, sessions."""
    from spark_jobs.console.exporter import export

    export(lake, listen=listen, config=config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom preflight --lake lake --config new.toml   Exit codes: 0 if the checkpoints can be used; 1 "
    "if a change is breaking; 2 if they could not be compared, with the reason on stderr. Every job makes the same "
    "check before it starts.",
)
def preflight(
    lake: LakeOption,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one object per change.", show_default=False)
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Compare the settings with those the lake's checkpoints depend on: safe, ignored, or breaking."""
    from spark_jobs.console.checkpoints import show_preflight

    if not show_preflight(lake, config, as_json=as_json):
        raise typer.Exit(1)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom maintain attributions sessions --lake lake   Exit code 1 if a table was skipped because "
    "what writes it is running.",
)
def maintain(
    lake: LakeOption,
    table: Annotated[
        list[str] | None,
        typer.Argument(help=f"Only these, of {', '.join(MAINTAINED_TABLES)}.", metavar="TABLE"),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Compact small files, but remove none.")] = False,
    config: ConfigOption = None,
) -> None:
    """Compact the small files of tables and remove files that no reader needs any more. No row changes."""
    from spark_jobs.console.maintain import maintain_tables

    if not maintain_tables(table or [], lake, remove=not keep, config=config):
        raise typer.Exit(1)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom stop attribute --lake s3a://ads/lake   A job that Airflow supervises is no longer wanted "
    "then: trigger its DAG supervise_JOB to start it again. Exit code 1 when a job has not stopped a minute after "
    "job.stop_timeout.",
)
def stop(
    lake: LakeOption,
    job: Annotated[
        list[str] | None,
        typer.Argument(help="Only these: deduplicate, attribute, measure.", metavar="JOB", show_default=False),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Stop running jobs when their batches are done, wherever they run. Nothing is lost, and event time stays.

    The next start continues where they stopped.
    """
    from spark_jobs.console.stop import stop as stop_jobs

    stop_jobs(job or [], lake, config=config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom drain --lake lake   Stop the jobs of the lake first (`adloom stop`): running jobs would "
    "inherit the drained watermark.",
)
def drain(lake: LakeOption, config: ConfigOption = None) -> None:
    """Close all that is open in a lake whose input has ended, and balance the ledger.

    A drain moves event time past everything that is open. Events that arrive later with an earlier time are late:
    silver keeps them, but gold lacks them. The drain prints up to which time. A lake can go on live after it, and is on
    time again once the wall clock has passed that time. To end jobs without moving event time, use `adloom stop`.
    """
    from spark_jobs.console.run import drain_lake

    drain_lake(lake, config=config)
