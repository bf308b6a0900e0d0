"""``adloom sql`` and ``adloom show``: rows as a table for people, or in a format for programs."""

import json
import os
import shutil
import sys
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.options import AsOfOption, ConfigOption, LakeOption, parse_as_of
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.choices import RowFormat
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import AdloomError, SettingsError
from spark_jobs.lake.as_of import AsOf
from spark_jobs.lake.open import open_lake
from spark_jobs.printable import printable
from spark_jobs.queries.registry import SHOWN_TABLES
from spark_jobs.sql.names import NAMES, check_name
from spark_jobs.sql.views import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from spark_jobs.sql.lake_sql import LakeSql

app = typer.Typer()
_NAMES = ", ".join(NAMES)


_SHOWN_ROWS = 1000
"""More rows than anybody reads at a terminal."""
_LONGEST_CELL, _UNLIMITED = 60, 10_000
_FILE_FORMATS = (RowFormat.CSV, RowFormat.JSON, RowFormat.PARQUET)
_PROMPT, _GOES_ON, _QUIT = "adloom> ", "   ...> ", ".quit"
_HELP = """\
Statements end with ; and may be DuckDB's: SELECT, FROM, DESCRIBE, SUMMARIZE, PIVOT.
.tables   what there is
.help     this
.quit     leave (or Ctrl-D)"""


@app.command(
    epilog='Examples:  adloom sql "from daily_campaigns" --lake lake   |   adloom sql --lake lake -o r.csv < q.sql   '
    '|   adloom sql "select status, count(*) from attributions group by all" --lake lake --as-of 2026-03-01T12:00Z',
)
def sql(
    location: LakeOption,
    query: Annotated[
        str | None,
        typer.Argument(
            help="Statements of DuckDB's SQL. Default: standard input; at a terminal, a prompt.",
            metavar="QUERY",
            show_default=False,
        ),
    ] = None,
    as_of: AsOfOption = None,
    row_format: Annotated[RowFormat, typer.Option("--format", help="How to print the rows.")] = RowFormat.TABLE,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the rows to this file; its suffix is the default of --format.", metavar="FILE"
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Query the tables of a lake, and views made for people, in SQL.

    Nothing is written to the lake, and all tables stay at one version while a statement runs. At the prompt,
    .tables lists what there is.
    """
    query_lake(query, location, as_of=parse_as_of(as_of), row_format=row_format, output=output, config=config)


@app.command(epilog="Example:  adloom show attributions --lake lake --limit 5")
def show(
    name: Annotated[str, typer.Argument(help=f"One of {_NAMES}.", metavar="TABLE")],
    location: LakeOption,
    limit: Annotated[int, typer.Option(help="Number of rows.", min=1, metavar="N")] = 20,
    as_of: AsOfOption = None,
    config: ConfigOption = None,
) -> None:
    """Show rows of a table or view.

    quarantine: rejected records that were not requeued, with their verdict; requeued: those that were; failing: rows
    that failed validation.
    """
    check_name(name)
    with open_sql(location, parse_as_of(as_of), config) as lake_sql:
        rows = lake_sql.run(f'FROM "{name}" LIMIT {limit}')
        assert rows is not None  # noqa: S101 a query has rows
        _print(terminal(), lake_sql, rows, title=name, most=limit)


def query_lake(
    query: str | None,
    location: str,
    *,
    as_of: AsOf,
    row_format: RowFormat,
    output: Path | None,
    config: Path | None,
) -> None:
    """Runs ``query``, or what comes from standard input, over the lake at ``location``.

    Args:
        query: statements; None: a prompt, if there is a terminal.
        location: of the lake.
        as_of: the state of its tables.
        row_format: how the rows of the last statement are printed.
        output: where they are written instead.
        config: the file of settings.

    Raises:
        SettingsError: a setting, an option or a name of a table is wrong.
        LakeError: the lake does not have the table, or cannot be read.
        SqlError: a statement is wrong.
    """
    if output and row_format is RowFormat.TABLE:
        row_format = _format_of(output)
    if row_format is RowFormat.PARQUET and output is None and sys.stdout.isatty():
        raise SettingsError("Parquet is not for a terminal; give --output FILE")
    with open_sql(location, as_of, config) as lake_sql:
        if query is None and sys.stdin.isatty():
            _prompt(lake_sql, location)
            return
        rows = lake_sql.run(query if query is not None else sys.stdin.read())
        if rows is None:
            return
        if row_format is RowFormat.TABLE:
            _print(terminal(is_uncut=True), lake_sql, rows)
        else:
            _write(lake_sql, rows, row_format, output)


def _format_of(output: Path) -> RowFormat:
    found = {f".{one}": one for one in _FILE_FORMATS}.get(output.suffix)
    if found is None:
        raise SettingsError(f"--output {output}: its suffix names no format; give one of {', '.join(_FILE_FORMATS)}")
    return found


@contextmanager
def open_sql(location: str, as_of: AsOf, config: Path | None) -> "Iterator[LakeSql]":
    """SQL over the lake at ``location``, which need not be listed: who may only read gold can query gold."""
    from spark_jobs.lake.store.arrow import row_store
    from spark_jobs.sql.lake_sql import LakeSql

    settings = load_settings(config, os.environ)
    lake = open_lake(location, settings.s3)
    with (
        TemporaryDirectory(prefix="adloom-sql-") as spill,
        closing(
            LakeSql(lake, row_store(lake, settings.s3), as_of, zone=settings.days.zone, spill=Path(spill))
        ) as lake_sql,
    ):
        yield lake_sql


def _write(lake_sql: "LakeSql", rows: "duckdb.DuckDBPyRelation", row_format: RowFormat, output: Path | None) -> None:
    """Writes ``rows`` as a whole, or nothing."""
    from spark_jobs.sql.lake_sql import CSV, JSON, PARQUET

    options = {RowFormat.CSV: CSV, RowFormat.JSON: f"{JSON}, ARRAY true", RowFormat.PARQUET: PARQUET}
    with TemporaryDirectory(prefix="adloom-sql-", dir=output.parent if output else None) as folder:
        file = Path(folder) / "rows"
        lake_sql.write(rows, file, options[row_format])
        if output:
            file.replace(output)
            return
        if sys.stdout.isatty():
            print(printable(file.read_text(encoding="utf-8")), end="")  # noqa: T201 nothing may wrap or style it
            return
        with file.open("rb") as written:
            shutil.copyfileobj(written, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _prompt(lake_sql: "LakeSql", location: str) -> None:
    with suppress(ImportError):
        import readline  # noqa: F401 lines can be edited and recalled

    console = terminal()
    console.print(Text.assemble((location, "bold"), ": .tables lists tables and views, .help explains more\n"))
    text = ""
    while True:
        try:
            line = input(_GOES_ON if text else _PROMPT).strip()
        except EOFError:
            line = _QUIT
        except KeyboardInterrupt:
            console.print()
            text = ""
            continue
        if line == _QUIT:
            return
        if not text and line in _COMMANDS:
            _COMMANDS[line](console)
            continue
        text += line + "\n"
        if line.endswith(";"):
            _answer(console, lake_sql, text)
            text = ""


def _answer(console: Console, lake_sql: "LakeSql", text: str) -> None:
    try:
        lake_sql.refresh()
        rows = lake_sql.run(text)
        if rows is not None:
            _print(console, lake_sql, rows)
    except AdloomError as error:
        terminal(stderr=True).print(Text.assemble(("error:", "bold red"), f" {error}"), soft_wrap=True)


def _list(console: Console) -> None:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("name", no_wrap=True)
    table.add_column("a row is")
    for name in NAMES:
        table.add_row(Text(name, style="bold" if name in VIEWS else ""), _meaning(name))
    console.print(table)
    console.print("DESCRIBE name; lists the columns. Bold: views made for people.", style="dim")


def _meaning(name: str) -> str:
    """The first sentence on a table or view."""
    meaning = VIEWS[name].meaning if name in VIEWS else SHOWN_TABLES[name].meaning
    return meaning.partition(". ")[0].rstrip(".")


def _help(console: Console) -> None:
    console.print(_HELP)


_COMMANDS = {".tables": _list, ".help": _help}


def _print(
    console: Console,
    lake_sql: "LakeSql",
    rows: "duckdb.DuckDBPyRelation",
    title: str | None = None,
    most: int = _SHOWN_ROWS,
) -> None:
    found = lake_sql.fetch(rows, most + 1)
    # By position: two columns may have one name.
    columns = [[_cell(value) for value in column.to_pylist()] for column in found.slice(0, most).columns]
    cells = [list(row) for row in zip(*columns, strict=True)]
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name, kind in zip(rows.columns, rows.types, strict=True):
        is_number = str(kind) in _NUMBERS or str(kind).startswith("DECIMAL")
        table.add_column(name, overflow="fold", justify="right" if is_number else "left")
    for row in cells:
        table.add_row(*row)
    if Measurement.get(console, console.options.update(max_width=_UNLIMITED), table).maximum <= console.width:
        console.print(table)
    else:
        _print_records(console, rows.columns, cells, title or "row")
    more = "the first " if found.num_rows > most else ""
    hint = "; --format csv prints all" if more else ""
    console.print(f"{more}{len(cells):,} {'row' if len(cells) == 1 else 'rows'}{hint}", style="dim")


def _print_records(console: Console, columns: list[str], cells: list[list[Text]], title: str) -> None:
    """Prints each row by itself, a line for each column: a table of folded cells cannot be read."""
    for number, row in enumerate(cells, start=1):
        console.rule(Text(f"{title} {number}"), align="left", style="dim")
        record = Table.grid(padding=(0, 2))
        for name, cell in zip(columns, row, strict=True):
            record.add_row(Text(name, style="bold"), cell)
        console.print(record)


_NUMBERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE"}


def _cell(value: Any) -> Text:
    if value is None:
        return Text("")
    if isinstance(value, float):
        return Text(f"{value:.6g}")
    text = _plain(value) if not isinstance(value, (list, dict)) else json.dumps(value, default=_plain)
    line = printable(text).replace("\n", "\N{REPLACEMENT CHARACTER}")
    return Text(line if len(line) <= _LONGEST_CELL else line[: _LONGEST_CELL - 1] + "…")


def _plain(value: Any) -> str:
    return utc(value, "microseconds") if isinstance(value, datetime) and value.tzinfo else str(value)
