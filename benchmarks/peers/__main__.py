"""adloom and its alternatives on the same files: `make bench-peers`."""

import json
import os
import shutil
import statistics
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import altair as alt
import duckdb
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.measure import Cost, run_measured
from benchmarks.peers.contenders import CONTENDERS, Contender
from benchmarks.peers.inputs import EVENTS, LATER, make_inputs

_COMPARED = {
    "attributions": "status, impression_id, click_id, cost_micros",
    "sessions": "user_id, epoch_ms(session_start), epoch_ms(session_end), event_count",
}
_FIGURES = {"events_per_s": "events/s", "events_per_cpu_s": "events/CPU s", "peak_mib": "peak MiB"}


@dataclass
class _Runs:
    """The measurements so far: ``costs`` of the runs of each contender, and by name why one ``failed``."""

    records: int
    cores: int
    rounds: int
    costs: dict[Contender, list[Cost]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def result(self) -> dict[str, Any]:
        """The content of ``results.json``."""
        return {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "records": self.records,
            "cores": self.cores,
            "rounds": self.rounds,
            "contenders": [_summary(one, costs, self.records) for one, costs in self.costs.items()],
            "failed": self.failed,
        }


def main(
    events: Annotated[int, typer.Option(help="Good events to generate.")] = 1_000_000,
    rounds: Annotated[int, typer.Option(help="Runs of each contender, taking turns.")] = 5,
    only: Annotated[list[str] | None, typer.Option(help="Only contenders whose name starts so; repeatable.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for input, output and results; replaced.")] = Path("build/peers"),
    chart: Annotated[
        Path | None, typer.Option(help="File for the chart (SVG); by default next to the results.")
    ] = None,
) -> None:
    """Run each contender on the same events, compare its rows with those DuckDB finds, and measure it."""
    console, cores = Console(), os.cpu_count() or 1
    shutil.rmtree(out, ignore_errors=True)
    chosen = [one for one in CONTENDERS if not only or one.name.lower().startswith(tuple(map(str.lower, only)))]
    if not chosen:
        raise SystemExit(
            f"no contender starts with {only}; the contenders are {', '.join(one.name for one in CONTENDERS)}"
        )
    with console.status("making events"):
        records = make_inputs(events, out, cores)
    runs = _Runs(records, cores, rounds)
    plan = [one for _round in range(rounds) for one in chosen]
    with duckdb.connect() as expected:
        _expect(expected, out / EVENTS)
        for one in track(plan, "runs", console=console):
            if one.name in runs.failed:
                continue
            try:
                cost = _measured(one, out, cores, expected)
                runs.costs.setdefault(one, []).append(cost)
            except subprocess.CalledProcessError as error:
                # One failure must not discard the results of the others, which may have taken hours.
                runs.failed[one.name] = f"exit code {error.returncode}"
                kept = shutil.copy(out / "log.txt", out / f"failed-{len(runs.failed)}.txt")
                console.print(f"{one.name} failed with {runs.failed[one.name]}: see {kept}")
            result = runs.result()
            (out / "results.json").write_text(json.dumps(result, indent=2) + "\n")
    _draw(result, chart or out / "peers.svg")
    console.print(_table(result))
    console.print(f"results: {out / 'results.json'}, chart: {chart or out / 'peers.svg'}")


def _expect(connection: duckdb.DuckDBPyConnection, source: Path) -> None:
    """Computes the expected tables ``attributions`` and ``sessions`` from the files alone."""
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        f"""
        CREATE TABLE silver AS SELECT * FROM read_json(
            '{source}/*.jsonl', format = 'newline_delimited', columns = {{
                event_type: 'VARCHAR', event_id: 'VARCHAR', event_time: 'TIMESTAMPTZ', user_id: 'VARCHAR',
                cost_micros: 'BIGINT', impression_id: 'VARCHAR'
            }})
        QUALIFY row_number() OVER (PARTITION BY event_type, event_id) = 1;
        CREATE TABLE attributions AS
        WITH i AS (FROM silver WHERE event_type = 'impression'), c AS (FROM silver WHERE event_type = 'click')
        SELECT CASE WHEN i.event_id IS NULL THEN 'orphan_click' WHEN c.event_id IS NULL THEN 'unclicked'
                    ELSE 'clicked' END AS status,
               coalesce(i.event_id, c.impression_id) AS impression_id, c.event_id AS click_id, i.cost_micros
        FROM i FULL JOIN c ON c.impression_id = i.event_id
            AND c.event_time BETWEEN i.event_time AND i.event_time + INTERVAL 1 HOUR;
        CREATE TABLE sessions AS
        WITH marked AS (
            SELECT *, coalesce(event_time - lag(event_time) OVER w > INTERVAL 5 MINUTE, true) AS begins
            FROM silver WINDOW w AS (PARTITION BY user_id ORDER BY event_time)
        ), numbered AS (
            SELECT *, count(*) FILTER (begins) OVER (
                PARTITION BY user_id ORDER BY event_time RANGE UNBOUNDED PRECEDING
            ) AS number FROM marked
        )
        SELECT user_id, min(event_time) AS session_start, max(event_time) AS session_end, count(*) AS event_count
        FROM numbered GROUP BY user_id, number;
        """
    )


def _measured(one: Contender, out: Path, cores: int, expected: duckdb.DuckDBPyConnection) -> Cost:
    place = out.resolve() / "out"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    command = one.command(out.resolve() / one.reads, place, cores)
    cost = run_measured(command, out / "log.txt")
    # Figures count only if the rows are correct.
    for table, found in (("attributions", one.attributions(place)), ("sessions", one.sessions(place))):
        columns = _COMPARED[table]
        theirs = f"SELECT {columns} FROM {found} WHERE user_id <> '{LATER}'"
        ours = f"SELECT {columns} FROM {table}"
        missing, wrong = (
            expected.execute(f"SELECT count(*) FROM ({left} EXCEPT ALL {right})").fetchall()[0][0]
            for left, right in ((ours, theirs), (theirs, ours))
        )
        if missing or wrong:
            raise SystemExit(f"{one.name}: {table} lacks {missing:,} rows and has {wrong:,} wrong ones; see {place}")
    return cost


def _summary(one: Contender, costs: list[Cost], records: int) -> dict[str, Any]:
    figures = {
        "events_per_s": [records / cost.wall_s for cost in costs],
        "events_per_cpu_s": [records / cost.cpu_s for cost in costs],
        "peak_mib": [cost.peak_mib for cost in costs],
    }
    spread = {
        name: {"min": round(min(found)), "median": round(statistics.median(found)), "max": round(max(found))}
        for name, found in figures.items()
    }
    return {"name": one.name, "is_batch": one.is_batch, **spread}


def _table(result: dict[str, Any]) -> Table:
    title = (
        f"{result['records']:,} records, {result['cores']} cores, {result['rounds']} rounds: median, minimum, maximum"
    )
    table = Table("", title=title)
    for heading in _FIGURES.values():
        table.add_column(heading, justify="right")
    for row in result["contenders"]:
        medians = [f"[bold]{row[name]['median']:,}" for name in _FIGURES]
        spreads = [f"[dim]{row[name]['min']:,}  {row[name]['max']:,}" for name in _FIGURES]
        table.add_row(row["name"], *medians)
        table.add_row("", *spreads)
    return table


def _draw(result: dict[str, Any], file: Path) -> None:
    """Draws bars of events per CPU second, without the batch engines, which would dwarf the others."""
    rows = [{"name": row["name"], **row["events_per_cpu_s"]} for row in result["contenders"] if not row["is_batch"]]
    axis = {"labelColor": "#7d8795", "titleColor": "#7d8795", "titleFontWeight": "normal", "gridColor": "#8d97a530"}
    names = alt.Axis(minExtent=240, labelLimit=0, ticks=False, domain=False, labelFontSize=13, labelPadding=10)
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=alt.Y("name:N", sort="-x", title=None, axis=names))
    is_ours = "indexof(datum.name, 'adloom') === 0"
    bars = base.mark_bar(height=18, cornerRadiusEnd=3).encode(
        x=alt.X("median:Q", title="events per CPU second: median, with a line from minimum to maximum"),
        color=alt.condition(is_ours, alt.value("#4f7ce8"), alt.value("#b4bcc8")),
    )
    spread = base.mark_rule(color="#3a414d", strokeWidth=2).encode(x="min:Q", x2="max:Q")
    text = base.mark_text(align="left", dx=8, color="#7d8795", fontSize=13).encode(
        x="max:Q", text=alt.Text("median:Q", format=",")
    )
    chart = (bars + spread + text).properties(width=620, height=alt.Step(34))
    file.parent.mkdir(parents=True, exist_ok=True)
    chart.configure(background="transparent").configure_axis(**axis).configure_view(stroke=None).save(str(file))


if __name__ == "__main__":
    typer.run(main)
