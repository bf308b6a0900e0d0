"""Commands around the jobs that run without end."""

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.checkpoints import checkpoints_app
from spark_jobs.commands.options import ConfigOption, LakeOption
from spark_jobs.commands.releases import JobArgument, releases_app
from spark_jobs.commands.state import state_app
from spark_jobs.contracts.choices import Role

app = typer.Typer()
_PANEL = "Without end"
job_app = typer.Typer(
    no_args_is_help=True,
    help="Run a job without end, as a Spark application of its own; SIGTERM stops it when its batches are done.",
    epilog="A second SIGTERM, or job.stop_timeout, breaks the batches off: exit code 143, and the next start does them "
    "again. Exit code 1 when a query fails, with the reason in the last line.",
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
            help="Folder of JSON Lines files to watch; without it, Kafka as in the settings kafka.*", metavar="DIR"
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Records in, judged into bronze, each event once into silver; heartbeats while nothing arrives."""
    from spark_jobs.console.job import run_job
    from spark_jobs.contracts.jobs import DEDUPLICATE_JOB

    run_job(DEDUPLICATE_JOB, lake, source=source, config=config)


@job_app.command("attribute", epilog="Example:  adloom job attribute --lake lake --config adloom.toml")
def job_attribute(lake: LakeOption, config: ConfigOption = None) -> None:
    """Clicks joined to impressions, and users' events grouped into sessions, from silver."""
    from spark_jobs.console.job import run_job
    from spark_jobs.contracts.jobs import ATTRIBUTE_JOB

    run_job(ATTRIBUTE_JOB, lake, source=None, config=config)


@job_app.command("measure", epilog="Example:  adloom job measure --lake lake --config adloom.toml")
def job_measure(lake: LakeOption, config: ConfigOption = None) -> None:
    """Windows of campaigns, moving averages and the status of users, from silver."""
    from spark_jobs.console.job import run_job
    from spark_jobs.contracts.jobs import MEASURE_JOB

    run_job(MEASURE_JOB, lake, source=None, config=config)


@app.command(
    "driver",
    rich_help_panel=_PANEL,
    epilog="Example:  adloom driver attribute --lake s3a://ads/lake   It becomes the job, in the same process, and "
    "stops as by SIGTERM when its supervisor ends.",
)
def driver(
    job: JobArgument,
    lake: LakeOption,
    source: Annotated[Path | None, typer.Option(help="As of `adloom job deduplicate`.", metavar="DIR")] = None,
    config: ConfigOption = None,
) -> None:
    """Run a job by the release that is deployed for it, or by this one if none is."""
    from spark_jobs.console.releases import drive

    drive(job, lake, source, config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom submit attribute --lake s3a://ads/lake --master k8s://https://10.0.0.1:6443 "
    "--properties kubernetes.conf   (image, namespace and service account; keys are the cluster's to give)",
)
def submit(
    job: JobArgument,
    lake: LakeOption,
    master: Annotated[str, typer.Option(help="yarn, or k8s://https://host:port.", metavar="URL")],
    source: Annotated[Path | None, typer.Option(help="As of `adloom job deduplicate`.", metavar="DIR")] = None,
    properties: Annotated[
        Path | None, typer.Option(help="A file of Spark properties, which go before adloom's own.", metavar="FILE")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Put the driver of a job onto a cluster (Kubernetes or YARN), which runs it as `adloom driver` does."""
    from spark_jobs.console.submit import submit as put

    put(job, lake, master=master, source=source, config=config, properties=properties)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom init --lake s3a://ads/lake --user adloom-jobs   (with the keys of an administrator in "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and s3.endpoint set)",
)
def init(
    lake: LakeOption,
    user: Annotated[
        str | None,
        typer.Option(
            help="Make this user, with rights on this lake alone; its keys go to a profile of its name.", metavar="NAME"
        ),
    ] = None,
    role: Annotated[
        Role, typer.Option(help="What the user is for: jobs may change the lake, airflow reads it and writes reports.")
    ] = Role.JOBS,
    partitions: Annotated[int, typer.Option(min=1, help="Of a Kafka topic that is not there yet.", metavar="N")] = 1,
    config: ConfigOption = None,
) -> None:
    """Prepare what a lake needs: bucket, versions, rules, policy and user; Kafka's topics. Can be run twice."""
    from spark_jobs.console.init import prepare_lake

    prepare_lake(lake, user=user, role=role, partitions=partitions, config=config)


@app.command(rich_help_panel=_PANEL, epilog="Ends with Ctrl-C; where the output is not a terminal it is printed once.")
def status(
    lake: LakeOption,
    once: Annotated[bool, typer.Option("--once", help="Print it once instead of keeping it up to date.")] = False,
    config: ConfigOption = None,
) -> None:
    """Show what each query of a lake's jobs is doing: rate, watermark, state, late rows, backlog, last error."""
    from spark_jobs.console.status import show_status

    show_status(lake, once=once, config=config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom exporter --lake s3a://ads/lake --listen 127.0.0.1:9110   The jobs serve metrics of their "
    "own, of each query: setting job.metrics.",
)
def exporter(
    lake: LakeOption,
    listen: Annotated[str, typer.Option(help="Where to serve them.", metavar="HOST:PORT")] = "127.0.0.1:9110",
    config: ConfigOption = None,
) -> None:
    """Serve for Prometheus what is wanted of a lake's jobs, when they were last seen, what validation found."""
    from spark_jobs.console.exporter import export

    export(lake, listen=listen, config=config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Exit code 1 when a change is breaking. The jobs look for themselves before they start.",
)
def preflight(
    lake: LakeOption,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON, one object for each change, for programs.", show_default=False)
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Compare the settings with those that a lake's checkpoints were made with: safe, ignored by Spark, or breaking."""
    from spark_jobs.console.checkpoints import show_preflight

    if not show_preflight(lake, config, as_json=as_json):
        raise typer.Exit(1)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom maintain attributions sessions --lake lake   Exit code 1 when a table was passed over "
    "because the job that writes it is running.",
)
def maintain(
    lake: LakeOption,
    table: Annotated[
        list[str] | None,
        typer.Argument(help="Only these: bronze, silver, attributions, sessions.", metavar="[TABLE]..."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Put files together, but remove none.")] = False,
    config: ConfigOption = None,
) -> None:
    """Put the small files of tables together, and remove files that no reader needs any more. No row changes."""
    from spark_jobs.console.maintain import maintain_tables

    if not maintain_tables(table or [], lake, remove=not keep, config=config):
        raise typer.Exit(1)


@app.command(
    rich_help_panel=_PANEL,
    epilog="The jobs of the lake must be stopped: they would go on from the time that a drain moves on to.",
)
def drain(lake: LakeOption, config: ConfigOption = None) -> None:
    """Take what the jobs left on the way through to gold, close all that is open, and balance the accounts.

    Events that arrive after a drain with earlier times are late.
    """
    from spark_jobs.console.run import drain_lake

    drain_lake(lake, config=config)
