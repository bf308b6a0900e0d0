"""Whether a change made a run more expensive: CPU seconds of this checkout and of an earlier commit.

`make bench-guard` runs both in turns over the same input, the same command with each one's own packages, and prints the
ratio of each pair. It is no test: machines are noisy, and some changes are worth what they cost.
"""

import json
import shutil
import statistics
import subprocess
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.common import make_events
from benchmarks.measure import Cost, run_measured

_HERE = Path(__file__).parents[1]


def main(
    against: Annotated[
        str, typer.Option(help="A commit; default: the last one, or with nothing uncommitted the one before.")
    ] = "",
    events: Annotated[int, typer.Option(min=1000, help="How many good ones.")] = 200_000,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each, in turns.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder for input, lakes and results; replaced.")] = Path(
        "build/bench-guard"
    ),
) -> None:
    """Compare what `adloom run --drain` costs here and at an earlier commit."""
    console, place = Console(), out.absolute()
    shutil.rmtree(place, ignore_errors=True)
    commit = _git("rev-parse", "--short", against or ("HEAD" if _git("status", "--porcelain") else "HEAD~1"))
    with console.status(f"writing {events:,} events"):
        make_events(events, place / "events")
    before = place / "before"
    _git("worktree", "prune")
    _git("worktree", "add", "--detach", str(before), commit)
    try:
        with console.status(f"setting up {commit}"):
            subprocess.run(["bash", "infra/setup.sh"], cwd=before, check=True, capture_output=True)
        pairs = _measure(console, before, place, rounds)
    finally:
        _git("worktree", "remove", "--force", str(before))
    _report(console, commit, pairs, place)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=_HERE, check=True, capture_output=True, text=True).stdout.strip()


def _measure(console: Console, before: Path, place: Path, rounds: int) -> list[tuple[Cost, Cost]]:
    """Of each round, what the earlier commit and this checkout cost; which of them is first takes turns."""
    pairs = []
    with Progress(console=console) as progress:
        task = progress.add_task("runs", total=2 * rounds)
        for number in range(rounds):
            costs = {}
            for checkout in (before, _HERE) if number % 2 == 0 else (_HERE, before):
                costs[checkout] = _run(checkout, place)
                progress.advance(task)
            pairs.append((costs[before], costs[_HERE]))
    return pairs


def _run(checkout: Path, place: Path) -> Cost:
    lake = place / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    adloom = str(checkout / ".venv" / "bin" / "adloom")
    return run_measured(
        [adloom, "run", "--source", str(place / "events"), "--lake", str(lake), "--drain"], place / "log.txt"
    )


def _report(console: Console, commit: str, pairs: list[tuple[Cost, Cost]], place: Path) -> None:
    table = Table("", title=f"{len(pairs)} paired runs, here and at {commit}: medians")
    for heading in (commit, "here", "ratio", "least", "most"):
        table.add_column(heading, justify="right")
    results: dict[str, dict[str, float]] = {}
    for name, title in (("cpu_s", "CPU s"), ("wall_s", "wall s"), ("peak_mib", "peak MiB")):
        then, now = ([getattr(pair[side], name) for pair in pairs] for side in (0, 1))
        ratios = [b / a for a, b in zip(then, now, strict=True)]
        figures = (statistics.median(then), statistics.median(now), statistics.median(ratios), min(ratios), max(ratios))
        results[name] = dict(zip(("before", "here", "ratio", "least", "most"), figures, strict=True))
        table.add_row(title, *(f"{one:,.1f}" for one in figures[:2]), *(f"{one:.3f}" for one in figures[2:]))
    (place / "results.json").write_text(json.dumps({"against": commit, **results}, indent=2) + "\n")
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
