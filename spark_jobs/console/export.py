"""``adloom export``: tables and views as files, of one state of the lake."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from spark_jobs.console.sql import open_sql
from spark_jobs.console.terminal import terminal, utc
from spark_jobs.contracts.choices import FileFormat
from spark_jobs.contracts.errors import SettingsError
from spark_jobs.contracts.files import json_bytes
from spark_jobs.lake.past import AsOf
from spark_jobs.sql.lake_sql import CSV, JSON, PARQUET, LakeSql
from spark_jobs.sql.names import check_name

_DATE = "event_date"
_OPTIONS = {FileFormat.PARQUET: PARQUET, FileFormat.CSV: CSV, FileFormat.JSON: JSON}
_SUFFIXES = {FileFormat.PARQUET: "parquet", FileFormat.CSV: "csv", FileFormat.JSON: "jsonl"}
_MANIFEST = "export.json"
Dates = tuple[date | None, date | None]
"""The first and the last date, both included; None: no limit."""


def export_rows(
    names: Sequence[str],
    location: str,
    out: Path,
    *,
    file_format: FileFormat,
    dates: Dates,
    as_of: AsOf,
    config: Path | None,
) -> None:
    """Writes the tables and views ``names`` of the lake at ``location`` to the folder ``out``.

    Each becomes a folder ``NAME`` with one folder ``event_date=…`` for each date, or one file where it has no
    event_date. ``NAME/export.json`` has the versions of the tables that were read, the dates and the number of rows.

    Raises:
        SettingsError: a name or option is wrong, or the name is in ``out`` already.
        LakeError: the lake does not have a table, or cannot be read.
    """
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        check_name(name)
        if (out / name).exists():
            raise SettingsError(f"{out / name} exists already: move it away, or give another --out")
    out.mkdir(parents=True, exist_ok=True)
    state, console = as_of, terminal(is_uncut=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=terminal(stderr=True), transient=True) as bar:
        for name in bar.track(chosen, description="exporting"):
            with open_sql(location, state, config) as lake_sql:
                rows = _export(lake_sql, name, out, file_format, dates)
                # A table that is read for two names has the same version for both.
                state = replace(state, versions={**state.versions, **lake_sql.versions})
            console.print(f"{out / name}: {rows:,} rows")


def _export(lake_sql: LakeSql, name: str, out: Path, file_format: FileFormat, dates: Dates) -> int:
    """Writes one table or view beside its place, and moves it there when it is whole."""
    rows = _rows(lake_sql, name, dates)
    with TemporaryDirectory(prefix=f".{name}-", dir=out) as folder:
        draft = Path(folder) / name
        draft.mkdir()
        if _DATE in rows.columns:
            count = lake_sql.write(rows, draft, f"{_OPTIONS[file_format]}, OVERWRITE_OR_IGNORE, PARTITION_BY ({_DATE})")
        else:
            count = lake_sql.write(rows, draft / f"data.{_SUFFIXES[file_format]}", _OPTIONS[file_format])
        (draft / _MANIFEST).write_bytes(json_bytes(_manifest(lake_sql, name, dates, count)))
        draft.rename(out / name)
    return count


def _rows(lake_sql: LakeSql, name: str, dates: Dates) -> duckdb.DuckDBPyRelation:
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


def _manifest(lake_sql: LakeSql, name: str, dates: Dates, rows: int) -> dict[str, object]:
    first, last = dates
    return {
        "name": name,
        "lake": lake_sql.lake.place(),
        "versions": dict(sorted(lake_sql.versions.items())),
        "from": str(first) if first else None,
        "to": str(last) if last else None,
        "rows": rows,
        "exported_at": utc(datetime.now(UTC)),
    }
