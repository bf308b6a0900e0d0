"""Commands on the state of queries."""

from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption

state_app = typer.Typer(
    no_args_is_help=True,
    help="Inspect the state in the checkpoints of a lake, read-only; jobs may keep running.",
)
_Query = Annotated[str, typer.Argument(help="A query with state, e.g. attribute or user_status.", metavar="QUERY")]
_Limit = Annotated[int, typer.Option(help="Number of rows at most.", min=1, metavar="N")]


@state_app.command("summary", epilog="Example:  adloom state summary --lake s3a://ads/lake")
def summary(
    lake: LakeOption,
    queries: Annotated[
        list[str] | None, typer.Argument(help="Queries; default: all that keep state.", metavar="QUERY")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Show how much state each operator holds: rows, size as JSON, oldest time, and skew across partitions.

    A partition with far more than its share of the rows keeps one core busy while the others wait.
    """
    from spark_jobs.console.state import show_summary

    show_summary(queries or [], lake, config)


@state_app.command("keys", epilog="Example:  adloom state keys sessionize --lake lake --limit 5")
def keys(query: _Query, lake: LakeOption, limit: _Limit = 10, config: ConfigOption = None) -> None:
    """Show the keys with the most state, such as a user who never goes idle."""
    from spark_jobs.console.state import show_keys

    show_keys(query, lake, limit, config)


@state_app.command(
    "read", epilog="Example:  adloom state read user_status --lake lake --where \"key.user_id = 'u-000004'\""
)
def read(
    query: _Query,
    lake: LakeOption,
    where: Annotated[
        str | None, typer.Option(help="SQL condition over key, value, partition_id, bytes and oldest.", metavar="SQL")
    ] = None,
    limit: _Limit = 20,
    config: ConfigOption = None,
) -> None:
    """Show entries of the state, key and value as JSON."""
    from spark_jobs.console.state import show_entries

    show_entries(query, lake, where, limit, config)
