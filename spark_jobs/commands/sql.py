"""The commands that give people the rows."""

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption, parse_as_of, parse_date
from spark_jobs.contracts.choices import FileFormat, RowFormat
from spark_jobs.sql.names import NAMES

app = typer.Typer()
_NAMES = ", ".join(NAMES)
_PANEL = "Rows: query, show, export (no Java)"
AsOfOption = Annotated[
    list[str] | None,
    typer.Option(
        help="The state of the tables: a time (2026-03-01T12:00Z), or a version of one table (attributions=12; "
        "repeatable; the name may be left out where only one is read). Default: now.",
        metavar="TIME|VERSION",
    ),
]


@app.command(
    rich_help_panel=_PANEL,
    epilog='Examples:  adloom sql "from daily_campaigns" --lake lake   |   adloom sql --lake lake -o r.csv < q.sql   '
    '|   adloom sql "select status, count(*) from attributions group by all" --lake lake --as-of 2026-03-01T12:00Z',
)
def sql(
    lake: LakeOption,
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
    from spark_jobs.console.sql import query_lake

    query_lake(query, lake, as_of=parse_as_of(as_of), row_format=row_format, output=output, config=config)


@app.command(rich_help_panel=_PANEL, epilog="Example:  adloom show attributions --lake lake --limit 5")
def show(
    table: Annotated[str, typer.Argument(help=f"One of {_NAMES}.")],
    lake: LakeOption,
    limit: Annotated[int, typer.Option(help="Number of rows.", min=1, metavar="N")] = 20,
    as_of: AsOfOption = None,
    config: ConfigOption = None,
) -> None:
    """Show rows of a table or view.

    quarantine: rejected records that were not requeued, with their verdict; requeued: those that were; failing: rows
    that failed validation.
    """
    from spark_jobs.console.sql import show_table

    show_table(table, lake, limit, as_of=parse_as_of(as_of), config=config)


@app.command(
    rich_help_panel=_PANEL,
    epilog="Examples:  adloom export daily_campaigns --lake lake --out march --from 2026-03-01 --to 2026-03-31 "
    "--format csv   |   adloom export attributions --lake lake --out exported",
)
def export(
    names: Annotated[list[str], typer.Argument(help=f"Of {_NAMES}.", metavar="NAME")],
    lake: LakeOption,
    out: Annotated[Path, typer.Option(help="Folder to write to; each NAME must not be in it yet.", metavar="DIR")],
    file_format: Annotated[FileFormat, typer.Option("--format", help="Of the files.")] = FileFormat.PARQUET,
    since: Annotated[
        str | None, typer.Option("--from", help="Only rows from this event_date on.", metavar="DATE")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", help="Only rows up to this event_date, included.", metavar="DATE")
    ] = None,
    as_of: AsOfOption = None,
    config: ConfigOption = None,
) -> None:
    """Write tables and views to files, one per event_date where there is one.

    All of them are of one state of the lake; `export.json` says which versions, and how many rows. A NAME is either
    there as a whole or not at all.
    """
    from spark_jobs.console.export import export_rows

    first = parse_date(since, "--from") if since else None
    last = parse_date(until, "--to") if until else None
    export_rows(names, lake, out, file_format=file_format, dates=(first, last), as_of=parse_as_of(as_of), config=config)
