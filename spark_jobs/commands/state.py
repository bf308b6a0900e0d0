"""Commands on the state that queries keep."""

from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption

state_app = typer.Typer(
    no_args_is_help=True,
    help="Look at what the queries keep in their checkpoints, those of running jobs too; nothing is changed.",
)
_Query = Annotated[str, typer.Argument(help="A query that keeps state, as attribute or user_status.", metavar="QUERY")]
_Limit = Annotated[int, typer.Option(help="So many at most.", min=1, metavar="N")]


@state_app.command("summary", epilog="Example:  adloom state summary --lake s3a://ads/lake")
def summary(
    lake: LakeOption,
    queries: Annotated[
        list[str] | None, typer.Argument(help="Queries; all that keep state by default.", metavar="[QUERY]…")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Tell how much state there is, by operator: rows, size as JSON, its oldest time, how it is spread.

    A partition with far more than its share of the rows is one that a core waits for.
    """
    from spark_jobs.console.state import show_summary

    show_summary(queries or [], lake, config)


@state_app.command("keys", epilog="Example:  adloom state keys sessionize --lake lake --limit 5")
def keys(query: _Query, lake: LakeOption, limit: _Limit = 10, config: ConfigOption = None) -> None:
    """Tell which keys take most: a user who never sleeps, an impression that is clicked for ever."""
    from spark_jobs.console.state import show_keys

    show_keys(query, lake, limit, config)


@state_app.command(
    "read", epilog="Example:  adloom state read user_status --lake lake --where \"key.user_id = 'u-000004'\""
)
def read(
    query: _Query,
    lake: LakeOption,
    where: Annotated[
        str | None, typer.Option(help="SQL over key, value, partition_id, bytes and oldest.", metavar="SQL")
    ] = None,
    limit: _Limit = 20,
    config: ConfigOption = None,
) -> None:
    """Show entries as they are kept, key and value as JSON."""
    from spark_jobs.console.state import show_entries

    show_entries(query, lake, where, limit, config)
