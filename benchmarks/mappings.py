"""The cost of a mapping for ingest: the same events in adloom's own format and in others: `make bench-mappings`."""

import json
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.common import make_events
from benchmarks.measure import Cost, run_measured

_PATHS = {
    "event_id": "$.id",
    "event_time": "timestamp_millis($.ts)",
    "user_id": "coalesce($.uid, $.device.ifa)",
    "is_last": "$.final",
    "campaign_id": "$.ad.campaign",
    "ad_id": "$.ad.creatives[0].id",
    "cost_micros": "micros($.ad.price)",
    "impression_id": "$.ad.imp",
    "data": "$.note",
}
_COLUMNS = ("type", "id", "ts", "uid", "final", "campaign", "creative", "price", "imp", "note")
_CELLS = {
    "event_id": "$.id",
    "event_time": "timestamp_millis($.ts)",
    "user_id": "$.uid",
    "is_last": "$.final",
    "campaign_id": "$.campaign",
    "ad_id": "$.creative",
    "cost_micros": "micros($.price)",
    "impression_id": "$.imp",
    "data": "$.note",
}
_TYPE = "case $.type when 'imp' then 'impression' when 'clk' then 'click' when 'act' then 'activity' end"
_IN_A_LIST = 20
_KINDS = {"impression": "imp", "click": "clk", "activity": "act"}


def _flat(event: Mapping[str, Any]) -> list[str]:
    """The cells of :data:`_COLUMNS`."""
    cost = event.get("cost_micros")
    price = "" if cost is None else f"{cost // 10**6}.{cost % 10**6:06}"
    values = (
        _KINDS[event["event_type"]],
        event["event_id"],
        str(_millis(event["event_time"])),
        event["user_id"],
        str(event.get("is_last", False)).lower(),
        event.get("campaign_id", ""),
        event.get("ad_id", ""),
        price,
        event.get("impression_id", ""),
        event.get("data", ""),
    )
    return [str(value or "") for value in values]


def _millis(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000)


def _nested(event: Mapping[str, Any]) -> str:
    cells = dict(zip(_COLUMNS, _flat(event), strict=True))
    ad = {
        "campaign": cells["campaign"] or None,
        "creatives": [{"id": cells["creative"] or None}],
        "price": cells["price"] or None,
        "imp": cells["imp"] or None,
    }
    record = {"type": cells["type"], "id": cells["id"], "ts": int(cells["ts"]), "uid": cells["uid"]}
    return json.dumps({**record, "final": cells["final"], "ad": ad, "note": cells["note"] or None})


def _write_nested(events: list[Mapping[str, Any]], place: Path) -> None:
    place.with_suffix(".jsonl").write_text("".join(f"{_nested(event)}\n" for event in events), encoding="utf-8")


def _write_batches(events: list[Mapping[str, Any]], place: Path) -> None:
    texts = [_nested(event) for event in events]
    batches = (texts[first : first + _IN_A_LIST] for first in range(0, len(texts), _IN_A_LIST))
    place.with_suffix(".jsonl").write_text(
        "".join(f'{{"events": [{", ".join(batch)}]}}\n' for batch in batches), encoding="utf-8"
    )


def _write_csv(events: list[Mapping[str, Any]], place: Path) -> None:
    rows = [list(_COLUMNS), *map(_flat, events)]
    place.with_suffix(".csv").write_text("".join(f"{','.join(row)}\n" for row in rows), encoding="utf-8")


def _write_parquet(events: list[Mapping[str, Any]], place: Path) -> None:
    columns = zip(*map(_flat, events), strict=True)
    table = pa.table({name: list(values) for name, values in zip(_COLUMNS, columns, strict=True)})
    pq.write_table(table, place.with_suffix(".parquet"))


Write = Callable[[list[Mapping[str, Any]], Path], None]
_SHAPES: dict[str, tuple[Write | None, str, Mapping[str, str]]] = {
    "adloom's own": (None, "adloom", {}),
    "JSON mapped": (_write_nested, "json", _PATHS),
    "JSON mapped, 20 in a list": (_write_batches, "json", _PATHS),
    "CSV mapped": (_write_csv, "csv", _CELLS),
    "Parquet mapped": (_write_parquet, "parquet", _CELLS),
}


def main(
    events: Annotated[int, typer.Option(min=1000, help="How many.")] = 1_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each, in turns.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder for input, lakes and results; replaced.")] = Path(
        "build/bench-mappings"
    ),
) -> None:
    """Measure ingest alone, from files to bronze, over the same events in several formats."""
    console = Console()
    shutil.rmtree(out, ignore_errors=True)
    with console.status(f"writing {events:,} events in {len(_SHAPES)} formats"):
        make_events(events, out / "adloom's own")
        for name, (write, kind, paths) in _SHAPES.items():
            _prepare(out, name, write, kind, paths)
    costs: dict[str, list[Cost]] = {name: [] for name in _SHAPES}
    with Progress(console=console) as progress:
        task = progress.add_task("ingest", total=rounds * len(_SHAPES))
        for _ in range(rounds):
            for name, found in costs.items():
                found.append(_ingest(out, name))
                progress.advance(task)
    _report(console, out, costs)


def _prepare(out: Path, name: str, write: Write | None, kind: str, paths: Mapping[str, str]) -> None:
    if write:
        (out / name).mkdir(parents=True)
        for file in sorted((out / "adloom's own").glob("*.jsonl")):
            write([json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()], out / name / file.stem)
    lines = ["[source.ads]", f'format = "{kind}"', *(['each = "$.events"'] if write is _write_batches else [])]
    if paths:
        lines += [f'event_type = "{_TYPE}"', "[source.ads.map]", *(f'{key} = "{path}"' for key, path in paths.items())]
    (out / f"{name}.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _ingest(out: Path, name: str) -> Cost:
    lake = out / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "benchmarks.stage",
        "ingest",
        str(out / name),
        str(lake),
        str(out / f"{name}.toml"),
    ]
    return run_measured(command, out / f"{name}.log")


def _report(console: Console, out: Path, costs: dict[str, list[Cost]]) -> None:
    table = Table(
        "records", title="ingest alone, ten fields mapped: medians, and each as a multiple of adloom's own format"
    )
    for heading in ("wall s", "CPU s", "wall", "CPU"):
        table.add_column(heading, justify="right")
    own, *_ = costs.values()
    results = {}
    for name, found in costs.items():
        wall, cpu = (statistics.median(getattr(one, part) for one in found) for part in ("wall_s", "cpu_s"))
        # In turns: each is divided by the run of adloom's own format in the same round.
        times = [statistics.median(a.wall_s / b.wall_s for a, b in zip(found, own, strict=True))]
        times.append(statistics.median(a.cpu_s / b.cpu_s for a, b in zip(found, own, strict=True)))
        table.add_row(name, f"{wall:.1f}", f"{cpu:.1f}", *(f"{ratio:.2f}" for ratio in times))
        results[name] = {"wall_s": wall, "cpu_s": cpu, "wall_ratio": times[0], "cpu_ratio": times[1]}
    (out / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
