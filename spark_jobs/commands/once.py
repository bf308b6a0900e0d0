"""Commands that finish by themselves."""

from datetime import UTC
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.contract import contract_app
from spark_jobs.commands.options import ConfigOption, LakeOption, parse_time
from spark_jobs.contracts.errors import SettingsError

app = typer.Typer()
_PANEL = "Bounded: run and finish"
app.add_typer(contract_app, name="contract", rich_help_panel=_PANEL)


@app.command(rich_help_panel=_PANEL, epilog="Example:  adloom demo --out demo --events 100000")
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the events and the lake; replaced if it exists.", metavar="DIR")
    ] = Path("demo"),
    events: Annotated[int, typer.Option(help="Valid events to generate.", min=1, metavar="N")] = 100_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same tables.", metavar="S")] = 1,
) -> None:
    """Try adloom: generate a day of events, run the jobs, validate the tables and write the report."""
    from spark_jobs.console.demo import run_demo

    if not run_demo(out, events, seed):
        raise typer.Exit(1)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Examples:  adloom generate --out events --events 100000 --seed 7 --late 0.01   |   "
    "adloom generate --kafka localhost:9092 --rate 1000",
)
def generate(
    out: Annotated[Path | None, typer.Option(help="Folder to write to; created if missing.", metavar="DIR")] = None,
    kafka: Annotated[
        str | None,
        typer.Option(
            help="Send to these brokers instead; user and TLS come from the kafka.* settings.", metavar="HOST:PORT"
        ),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Topic to send to; default: the first of kafka.topics.", metavar="NAME")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Records per second; default: as fast as possible.", metavar="R")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(help="Send the JSON Lines files of this folder instead of new events.", metavar="DIR")
    ] = None,
    keep_times: Annotated[
        bool, typer.Option("--keep-times", help="Keep the event times instead of shifting them to now.")
    ] = False,
    events: Annotated[
        int, typer.Option(help="Valid events; duplicates and broken records come on top.", metavar="N")
    ] = 100_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.", metavar="S")] = 0,
    duplicates: Annotated[float, typer.Option(help="Share of valid events sent twice.", metavar="P")] = 0.03,
    late: Annotated[float, typer.Option(help="Share of valid events that arrive hours late.", metavar="P")] = 0.002,
    malformed: Annotated[
        float, typer.Option(help="Broken records, as a share of the valid events.", metavar="P")
    ] = 0.005,
    orphans: Annotated[float, typer.Option(help="Share of clicks whose impression never arrives.", metavar="P")] = 0.02,
    conversions: Annotated[float, typer.Option(help="Share of clicks that lead to a conversion.", metavar="P")] = 0.0,
    bots: Annotated[
        float,
        typer.Option(
            help="Share of the valid events that bots make. With bots, events have ip and user_agent, and labels say "
            "which ones are theirs.",
            metavar="P",
        ),
    ] = 0.0,
    start: Annotated[
        str, typer.Option(help="Start of the traffic, with offset or Z.", metavar="T")
    ] = "2025-01-06T00:00:00Z",
    hours: Annotated[float, typer.Option(help="Length of the traffic in hours.", metavar="H")] = 24.0,
    files: Annotated[
        int, typer.Option(help="Number of files, with equally many lines, in order of arrival.", metavar="K")
    ] = 24,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the files with gzip.")] = False,
    config: ConfigOption = None,
) -> None:
    """Generate realistic ad traffic, faults included, from a seed: into files, or live into Kafka."""
    from spark_jobs.console.generate import generate_events, send_events
    from spark_jobs.generator.spec import GeneratorSpec

    if (out is None) == (kafka is None):
        raise SettingsError("give either --out DIR to write files, or --kafka HOST:PORT to send")
    if kafka is None and (topic or rate or replay or keep_times):
        raise SettingsError(
            "--topic, --rate, --replay and --keep-times need a broker to send to: give --kafka HOST:PORT"
        )
    begin = parse_time(start, "--start")
    spec = GeneratorSpec(
        events=events,
        seed=seed,
        duplicates=duplicates,
        late=late,
        malformed=malformed,
        orphans=orphans,
        conversions=conversions,
        bots=bots,
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
    lake: LakeOption,
    source: Annotated[
        Path | None,
        typer.Option(
            help="Folder of files: JSON Lines (.jsonl, .jsonl.gz), or as the sources in the settings say. Default: the "
            "folders that they name.",
            metavar="DIR",
        ),
    ] = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="At the end, close every open impression, click and session.")
    ] = False,
    measure: Annotated[bool, typer.Option(help="Also run campaign_stats, moving_average and user_status.")] = True,
    config: ConfigOption = None,
) -> None:
    """Process all new files from raw records to gold tables, then balance the ledger.

    Without --drain, whatever is still open stays open and the next run on the same lake continues from there. If a run
    was killed, run it again.
    """
    from spark_jobs.console.run import run_lake

    run_lake(source, lake, drain=drain, measure=measure, config=config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Example:  adloom validate --lake lake --critical   Exit code 1 if an expectation fails; with --critical, "
    "only if a critical one does. Jobs may keep running.",
)
def validate(
    lake: LakeOption,
    whole: Annotated[
        bool, typer.Option("--whole", help="Validate whole tables instead of only the rows since the last validation.")
    ] = False,
    critical: Annotated[
        bool, typer.Option("--critical", help="Exit code 1 for critical failures only; warnings pass.")
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
    """Write a page of charts to the lake's reports.

    It shows clicks and click-through rates per campaign, delays, sessions and users, and late, duplicate and broken
    records.
    """
    from spark_jobs.console.overview import write_report

    write_report(lake, config=config)


@app.command(
    "check-events",
    rich_help_panel=_PANEL,
    epilog="Example:  adloom check-events sample.jsonl --config adloom.toml   Exit code 0: every record fits. "
    "1: some do not; each verdict comes with an example.",
)
def check_events(
    what: Annotated[str, typer.Argument(help="A file with one record a line (.gz too), or a Kafka topic.")],
    source: Annotated[
        str | None, typer.Option(help="Only this source of the settings; default: all, in order.", metavar="NAME")
    ] = None,
    limit: Annotated[
        int, typer.Option(help="Records to look at: the first of a file, the newest of a topic.", min=1, metavar="N")
    ] = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    config: ConfigOption = None,
) -> None:
    """Check which records fit the sources in the settings, before anything runs.

    No lake is touched and Spark is not started. The verdicts are those that a run would give.
    """
    from spark_jobs.console.check_events import check_events as check

    if not check(what, source=source, limit=limit, as_json=as_json, config=config):
        raise typer.Exit(1)


@app.command(
    "suggest-mapping",
    rich_help_panel=_PANEL,
    epilog="Example:  adloom suggest-mapping sample.jsonl --output adloom.toml",
)
def suggest_mapping(
    file: Annotated[
        Path,
        typer.Argument(
            help="A file of records: JSON Lines or CSV with a header (.gz too), Avro or Parquet.", metavar="FILE"
        ),
    ],
    limit: Annotated[
        int, typer.Option(help="Records to look at: the first of the file.", min=1, max=100_000, metavar="N")
    ] = 10_000,
    output: Annotated[
        Path | None, typer.Option(help="Write the draft to this new file; default: print it.", metavar="FILE")
    ] = None,
) -> None:
    """Draft the [source.NAME] sections for records of yours, as TOML with reasons.

    The draft works with check-events at once. Comments say why each field was chosen, and what is left to decide.
    """
    from spark_jobs.console.suggest_mapping import suggest_mapping as suggest

    suggest(file, limit=limit, output=output)


@app.command(rich_help_panel=_PANEL, epilog="Example:  adloom settings --config adloom.toml")
def settings(config: ConfigOption = None) -> None:
    """List every setting with its default, its current value, its environment variable and its meaning."""
    from spark_jobs.console.settings import list_settings

    list_settings(config)
