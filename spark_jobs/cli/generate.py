"""``adloom generate``."""

import os
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from spark_jobs.cli.options import ConfigOption, parse_time
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import SettingsError
from spark_jobs.generator.spec import GeneratorSpec

if TYPE_CHECKING:
    from spark_jobs.generator.generate import GeneratedSummary

app = typer.Typer()


@app.command(
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


def generate_events(spec: GeneratorSpec, out: Path) -> "GeneratedSummary":
    """Writes the events of ``spec`` to ``out`` with a progress bar, and prints a summary."""
    from spark_jobs.generator.generate import generate as write_events
    from spark_jobs.generator.labels import LABELS

    console = terminal()
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("generate", total=spec.events)
        summary = write_events(spec, out, lambda done: bar.update(task, completed=done))
    conversions = (
        f", {summary.conversions:,} conversions ({summary.repeats:,} of an order again, {summary.refunds:,} refunds)"
        if summary.conversions
        else ""
    )
    bots = f"; {summary.bots:,} events are of bots: see {out / LABELS}" if summary.bots else ""
    console.print(
        f"{summary.records:,} records in {summary.files} files ({summary.bytes / 1e6:.1f} MB) in {out}: "
        f"{summary.impressions:,} impressions, {summary.clicks:,} clicks, {summary.activity:,} activity{conversions}; "
        f"{summary.duplicates:,} duplicates, {summary.late:,} hours late, "
        f"{sum(summary.malformed.values()):,} malformed{bots}",
        soft_wrap=True,
    )
    return summary


def send_events(
    spec: GeneratorSpec,
    brokers: str,
    topic: str | None,
    *,
    rate: float | None,
    replay: Path | None,
    is_live: bool,
    config: Path | None,
) -> None:
    """Sends the events of ``spec``, or those in the folder ``replay``, to Kafka with a progress bar.

    Raises:
        SourceError: there is nothing to replay, the topic does not exist, or the brokers refuse the records.
    """
    from spark_jobs.generator.publish import generated_records, publish
    from spark_jobs.ingest.input_files import read_records

    console, kafka = terminal(), load_settings(config, os.environ).kafka
    kafka = kafka.model_copy(update={"bootstrap_servers": brokers, "topics": (topic or kafka.topics[0],)})
    records = read_records(replay) if replay else generated_records(spec)
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("send", total=None if replay else spec.record_count)
        sent = publish(
            records, kafka, rate=rate, is_live=is_live, on_progress=lambda done: bar.update(task, completed=done)
        )
    console.print(
        f"{sent.records:,} records sent to {kafka.topics[0]} at {brokers} in {sent.seconds:,.1f} s "
        f"({sent.records / max(sent.seconds, 1e-9):,.0f} per second)",
        soft_wrap=True,
    )
