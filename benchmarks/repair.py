"""What a repair costs, by how much is late, beside recomputing everything: `make bench-repair`.

One lake is written from the events that are on time. Copies of it then receive late events, spread over all days
(the worst case: each partition is touched), and are repaired. The largest repair is compared with DuckDB.
"""

import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common import ADLOOM
from benchmarks.measure import Cost, run_measured
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec

_EVENTS_PER_FILE = 125_000
_SETTINGS = '[repair]\nhorizon = "90d"\nfreeze_after = "100d"\n'
"""Nothing is too old: the input lies in the past by event time only."""


def main(
    events: Annotated[int, typer.Option(min=1000, help="Good events, late ones included.")] = 10_000_000,
    days: Annotated[int, typer.Option(min=1, help="Over how many days.")] = 30,
    shares: Annotated[str, typer.Option(help="Late events in percent of all, largest last.")] = "0.1,1,10",
    out: Annotated[Path, typer.Option(help="Folder for input, lakes and results; input is kept.")] = Path(
        "build/bench-repair"
    ),
) -> None:
    """Measure `adloom repair` over lakes with more and more late events."""
    console, late_shares = Console(), [float(share) / 100 for share in shares.split(",")]
    with console.status(f"writing {events:,} events"):
        feeds = _make_input(events, days, late_shares, out)
    config, log = out / "settings.toml", out / "log.txt"
    config.write_text(_SETTINGS)
    costs: dict[str, Cost] = {}

    def measured(name: str, *command: str) -> None:
        with console.status(name):
            costs[name] = run_measured([*ADLOOM, *command, "--config", str(config)], log)

    base, source = out / "lake", out / "source"
    if not base.exists():
        _fill(source, out / "on time")
        measured("first run, drained", "run", "--source", str(source), "--lake", str(base), "--drain")
    for share, feed in zip(late_shares, feeds, strict=True):
        lake = out / f"lake {share:.1%}"
        shutil.rmtree(lake, ignore_errors=True)
        shutil.copytree(base, lake)
        _fill(source, out / "on time", feed)
        measured(f"{share:.1%} late: received", "run", "--source", str(source), "--lake", str(lake))
        measured(f"{share:.1%} late: repaired", "repair", "--lake", str(lake))
    measured("the next run", "run", "--source", str(source), "--lake", str(lake), "--drain")
    with console.status("DuckDB"):
        duckdb = [sys.executable, "-m", "benchmarks.duckdb_batch", str(source), str(out / "duckdb")]
        costs["DuckDB, everything"] = run_measured(duckdb, log)
    _compare(lake, log.read_text())
    _report(console, costs, out)


def _make_input(events: int, days: int, shares: list[float], out: Path) -> list[Path]:
    """Events on time in one folder, and for each share a folder of late ones, each holding those of the ones before."""
    feeds = [out / f"late {share:.1%}" for share in shares]
    made = out / "made"
    if made.exists():
        return feeds
    spec = GeneratorSpec(
        events=events, seed=1, late=0, malformed=0, hours=24 * days, files=max(1, events // _EVENTS_PER_FILE)
    )
    generate(spec, out / "all")
    rng = Random(1)
    late: list[tuple[float, str]] = []
    (out / "on time").mkdir(parents=True, exist_ok=True)
    for file in sorted((out / "all").glob("*.jsonl")):
        with (out / "on time" / file.name).open("w", encoding="utf-8") as there:
            there.writelines(_on_time(file, rng, max(shares), late))
    for share, feed in zip(shares, feeds, strict=True):
        feed.mkdir()
        _write(feed / "late.jsonl", (line for drawn, line in late if drawn < share))
    shutil.rmtree(out / "all")
    made.touch()
    return feeds


def _on_time(file: Path, rng: Random, share: float, late: list[tuple[float, str]]) -> Iterator[str]:
    """The lines of ``file`` but the ``share`` of them that is put into ``late``, each with the number drawn for it."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            drawn = rng.random()
            if drawn < share:
                late.append((drawn, line))
            else:
                yield line


def _write(file: Path, lines: Iterable[str]) -> None:
    with file.open("w", encoding="utf-8") as there:
        there.writelines(lines)


def _fill(source: Path, *folders: Path) -> None:
    """Makes ``source`` hold the files of ``folders``: a lake is fed from one folder."""
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    for file in (file for folder in folders for file in folder.iterdir()):
        (source / file.name).hardlink_to(file)


def _compare(lake: Path, output: str) -> None:
    """Discards the figures unless the repaired lake has the rows of a computation in which nothing is late."""
    ledger = json.loads((lake / "_progress" / "ledger.json").read_text())
    ours = {**ledger["attribution"], "sessions": sum(ledger["sessions"].values())}
    theirs = {name: int(count) for name, count in (line.split() for line in output.splitlines())}
    if ours != theirs:
        raise SystemExit(f"adloom found {ours}, DuckDB {theirs}: the results differ, so the figures are not comparable")


def _report(console: Console, costs: dict[str, Cost], out: Path) -> None:
    table = Table(title="repairs")
    table.add_column("")
    for heading in ("wall s", "CPU s", "peak MiB"):
        table.add_column(heading, justify="right")
    for name, cost in costs.items():
        table.add_row(name, f"{cost.wall_s:,.1f}", f"{cost.cpu_s:,.1f}", f"{cost.peak_mib:,.0f}")
    console.print(table)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    rows = {name: {"wall_s": one.wall_s, "cpu_s": one.cpu_s, "peak_mib": one.peak_mib} for name, one in costs.items()}
    (out / "results.json").write_text(json.dumps({"when": when, "costs": rows}, indent=2))
    console.print(f"results: {out / 'results.json'}")


if __name__ == "__main__":
    typer.run(main)
