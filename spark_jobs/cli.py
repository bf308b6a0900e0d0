"""The command ``adloom``."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from spark_jobs import __version__
from spark_jobs.contracts.errors import AdloomError, SettingsError

app = typer.Typer(
    name="adloom",
    help="Joins ad impressions with clicks: exact, validated Delta tables from late, repeated and broken events.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

LakeOption = Annotated[
    str, typer.Option(help="Folder or file:/// URI that holds the tables; made if it does not exist.", metavar="URI")
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="Settings as a TOML file; `adloom settings` lists them.", metavar="FILE")
]


@app.command(
    epilog="Examples:  adloom generate --out events --events 100000 --seed 7 --late 0.01   |   "
    "adloom generate --kafka localhost:9092 --rate 1000"
)
def generate(
    out: Annotated[
        Path | None, typer.Option(help="Folder to write into; made if it does not exist.", metavar="DIR")
    ] = None,
    kafka: Annotated[
        str | None, typer.Option(help="Brokers to send to instead; user and TLS by [kafka].", metavar="HOST:PORT")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Topic to send to; by default the first of kafka.topics.", metavar="NAME")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Records a second to send; by default as fast as it goes.", metavar="R")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(help="Folder of JSON Lines files to send instead of new events.", metavar="DIR")
    ] = None,
    keep_times: Annotated[
        bool, typer.Option("--keep-times", help="Send event times as they are, not moved to now.")
    ] = False,
    events: Annotated[int, typer.Option(help="Good events, each counted once.", metavar="N")] = 100_000,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal bytes.", metavar="S")] = 0,
    duplicates: Annotated[float, typer.Option(help="Share of good events sent twice.", metavar="P")] = 0.03,
    late: Annotated[float, typer.Option(help="Share of good events that come hours late.", metavar="P")] = 0.002,
    malformed: Annotated[
        float, typer.Option(help="Broken records, as a share of the good events.", metavar="P")
    ] = 0.005,
    orphans: Annotated[float, typer.Option(help="Share of clicks whose impression never comes.", metavar="P")] = 0.02,
    start: Annotated[
        str, typer.Option(help="When the traffic begins, with offset or Z.", metavar="T")
    ] = "2025-01-06T00:00:00Z",
    hours: Annotated[float, typer.Option(help="How long it goes on.", metavar="H")] = 24.0,
    files: Annotated[int, typer.Option(help="Files of equal length, in order of arrival.", metavar="K")] = 24,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the files.")] = False,
    config: ConfigOption = None,
) -> None:
    """Write seeded, realistic events, a day of ad traffic with its faults: to files, or to Kafka as if it were now."""
    from spark_jobs.console.generate import generate_events, send_events
    from spark_jobs.generator.spec import GeneratorSpec

    if (out is None) == (kafka is None):
        raise SettingsError("give either --out DIR to write files, or --kafka HOST:PORT to send")
    if kafka is None and (topic or rate or replay or keep_times):
        raise SettingsError("--topic, --rate, --replay and --keep-times are for sending: give --kafka HOST:PORT")
    try:
        begin = datetime.fromisoformat(start)
    except ValueError as error:
        raise SettingsError(f"--start {start!r} is not a time; write it as in 2025-01-06T00:00:00Z") from error
    spec = GeneratorSpec(
        events=events,
        seed=seed,
        duplicates=duplicates,
        late=late,
        malformed=malformed,
        orphans=orphans,
        start=begin if begin.tzinfo is None else begin.astimezone(UTC),
        hours=hours,
        files=files,
        gzip=gzip,
    )
    if out is not None:
        generate_events(spec, out)
    elif kafka is not None:
        send_events(spec, kafka, topic, rate=rate, replay=replay, is_live=not keep_times, config=config)


@app.command(epilog="Example:  adloom run --source events --lake lake --drain")
def run(
    source: Annotated[Path, typer.Option(help="Folder of JSON Lines files (.jsonl, .jsonl.gz).", metavar="DIR")],
    lake: LakeOption,
    drain: Annotated[
        bool, typer.Option("--drain", help="At the end close every open impression, click and session.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Take all new files through to gold: judge, deduplicate, join, sessionize, and balance the accounts.

    Without --drain what is still open stays open, and the next run on the same lake goes on there. A run that was
    killed is repaired by running it again.
    """
    from spark_jobs.console.run import run_lake

    run_lake(source, lake, drain=drain, config=config)


job_app = typer.Typer(
    no_args_is_help=True,
    help="Run a job without end, as a Spark application of its own; SIGTERM stops it when its batches are done.",
    epilog="A second SIGTERM, or job.stop_timeout, breaks the batches off: exit code 143, and the next start does them "
    "again. Exit code 1 when a query fails, with the reason in the last line.",
)
app.add_typer(job_app, name="job")


@job_app.command("deduplicate", epilog="Example:  adloom job deduplicate --lake lake --config adloom.toml")
def job_deduplicate(
    lake: LakeOption,
    source: Annotated[
        Path | None,
        typer.Option(help="Folder of JSON Lines files to watch; without it, Kafka by [kafka].", metavar="DIR"),
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


@app.command(epilog="Exit code 1 when a change is breaking. The jobs look for themselves before they start.")
def preflight(lake: LakeOption, config: ConfigOption = None) -> None:
    """Compare the settings with those that a lake's checkpoints were made with: safe, ignored by Spark, or breaking."""
    from spark_jobs.console.checkpoints import show_preflight

    if not show_preflight(lake, config):
        raise typer.Exit(1)


@app.command()
def checkpoints(lake: LakeOption) -> None:
    """List a lake's checkpoints: begun when, by which version, batches done, size."""
    from spark_jobs.console.checkpoints import show_checkpoints

    show_checkpoints(lake)


@app.command(epilog="Ends with Ctrl-C; where the output is not a terminal it is printed once.")
def status(
    lake: LakeOption,
    once: Annotated[bool, typer.Option("--once", help="Print it once instead of keeping it up to date.")] = False,
) -> None:
    """Show what each query of a lake's jobs is doing: rate, watermark, state, late rows, backlog, last error."""
    from spark_jobs.console.status import show_status

    show_status(lake, once=once)


@app.command(epilog="The jobs of the lake must be stopped: they would go on from the time that a drain moves on to.")
def drain(lake: LakeOption, config: ConfigOption = None) -> None:
    """Take what the jobs left on the way through to gold, close all that is open, and balance the accounts.

    Events that arrive after a drain with earlier times are late.
    """
    from spark_jobs.console.run import drain_lake

    drain_lake(lake, config=config)


@app.command(epilog="Exit code 1 when an expectation fails; with --critical, when a critical one does.")
def validate(
    lake: LakeOption,
    whole: Annotated[
        bool, typer.Option("--whole", help="Validate the whole tables, not only what is new since the last time.")
    ] = False,
    critical: Annotated[
        bool, typer.Option("--critical", help="Let warnings pass: nothing new, many quarantined records.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Check the tables against their expectations and write the HTML report."""
    from spark_jobs.console.validate import validate_tables

    validation = validate_tables(lake, whole=whole, config=config)
    if validation.critical if critical else validation.failed:
        raise typer.Exit(1)


@app.command(epilog="Example:  adloom show attributions --lake lake --limit 5")
def show(
    table: Annotated[str, typer.Argument(help="bronze, quarantine, silver, attributions, sessions or failing.")],
    lake: LakeOption,
    limit: Annotated[int, typer.Option(help="Rows to show.", min=1, metavar="N")] = 20,
) -> None:
    """Show rows of a table: quarantine is bronze without ok; failing are the rows that failed validation."""
    from spark_jobs.console.show import show_table

    show_table(table, lake, limit)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demo's events and lake; replaced.", metavar="DIR")] = Path(
        "demo"
    ),
    events: Annotated[int, typer.Option(help="Good events to make.", min=1, metavar="N")] = 100_000,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal tables.", metavar="S")] = 1,
) -> None:
    """Show everything at once: a day of events, made, run, validated and reported."""
    from spark_jobs.console.demo import run_demo

    if not run_demo(out, events, seed):
        raise typer.Exit(1)


@app.command()
def settings(
    config: ConfigOption = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The defaults, as the page docs/settings.md.")] = False,
) -> None:
    """List every setting: what it means, its default, its value now, and the variable that sets it."""
    from spark_jobs.console.settings import list_settings, settings_page

    if markdown:
        typer.echo(settings_page(), nl=False)
    else:
        list_settings(config)


def _version(wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        Console().print(f"adloom {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the console command: errors meant for the user become one message and an exit code."""
    try:
        app()
    except AdloomError as error:
        Console(stderr=True).print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; the same command goes on where it stopped", highlight=False)
        sys.exit(130)
