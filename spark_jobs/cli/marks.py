"""``adloom marks``: the rules, what they mark and revoke, in events and money, and what that changes in gold."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from spark_jobs.cli.opening import session
from spark_jobs.cli.options import ConfigOption, LakeOption, parse_zoned_time
from spark_jobs.cli.terminal import terminal, utc
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import LakeInUseError
from spark_jobs.lake.open import open_existing
from spark_jobs.marks.model import Marking, Sum
from spark_jobs.restatements.plan import RepairPlan
from spark_jobs.traffic_rules.rules import Rule

if TYPE_CHECKING:
    from spark_jobs.spark.open_lake import OpenLake

    _Mark = Callable[[OpenLake, Callable[[str], None]], Marking | None]

app = typer.Typer(
    name="marks",
    no_args_is_help=True,
    help="Mark invalid traffic by rules. Marks are kept in silver/marks, next to the events; no event is changed.",
)
RulesOption = Annotated[
    Path | None,
    typer.Option(
        "--rules", help="TOML file with rules; default: those in use, or those that come with adloom.", metavar="FILE"
    ),
]


_MICROS = 1_000_000
_CENTS = 10_000
_SHOWN_ELSEWHERE = {"id", "class", "kind", "event_type"}
_LONGEST_LIST = 3


@app.command("rules", epilog="Examples:  adloom marks rules --lake lake   |   adloom marks rules --rules rules.toml")
def rules(
    location: Annotated[
        str | None, typer.Option("--lake", envvar="ADLOOM_LAKE", help="The lake whose rules are listed.", metavar="URI")
    ] = None,
    file: RulesOption = None,
    config: ConfigOption = None,
) -> None:
    """List rules with their versions: those of a file, or else those in use, or else those that come with adloom.

    A file with a malformed rule is refused, and the error names the rule, the field and the value.
    """
    from spark_jobs.marks.rules_in_use import rules_in_use
    from spark_jobs.traffic_rules.rule_files import load_rules

    used = None
    if file is None and location:
        used = rules_in_use(open_existing(location, load_settings(config, os.environ).s3))
    found = used or (load_rules(file) if file else load_rules())
    origin = f"in use in {location}" if used else str(file or "those that come with adloom")
    table = Table(title=f"rules: {origin}", title_justify="left", box=SIMPLE_HEAD)
    for heading in ("id", "version", "class", "kind", "marks", "by"):
        table.add_column(heading, overflow="fold")
    for rule in found.rules:
        types = ", ".join(rule.event_type)
        table.add_row(rule.id, rule.version, rule.traffic_class.value, rule.kind, types, _by(rule))
    terminal(is_uncut=True).print(table)


@app.command(
    "apply",
    epilog="Examples:  adloom marks apply --rules rules.toml --from 2026-03-01T00:00Z --dry-run --lake lake   |   "
    "adloom marks apply --rules rules.toml --lake lake",
)
def apply(
    location: LakeOption,
    file: RulesOption = None,
    begin: Annotated[
        str | None, typer.Option("--from", help="First event time; default: of the first event.", metavar="TIME")
    ] = None,
    end: Annotated[
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
    row is recorded in gold/restatements; no event and nothing that gold counts gross is changed. Jobs may keep running.
    From then on `adloom marks update` uses these rules.
    """
    from spark_jobs.marks.mark import apply_marks
    from spark_jobs.traffic_rules.rule_files import load_rules

    since = parse_zoned_time(begin, "--from") if begin else None
    until = parse_zoned_time(end, "--to") if end else None
    rules = load_rules(file) if file else None

    def mark(lake: "OpenLake", on_step: Callable[[str], None]) -> Marking:
        return apply_marks(lake, rules, since=since, until=until, dry_run=dry_run, on_step=on_step)

    _run(location, config, mark, dry_run=dry_run)


@app.command("update", epilog="Example:  adloom marks update --lake lake --config adloom.toml")
def update(location: LakeOption, config: ConfigOption = None) -> None:
    """Mark what is new since the last update, by the rules in use, up to where the job deduplicate is.

    What late events change is brought up to date too, and then the columns of gold that say what is valid. The first
    update marks everything that there is. Jobs may keep running. The next update goes on with one that was killed.
    """
    from spark_jobs.marks.mark import update_marks

    def mark(lake: "OpenLake", on_step: Callable[[str], None]) -> Marking | None:
        return update_marks(lake, on_step=on_step)

    _run(location, config, mark, dry_run=False)


def _run(location: str, config: Path | None, mark: "_Mark", *, dry_run: bool) -> None:
    console, settings = terminal(is_uncut=True), load_settings(config, os.environ)
    lake = open_existing(location, settings.s3)
    with session(console, settings, lake) as opened, console.status("opening the lake …") as status:

        def show(step: str) -> None:
            status.update(f"{step} …")

        marking = mark(opened, show)
        # Also if nothing is new to mark: what was marked before may have waited, or a command was killed after it.
        plan, is_repaired = (None, False) if dry_run else _restate(opened, show)
    if marking is None:
        console.print(f"nothing to mark: {lake.shown()} knows no event that was not looked at", soft_wrap=True)
    else:
        _print_marking(console, marking, lake.shown(), dry_run=dry_run)
    if is_repaired:
        console.print("gold is being repaired: the next `adloom marks update` brings the marks to it", soft_wrap=True)
    elif plan:
        _print_plan(console, plan)


def _restate(lake: "OpenLake", on_step: Callable[[str], None]) -> tuple[RepairPlan | None, bool]:
    """Brings the marks to gold; and whether that was not possible, because a repair is at work."""
    from spark_jobs.days.update import update_days_with
    from spark_jobs.restatements.marks_to_gold import apply_marks_to_gold

    try:
        plan = apply_marks_to_gold(lake, on_step=on_step)
    except LakeInUseError:
        return None, True
    if plan and plan.changes:
        on_step("looking which days that has restated")
        with suppress(LakeInUseError):  # another process is doing so
            update_days_with(lake)
    return plan, False


def _print_plan(console: Console, plan: RepairPlan) -> None:
    title = f"gold: marks brought in, number {plan.number} in _repairs"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("table")
    for heading in ("events", "they wait", "rows changed", "frozen"):
        table.add_column(heading, justify="right")
    for name, part in plan.tables.items():
        table.add_row(name, *[f"{count:,}" for count in (part.events, part.pending, part.inserts, part.frozen)])
    console.print(table)
    if plan.pending:
        console.print("what waits can still change by itself; a later update brings it in", soft_wrap=True)


def _print_marking(console: Console, marking: Marking, place: str, *, dry_run: bool) -> None:
    window = f"{utc(marking.since)} to {utc(marking.until)}"
    table = Table(title=f"{place}: marks, {window}", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("rule")
    table.add_column("version")
    table.add_column("class")
    table.add_column("change")
    for heading in ("events", "impressions", "their cost", "clicks", "conversions", "their value"):
        table.add_column(heading, justify="right")
    for change in marking.changes:
        for name, total in (("marked", change.marked), ("revoked", change.revoked)):
            if total.events:
                table.add_row(change.rule_id, change.rule_version, change.traffic_class, name, *_cells(total))
    if marking.changes:
        console.print(table)
        console.print("an event that several rules mark is in the row of each", soft_wrap=True)
    else:
        console.print(f"{place}: no mark changes, {window}", soft_wrap=True)
    if marking.net:
        console.print(_net_table(marking))
    if dry_run:
        console.print("dry run: nothing was written")
    else:
        console.print(
            f"rules in use: {marking.digest}; each mark is in silver/marks: `adloom show marks`", soft_wrap=True
        )


def _net_table(marking: Marking) -> Table:
    table = Table(title="gold, net: what would change", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("campaign")
    for heading in ("impressions", "their cost", "clicks"):
        table.add_column(heading, justify="right")
    for one in marking.net:
        table.add_row(one.campaign_id, f"{one.impressions:+,}", _signed(one.cost_micros), f"{one.clicks:+,}")
    return table


def _signed(micros: int) -> str:
    return f"-{_money(-micros)}" if micros < 0 else f"+{_money(micros)}"


def _cells(total: Sum) -> tuple[str, ...]:
    counts = (f"{total.events:,}", f"{total.impressions:,}", _money(total.cost_micros))
    return (*counts, f"{total.clicks:,}", f"{total.conversions:,}", _values(total.value_micros))


def _values(values: Mapping[str, int]) -> str:
    return ", ".join(f"{_money(micros)} {currency}" for currency, micros in sorted(values.items())) or _money(0)


def _money(micros: int) -> str:
    """``micros`` to the cent where that is exact, otherwise in full: no digit is lost."""
    whole, rest = divmod(micros, _MICROS)
    return f"{whole:,}.{rest:06}" if rest % _CENTS else f"{whole:,}.{rest // _CENTS:02}"


def _by(rule: Rule) -> str:
    """The terms of the rule, without long lists."""
    said = rule.model_dump(mode="json", exclude_none=True)
    parts = []
    for name, value in said.items():
        if name not in _SHOWN_ELSEWHERE:
            is_long = isinstance(value, list) and len(value) > _LONGEST_LIST
            shown = f"{len(value):,}" if is_long else ", ".join(map(str, value)) if isinstance(value, list) else value
            parts.append(f"{name} {shown}")
    return "; ".join(parts)
