"""Commands that come to an end by themselves."""

from datetime import UTC
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption, parse_time
from spark_jobs.contracts.errors import SettingsError

app = typer.Typer()
_PANEL = "From files, to the end"


@app.command(rich_help_panel=_PANEL)
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


@app.command(
    rich_help_panel=_PANEL,
    epilog="Examples:  adloom generate --out events --events 100000 --seed 7 --late 0.01   |   "
    "adloom generate --kafka localhost:9092 --rate 1000",
)
def generate(
    out: Annotated[
        Path | None, typer.Option(help="Folder to write into; made if it does not exist.", metavar="DIR")
    ] = None,
    kafka: Annotated[
        str | None,
        typer.Option(
            help="Brokers to send to instead; the user and TLS as in the settings kafka.*", metavar="HOST:PORT"
        ),
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
    begin = parse_time(start, "--start")
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


@app.command(rich_help_panel=_PANEL, epilog="Example:  adloom run --source events --lake lake --drain")
def run(
    source: Annotated[Path, typer.Option(help="Folder of JSON Lines files (.jsonl, .jsonl.gz).", metavar="DIR")],
    lake: LakeOption,
    drain: Annotated[
        bool, typer.Option("--drain", help="At the end close every open impression, click and session.")
    ] = False,
    measure: Annotated[bool, typer.Option(help="Count campaigns, averages and the status of users, too.")] = True,
    config: ConfigOption = None,
) -> None:
    """Take all new files through to gold: judge, deduplicate, join, sessionize, and balance the accounts.

    Without --drain what is still open stays open, and the next run on the same lake goes on there. A run that was
    killed is repaired by running it again.
    """
    from spark_jobs.console.run import run_lake

    run_lake(source, lake, drain=drain, measure=measure, config=config)


@app.command(
    rich_help_panel=_PANEL, epilog="Exit code 1 when an expectation fails; with --critical, when a critical one does."
)
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


@app.command(rich_help_panel=_PANEL, epilog="Example:  adloom report --lake s3a://ads/lake")
def report(lake: LakeOption, config: ConfigOption = None) -> None:
    """Draw what the tables say, as one HTML page of charts among the lake's reports.

    Clicks and click-through rates by campaign, delays, sessions, users, what was late, doubled or broken.
    """
    from spark_jobs.console.overview import write_report

    write_report(lake, config=config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom backfill --from 2026-03-01T00:00:00Z --to 2026-03-02T00:00:00Z --lake s3a://ads/lake",
)
def backfill(
    begin: Annotated[str, typer.Option("--from", help="Where the window begins, with offset or Z.", metavar="T")],
    end: Annotated[str, typer.Option("--to", help="Where it ends; this moment is outside.", metavar="T")],
    lake: LakeOption,
    config: ConfigOption = None,
) -> None:
    """Compute a past window of gold anew from bronze, beside the live tables, and tell which rows differ.

    The live tables stay as they are. A row may differ because its events came too late, because the live job has not
    come to it yet (open), or because somebody has changed the table.
    """
    from spark_jobs.console.backfill import backfill_window

    backfill_window(parse_time(begin, "--from"), parse_time(end, "--to"), lake, config)


@app.command(rich_help_panel=_PANEL, epilog="Example:  adloom show attributions --lake lake --limit 5")
def show(
    table: Annotated[str, typer.Argument(help="A table's name, as bronze or sessions; or quarantine, or failing.")],
    lake: LakeOption,
    limit: Annotated[int, typer.Option(help="Rows to show.", min=1, metavar="N")] = 20,
    config: ConfigOption = None,
) -> None:
    """Show rows of a table: quarantine is bronze without ok; failing are the rows that failed validation."""
    from spark_jobs.console.show import show_table

    show_table(table, lake, limit, config)


@app.command(rich_help_panel=_PANEL)
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
