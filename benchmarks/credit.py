"""The cost of credit: the first run over a lake of many days, and the run a day later: `make bench-credit`.

The lake is written once and kept; each time, a copy of it is credited, receives the day more, and is credited again.
Nothing is drained: conversions wait until no touch of them can come, as with live jobs. The figures count only if the
credits of each conversion add up to its value.
"""

import shutil
from pathlib import Path
from typing import Annotated

import duckdb
import typer
from rich.console import Console

from benchmarks.common import ADLOOM, print_costs, rows_of, save_costs
from benchmarks.measure import Cost, run_measured
from spark_jobs.contract.tables import CREDITS, PATHS
from spark_jobs.credit.plan import CREDIT_PLANS
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake

_MODELS = 6


def main(
    events: Annotated[int, typer.Option(min=1000, help="Good events, the day more included.")] = 10_000_000,
    days: Annotated[int, typer.Option(min=2, help="Over how many days, before the day more.")] = 90,
    conversions: Annotated[float, typer.Option(min=0.001, max=1, help="Share of clicks that lead to one.")] = 0.15,
    out: Annotated[
        Path, typer.Option(help="Folder for input, lakes and results; input and first lake are kept.")
    ] = Path("build/bench-credit"),
) -> None:
    """Measure `adloom credit` over a lake, and again after one more day."""
    console, log, costs = Console(), out / "log.txt", dict[str, Cost]()
    with console.status(f"writing {events:,} events"):
        source, more = _make_input(events, days, conversions, out)
    base, lake = out / "lake", out / "credited"

    def measured(name: str, *command: str) -> None:
        with console.status(name):
            costs[name] = run_measured([*ADLOOM, *command], log)
        save_costs(costs, out)

    # An earlier measurement has left it there.
    (source / more.name).unlink(missing_ok=True)
    if not (out / "written").exists():
        shutil.rmtree(base, ignore_errors=True)
        measured(f"run, {days} days", "run", "--no-measure", "--source", str(source), "--lake", str(base))
        (out / "written").touch()
    shutil.rmtree(lake, ignore_errors=True)
    shutil.copytree(base, lake)
    measured("first run of credit", "credit", "--lake", str(lake))
    (source / more.name).hardlink_to(more)
    measured("run, a day more", "run", "--no-measure", "--source", str(source), "--lake", str(lake))
    measured("credit of a day more", "credit", "--lake", str(lake))
    measured("credit when nothing is new", "credit", "--lake", str(lake))
    opened = open_lake(str(lake))
    _check(opened)
    _report(console, costs, opened, out)


def _make_input(events: int, days: int, conversions: float, out: Path) -> tuple[Path, Path]:
    """A folder with the events of ``days``, about a file a day, and the file of the day more."""
    source, later, made = out / "source", out / "a day more", out / "made"
    if not made.exists():
        for folder in (source, later):
            shutil.rmtree(folder, ignore_errors=True)
        later.mkdir(parents=True)
        spec = GeneratorSpec(
            events=events,
            seed=1,
            late=0,
            malformed=0,
            conversions=conversions,
            hours=24 * (days + 1),
            files=days + 1,
        )
        generate(spec, source)
        last = max(source.glob("*.jsonl"))
        last.rename(later / last.name)
        made.touch()
    (more,) = later.iterdir()
    return source, more


def _check(lake: Lake) -> None:
    """Discards the figures unless there are conversions, and the credits of each add up to its value."""
    paths, credits_ = (rows_of(lake, table) for table in (PATHS, CREDITS))
    query = f"""
        WITH sums AS (
          SELECT conversion_id, conversion_time, model, sum(credit_micros) AS credited, sum(weight_ppm) AS ppm
          FROM {credits_} GROUP BY ALL
        )
        SELECT (SELECT count(*) FROM {paths}) AS paths, count(*) AS sums,
          count(*) FILTER (credited <> value_micros OR ppm <> 1000000) AS off
        FROM sums JOIN {paths} USING (conversion_id, conversion_time)
    """
    with duckdb.connect() as connection:
        ((count, sums, off),) = connection.sql(query).fetchall()
    if not count or sums != count * _MODELS or off:
        raise SystemExit(
            f"{count:,} conversions have credits by {sums:,} models, of which {off:,} do not add up: the figures are "
            "worth nothing"
        )


def _report(console: Console, costs: dict[str, Cost], lake: Lake, out: Path) -> None:
    print_costs(console, "credit", costs)
    for number in (1, 2):
        if plan := CREDIT_PLANS.read(lake, number):
            console.print(f"run {number}: {plan.fresh:,} conversions, {plan.changes:,} rows; {plan.waiting:,} wait")
    console.print(f"results: {out / 'results.json'}")


if __name__ == "__main__":
    typer.run(main)
