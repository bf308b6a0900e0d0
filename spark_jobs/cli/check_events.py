"""``adloom check-events``: which records of a file or topic fit the sources of the settings; no lake, no Spark."""

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.options import ConfigOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.choices import DeduplicateMode
from spark_jobs.config.encoding import Encoding, format_of_file
from spark_jobs.config.folders import is_match, name_of
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.config.topics import value_of
from spark_jobs.contract.events import OK, VERDICTS
from spark_jobs.errors import SettingsError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spark_jobs.cli.hints import Together
    from spark_jobs.formats.files import FileReader
    from spark_jobs.ingest.in_python.judge import Judge, Judgement
    from spark_jobs.ingest.samples import Sample
app = typer.Typer()


_SHOWN = 160
"""How much of an example record is shown, in characters."""
_LOOKED_AT = 1000
"""Records of which it is said what no mapping reads."""
_FEW = 10
"""How many of the ids that mean nobody are shown."""


@app.command(
    "check-events",
    epilog="Example:  adloom check-events sample.jsonl --config adloom.toml   Exit code 0: every record fits. "
    "1: some do not; each verdict comes with an example.",
)
def check_events(
    what: Annotated[str, typer.Argument(help="A file with one record a line (.gz too), or a Kafka topic.")],
    source: Annotated[
        str | None, typer.Option(help="Only this source of the settings; default: all, in order.", metavar="NAME")
    ] = None,
    limit: Annotated[
        int, typer.Option(help="Records to look at: the first of a file, the newest of a topic.", min=1, metavar="N")
    ] = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    config: ConfigOption = None,
) -> None:
    """Check which records fit the sources in the settings, before anything runs.

    No lake is touched and Spark is not started. The verdicts are those that a run would give.
    """
    from spark_jobs.cli.hints import Together
    from spark_jobs.cli.unmapped import unmapped
    from spark_jobs.ingest.in_python.judge import Judge

    console, settings = terminal(), load_settings(config, os.environ)
    if source is not None and source not in settings.sources:
        raise SettingsError(f"--source {source}: the settings have no source of that name; {_names(settings)}")
    records, origin = _records(what, settings, source, limit)
    forever = settings.deduplicate.mode is DeduplicateMode.FOREVER
    together = Together(settings.attribute.tolerance, None if forever else settings.deduplicate.watermark)
    checked = judge_all(Judge(settings, only=source), records, origin, together)
    if not checked.records:
        raise SourceError(f"{what} holds no record")
    if as_json:
        console.print_json(
            json.dumps(_plain(checked) | {"unmapped": unmapped(checked.texts, settings)}), ensure_ascii=True
        )
    else:
        _print(console, checked, what, unmapped(checked.texts, settings))
    if checked.ok < checked.events:
        raise typer.Exit(1)


@dataclass
class Findings:
    """The records of one source and verdict, or events in them: how many, and the first of them."""

    verdict: str
    source: str | None
    place: str
    record: str
    judged: "Judgement"
    count: int = 0


@dataclass
class Checked:
    """All records that were looked at."""

    together: "Together"
    """The valid ones, for hints."""
    records: int = 0
    texts: list[bytes] = field(default_factory=list)
    """The first records as JSON."""
    left_out: list[str] = field(default_factory=list)
    """Of events that are good without something that their records give, why."""
    nobody: Counter[str] = field(default_factory=Counter)
    """By user id that means nobody, how many events had it."""
    findings: dict[tuple[str | None, str], Findings] = field(default_factory=dict)

    def add(self, sample: "Sample", judged: "Judgement") -> None:
        """Counts a record."""
        key = judged.source, judged.verdict
        if key not in self.findings:
            text = sample.raw.decode("utf-8", errors="replace")
            self.findings[key] = Findings(judged.verdict, judged.source, sample.place, text, judged)
        self.findings[key].count += 1
        if judged.verdict == OK:
            self.together.add(judged.event)
            self.left_out += [judged.reason] if judged.reason else []
        if judged.nobody is not None:
            self.nobody[judged.nobody] += 1

    @property
    def events(self) -> int:
        """How many verdicts there are: one for each record, or for each event that it holds."""
        return sum(one.count for one in self.findings.values())

    @property
    def ok(self) -> int:
        """How many fit."""
        return sum(one.count for one in self.findings.values() if one.verdict == OK)

    @property
    def in_order(self) -> list[Findings]:
        """Valid records first, then by the order of the rules."""
        return sorted(self.findings.values(), key=lambda one: (VERDICTS.index(one.verdict), one.source or ""))


def judge_all(judge: "Judge", records: "Iterable[Sample]", origin: str | None, together: "Together") -> Checked:
    """The verdicts on ``records`` as if they were received now; blank ones do not count."""
    checked, now = Checked(together), datetime.now(UTC)
    for one in records:
        found = judge.judge(one.decoded or one.raw, now, origin, one.meta)
        checked.records += bool(found)
        if found and len(checked.texts) < _LOOKED_AT:
            checked.texts.append((one.decoded.text or "").encode() if one.decoded else one.raw)
        for judged in found:
            checked.add(one, judged)
    return checked


def _records(what: str, settings: Settings, source: str | None, limit: int) -> "tuple[Iterator[Sample], str | None]":
    """The records, and the topic that they come from, if that decides which source means them."""
    from spark_jobs.formats.schema_store import SchemaStore
    from spark_jobs.formats.sources import decoders
    from spark_jobs.ingest.in_python.meta import of_file
    from spark_jobs.ingest.input_files import place_of
    from spark_jobs.ingest.samples import sample_file, sample_topic

    file = Path(what)
    if file.is_file():
        reader = _reader(file, settings, source)
        return sample_file(file, limit, reader, of_file(place_of(str(file.resolve()), reader))), None
    if file.is_dir():
        raise SourceError(f"{what} is a folder; name one of its files")
    if not settings.kafka.bootstrap_servers:
        raise SourceError(f"there is no file {what}; for a topic of that name, set kafka.bootstrap_servers")
    schemas = SchemaStore(settings.registry) if settings.registry.url else None
    (topic, *_) = (settings.sources[source].topics if source else ()) or (what,)
    decoder = value_of(topic, decoders(settings, schemas))
    return sample_topic(settings.kafka, what, limit, decoder), None if source else what


def _reader(file: Path, settings: Settings, source: str | None) -> "FileReader":
    """The reader of the records of ``file``."""
    from spark_jobs.formats.sources import reader_of

    sources = [one for name, one in settings.sources.items() if source in (None, name)]
    kind = format_of_file(file.name)
    if source is None:
        named = [one for one in sources if is_match(file.name, map(name_of, one.names))]
        sources = named or [one for one in sources if one.encoding.format is kind]
    encodings = {one.encoding for one in sources} or {Encoding(kind)}
    if len(encodings) > 1:
        raise SettingsError(f"the sources read {kind} in different ways; say with --source which one means {file}")
    return reader_of(encodings.pop(), settings.ingest.max_record_bytes)


def _names(settings: Settings) -> str:
    return f"it has {', '.join(settings.sources)}"


def _print(console: Console, checked: Checked, what: str, unmapped: list[str]) -> None:
    share = checked.ok / checked.events
    of = "records" if checked.events == checked.records else f"events in {checked.records:,} records"
    style = "bold green" if share == 1 else "bold yellow" if share else "bold red"
    console.print(f"{checked.ok:,} of {checked.events:,} {of} fit ({share:.1%}) in {what}", style=style, soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("verdict")
    table.add_column("source")
    table.add_column("records", justify="right")
    table.add_column("for example", overflow="fold")
    for one in checked.in_order:
        reason = one.judged.reason or _short(one.record)
        example = _event(one.judged) if one.verdict == OK else f"{one.place}: {reason}"
        verdict = Text(one.verdict, style="green" if one.verdict == OK else "red")
        table.add_row(verdict, one.source or "none", f"{one.count:,}", example)
    console.print(table)
    if checked.nobody:
        ids = ", ".join(f'"{_short(user)}" {count:,}' for user, count in checked.nobody.most_common(_FEW))
        more = f" and {len(checked.nobody) - _FEW:,} more ids" if len(checked.nobody) > _FEW else ""
        console.print(
            f"The user of {checked.nobody.total():,} of them is nobody (ingest.nobody): {ids}{more}",
            soft_wrap=True,
            markup=False,
            highlight=False,
        )
    for name, (least, median, most) in checked.together.amounts().items():
        console.print(
            f"{name}: smallest {least:,}, median {median:,}, largest {most:,} millionths of the currency's unit",
            soft_wrap=True,
            highlight=False,
        )
    if checked.left_out:
        console.print(
            f"{len(checked.left_out):,} of them are good without something (lenient), {_short(checked.left_out[0])}",
            soft_wrap=True,
            markup=False,
            highlight=False,
        )
    hints = [hint.sentence for hint in checked.together.hints().values() if hint]
    for sentence in [*hints, *unmapped]:
        console.print(sentence, style="bold yellow", soft_wrap=True, markup=False, highlight=False)


def _event(judged: "Judgement") -> str:
    given = {**judged.event, **judged.kept}
    return ", ".join(f"{name} {_text(value)}" for name, value in given.items() if value is not None)


def _text(value: Any) -> str:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else str(value)


def _short(text: str) -> str:
    return f"{text[:_SHOWN]}…" if len(text) > _SHOWN else text


def _plain(checked: Checked) -> dict[str, Any]:
    return {
        "records": checked.records,
        "events": checked.events,
        "ok": checked.ok,
        **{
            name: {"events": one.events, **one.example} if one else None
            for name, one in checked.together.hints().items()
        },
        "amounts": {
            name: dict(zip(("smallest", "median", "largest"), found, strict=True))
            for name, found in checked.together.amounts().items()
        },
        "left_out": len(checked.left_out),
        "nobody": dict(checked.nobody.most_common()),
        "verdicts": [
            {
                "verdict": one.verdict,
                "source": one.source,
                "records": one.count,
                "example": {
                    "place": one.place,
                    "record": one.record,
                    "reason": one.judged.reason,
                    "event": {name: None if v is None else _text(v) for name, v in one.judged.event.items()},
                },
            }
            for one in checked.in_order
        ],
    }
