"""``adloom generate``."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from spark_jobs.generator.generate import GeneratedSummary, generate
from spark_jobs.generator.spec import GeneratorSpec


def generate_events(spec: GeneratorSpec, out: Path) -> GeneratedSummary:
    """Makes the events of ``spec`` in ``out`` with a progress bar and says what they are."""
    console = Console()
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("generate", total=spec.events)
        summary = generate(spec, out, lambda done: bar.update(task, completed=done))
    console.print(
        f"{summary.records:,} records in {summary.files} files ({summary.bytes / 1e6:.1f} MB) in {out}: "
        f"{summary.impressions:,} impressions, {summary.clicks:,} clicks, {summary.activity:,} activity; "
        f"{summary.duplicates:,} sent twice, {summary.late:,} hours late, {sum(summary.malformed.values()):,} broken",
        highlight=False,
        soft_wrap=True,
    )
    return summary
