"""The cost of a repair, by how much is late, compared with recomputing everything: `make bench-repair`.

One lake is written from the events that are on time, and repaired once: nothing was late, and later repairs begin
there. Copies of it then receive late events, of one day or spread over all days (the worst case: each partition is
touched), and are repaired. The rows of the largest repair are compared with those of DuckDB.
"""

import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated

import duckdb
import typer
from rich.console import Console

from benchmarks.common import ADLOOM, EVENTS_PER_FILE, print_costs, rows_of, save_costs
from benchmarks.measure import Cost, run_measured
from spark_jobs.contract.tables import ATTRIBUTIONS, SESSIONS
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.places import REPAIRS

_SETTINGS = '[repair]\nhorizon = "90d"\nfreeze_after = "100d"\n'
"""Nothing is too old: the input lies in the past by event time only."""


def main(
    events: Annotated[int, typer.Option(min=1000, help="Good events, late ones included.")] = 10_000_000,
    days: Annotated[int, typer.Option(min=2, help="Over how many days.")] = 30,
    shares: Annotated[str, typer.Option(help="Late events in percent of all, largest last.")] = "0.1,1,10",
    out: Annotated[
        Path, typer.Option(help="Folder for input, lakes and results; input and first lake are kept.")
    ] = Path("build/bench-repair"),
) -> None:
    """Measure `adloom repair` over lakes with more and more late events."""
    console = Console()
    with console.status(f"writing {events:,} events"):
        feeds = _make_input(events, days, [float(share) for share in shares.split(",")], out)
    config, log = out / "settings.toml", out / "log.txt"
    config.write_text(_SETTINGS)
    base = out / "lake"
    costs = _saved(out) if base.exists() else {}

    def measured(name: str, *command: str) -> None:
        with console.status(name):
            costs[name] = run_measured([*ADLOOM, *command, "--config", str(config)], log)
        save_costs(costs, out)

    if not base.exists():
        measured("first run, drained", "run", "--source", str(out / "on time"), "--lake", str(base), "--drain")
    if not (base / REPAIRS).exists():
        measured("first repair: nothing is late", "repair", "--lake", str(base))
    for feed in feeds:
        lake = out / f"lake {feed.name}"
        shutil.rmtree(lake, ignore_errors=True)
        shutil.copytree(base, lake)
        with console.status(f"{feed.name}: received"):
            stages = [sys.executable, "-m", "benchmarks.stage", "all", str(feed), str(lake), str(config)]
            run_measured(stages, log)
        measured(f"{feed.name}: repaired", "repair", "--lake", str(lake))
    with console.status("DuckDB"):
        everything = _together(out, feed)
        batch = [sys.executable, "-m", "benchmarks.duckdb_batch", str(everything), str(out / "duckdb")]
        costs["DuckDB, everything"] = run_measured(batch, log)
    _compare(open_lake(str(lake)), out / "duckdb")
    save_costs(costs, out)
    _report(console, costs, out)


def _make_input(events: int, days: int, shares: list[float], out: Path) -> list[Path]:
    """Events on time in one folder, and folders of late ones: of one day as many as the least share; each share."""
    one_day, *spread = [out / name for name in ("late on one day", *[f"late {share:g} percent" for share in shares])]
    made = out / "made"
    if made.exists():
        return [one_day, *spread]
    files = max(1, events // EVENTS_PER_FILE)
    spec = GeneratorSpec(events=events, seed=1, late=0, malformed=0, hours=24 * days, files=files)
    generate(spec, out / "all")
    rng = Random(1)
    late: list[tuple[float, str]] = []
    (out / "on time").mkdir(parents=True, exist_ok=True)
    for file in sorted((out / "all").glob("*.jsonl")):
        with (out / "on time" / file.name).open("w", encoding="utf-8") as there:
            there.writelines(_on_time(file, rng, max(shares) / 100, late))
    for share, feed in zip(shares, spread, strict=True):
        _write(feed, (line for drawn, line in late if drawn < share / 100))
    day = f'"event_time":"{spec.start + timedelta(days=days - 2):%Y-%m-%d}'
    _write(one_day, islice((line for _, line in late if day in line), round(events * min(shares) / 100)))
    shutil.rmtree(out / "all")
    made.touch()
    return [one_day, *spread]


def _on_time(file: Path, rng: Random, share: float, late: list[tuple[float, str]]) -> Iterator[str]:
    """The lines of ``file`` but the ``share`` of them that is put into ``late``, each with the number drawn for it."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            drawn = rng.random()
            if drawn < share:
                late.append((drawn, line))
            else:
                yield line


def _write(folder: Path, lines: Iterable[str]) -> None:
    folder.mkdir()
    with (folder / "late.jsonl").open("w", encoding="utf-8") as there:
        there.writelines(lines)


def _together(out: Path, feed: Path) -> Path:
    """A folder with the events on time and those of ``feed``."""
    folder = out / "everything"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file in (*(out / "on time").iterdir(), *feed.iterdir()):
        (folder / file.name).hardlink_to(file)
    return folder


_SAME = {
    ATTRIBUTIONS: "impression_id, click_id, status",
    SESSIONS: "user_id, session_start, session_end, event_count",
}
"""By table, the columns that are compared."""


def _compare(lake: Lake, due: Path) -> None:
    """Discards the figures unless the repaired lake has the rows of a computation in which nothing is late."""
    for table, columns in _SAME.items():
        ours = f"SELECT {columns} FROM {rows_of(lake, table)}"
        theirs = f"SELECT {columns} FROM read_parquet('{due / table.name}.parquet')"
        only = [f"(SELECT count(*) FROM ({one} EXCEPT ALL {other}))" for one, other in ((ours, theirs), (theirs, ours))]
        with duckdb.connect() as connection:
            (counts,) = connection.sql(f"SELECT {', '.join(only)}, (SELECT count(*) FROM ({theirs}))").fetchall()
        if counts[0] or counts[1] or not counts[2]:
            raise SystemExit(
                f"{table.name}: of {counts[2]:,} rows that are due {counts[1]:,} are missing, and {counts[0]:,} others "
                "are there: the figures are worth nothing"
            )


def _report(console: Console, costs: dict[str, Cost], out: Path) -> None:
    print_costs(console, "repairs", costs)
    console.print(f"results: {out / 'results.json'}")


def _saved(out: Path) -> dict[str, Cost]:
    """The figures of the first lake from an earlier run, if that lake is reused."""
    found = json.loads((out / "results.json").read_text())["costs"]
    return {name: Cost(**cost) for name, cost in found.items() if name.startswith("first ")}


if __name__ == "__main__":
    typer.run(main)
