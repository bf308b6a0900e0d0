"""The commands that mark invalid traffic."""

from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.commands.options import ConfigOption, LakeOption, parse_zoned_time

app = typer.Typer()
_marks = typer.Typer(
    no_args_is_help=True,
    help="Mark invalid traffic by rules. Marks are kept beside the events in silver/marks; no event is changed.",
)
app.add_typer(_marks, name="marks", rich_help_panel="Streaming: long-running jobs")
RulesOption = Annotated[
    Path | None,
    typer.Option(
        "--rules", help="TOML file with rules; default: those in use, or those that come with adloom.", metavar="FILE"
    ),
]


@_marks.command("rules", epilog="Examples:  adloom marks rules --lake lake   |   adloom marks rules --rules rules.toml")
def rules(
    lake: Annotated[
        str | None, typer.Option(envvar="ADLOOM_LAKE", help="The lake whose rules are listed.", metavar="URI")
    ] = None,
    file: RulesOption = None,
    config: ConfigOption = None,
) -> None:
    """List rules with their versions: those of a file, or else those in use, or else those that come with adloom.

    A file with a malformed rule is refused, and the error names the rule, the field and the value.
    """
    from spark_jobs.console.marks import list_rules

    list_rules(lake, file=file, config=config)


@_marks.command(
    "apply",
    epilog="Examples:  adloom marks apply --rules rules.toml --from 2026-03-01T00:00Z --dry-run --lake lake   |   "
    "adloom marks apply --rules rules.toml --lake lake",
)
def apply(
    lake: LakeOption,
    file: RulesOption = None,
    since: Annotated[
        str | None, typer.Option("--from", help="First event time; default: of the first event.", metavar="TIME")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--to", help="End of event time, excluded; default: what is known.", metavar="TIME"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be marked and revoked, also in money; change nothing.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Bring the marks of a time to what the rules say, and put the rules in use.

    Events that the rules mark and that have no mark get one; marks that no rule of the set gives are revoked, by
    another row. Both are rows of silver/marks. Then the columns of gold that say what is valid follow, and each changed
    row is told in gold/restatements; no event and nothing that gold counts gross is changed. Jobs may keep running.
    From then on `adloom marks update` goes by these rules.
    """
    from spark_jobs.console.marks import apply_rules

    first = parse_zoned_time(since, "--from") if since else None
    last = parse_zoned_time(until, "--to") if until else None
    apply_rules(lake, file=file, since=first, until=last, dry_run=dry_run, config=config)


@_marks.command("update", epilog="Example:  adloom marks update --lake lake --config adloom.toml")
def update(lake: LakeOption, config: ConfigOption = None) -> None:
    """Mark what is new since the last update, by the rules in use, as far as the job deduplicate has come.

    What late events change is brought up to date too, and then the columns of gold that say what is valid. The first
    update marks everything that there is. Jobs may keep running. The next update goes on with one that was killed.
    """
    from spark_jobs.console.marks import update_lake

    update_lake(lake, config=config)
