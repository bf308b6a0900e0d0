"""``adloom export``: tables and views as files, of one state of the lake."""

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from spark_jobs.cli.options import AsOfOption, ConfigOption, LakeOption, parse_as_of, parse_date
from spark_jobs.cli.sql import open_sql
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.choices import FileFormat
from spark_jobs.errors import SettingsError
from spark_jobs.lake.store.files import json_bytes
from spark_jobs.sql.names import NAMES, check_name

if TYPE_CHECKING:
    import duckdb

    from spark_jobs.sql.lake_sql import LakeSql

app = typer.Typer()
_NAMES = ", ".join(NAMES)


_DATE = "event_date"
_SUFFIXES = {FileFormat.PARQUET: "parquet", FileFormat.CSV: "csv", FileFormat.JSON: "jsonl"}
_MANIFEST = "export.json"
Dates = tuple[date | None, date | None]
"""The first and the last date, both included; None: no limit."""


@app.command(
    epilog="Examples:  adloom export daily_campaigns --lake lake --out march --from 2026-03-01 --to 2026-03-31 "
    "--format csv   |   adloom export attributions --lake lake --out exported",
)
def export(
    names: Annotated[list[str], typer.Argument(help=f"Of {_NAMES}.", metavar="NAME")],
    location: LakeOption,
    out: Annotated[Path, typer.Option(help="Folder to write to; each NAME must not be in it yet.", metavar="DIR")],
    file_format: Annotated[FileFormat, typer.Option("--format", help="Of the files.")] = FileFormat.PARQUET,
    begin: Annotated[
        str | None, typer.Option("--from", help="Only rows from this event_date on.", metavar="DATE")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Only rows up to this event_date, included.", metavar="DATE")
    ] = None,
    at: AsOfOption = None,
    config: ConfigOption = None,
) -> None:
    """Write tables and views to files, one per event_date where there is one.

    All of them are of one state of the lake; `export.json` says which versions, and how many rows. A NAME is either
    there as a whole or not at all.
    """
    dates = parse_date(begin, "--from") if begin else None, parse_date(end, "--to") if end else None
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        check_name(name)
        if (out / name).exists():
            raise SettingsError(f"{out / name} exists already: move it away, or give another --out")
    out.mkdir(parents=True, exist_ok=True)
    state, console = parse_as_of(at), terminal(is_uncut=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal(stderr=True), transient=True) as bar:
        for name in bar.track(chosen, description="exporting"):
            with open_sql(location, state, config) as lake_sql:
                rows = _export(lake_sql, name, out, file_format, dates)
                # A table that is read for two names has the same version for both.
                state = replace(state, versions={**state.versions, **lake_sql.versions})
            console.print(f"{out / name}: {rows:,} rows")


def _export(lake_sql: "LakeSql", name: str, out: Path, file_format: FileFormat, dates: Dates) -> int:
    """Writes one table or view next to its place, and moves it there when it is complete."""
    from spark_jobs.sql.lake_sql import CSV, JSON, PARQUET

    options = {FileFormat.PARQUET: PARQUET, FileFormat.CSV: CSV, FileFormat.JSON: JSON}[file_format]
    rows = _rows(lake_sql, name, dates)
    with TemporaryDirectory(prefix=f".{name}-", dir=out) as folder:
        draft = Path(folder) / name
        draft.mkdir()
        if _DATE in rows.columns:
            count = lake_sql.write(rows, draft, f"{options}, OVERWRITE_OR_IGNORE, PARTITION_BY ({_DATE})")
        else:
            count = lake_sql.write(rows, draft / f"data.{_SUFFIXES[file_format]}", options)
        (draft / _MANIFEST).write_bytes(json_bytes(_manifest(lake_sql, name, dates, count)))
        draft.rename(out / name)
    return count


def _rows(lake_sql: "LakeSql", name: str, dates: Dates) -> "duckdb.DuckDBPyRelation":
    rows = lake_sql.run(f'FROM "{name}"')
    assert rows is not None  # noqa: S101 a query has rows
    if any(dates) and _DATE not in rows.columns:
        raise SettingsError(f"{name} has no {_DATE}, so --from and --to do not apply; use `adloom sql --output FILE`")
    first, last = dates
    if first:
        rows = rows.filter(f"{_DATE} >= DATE '{first}'")
    if last:
        rows = rows.filter(f"{_DATE} <= DATE '{last}'")
    return rows


def _manifest(lake_sql: "LakeSql", name: str, dates: Dates, rows: int) -> dict[str, object]:
    first, last = dates
    return {
        "name": name,
        "lake": lake_sql.lake.shown(),
        "versions": dict(sorted(lake_sql.versions.items())),
        "from": str(first) if first else None,
        "to": str(last) if last else None,
        "rows": rows,
        "exported_at": utc(datetime.now(UTC)),
    }
