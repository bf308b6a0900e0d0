"""``adloom generate``."""

import os
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from spark_jobs.console.terminal import terminal
from spark_jobs.contracts.settings import load_settings
from spark_jobs.generator.generate import GeneratedSummary, generate
from spark_jobs.generator.labels import LABELS
from spark_jobs.generator.publish import generated_records, publish
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.sources.files import read_records


def generate_events(spec: GeneratorSpec, out: Path) -> GeneratedSummary:
    """Writes the events of ``spec`` to ``out`` with a progress bar, and prints a summary."""
    console = terminal()
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("generate", total=spec.events)
        summary = generate(spec, out, lambda done: bar.update(task, completed=done))
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
