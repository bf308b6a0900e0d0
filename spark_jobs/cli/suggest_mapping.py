"""``adloom suggest-mapping``: a draft of the sources that fit the records of a file; no lake, no Spark."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_jobs.cli.terminal import terminal
from spark_jobs.config.encoding import COMPRESSED, UTF_8, Encoding, RecordFormat, format_of_file, names_of_files
from spark_jobs.config.folders import is_match
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import OK
from spark_jobs.errors import SourceError

if TYPE_CHECKING:
    from spark_jobs.formats.files import FileReader
    from spark_jobs.mapping.suggest import Draft, Profile, Shape
app = typer.Typer()


_ENDINGS = (*COMPRESSED, ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".avro", ".parquet", ".log", ".txt")
_SHOWN = 3
_SHOWN_BYTES = 80
_TRIED = 1000
"""Records that a draft is tried with, spread over the sample: check-events judges them all, and takes its time."""


@app.command(
    "suggest-mapping",
    epilog="Example:  adloom suggest-mapping sample.jsonl --output adloom.toml",
)
def suggest_mapping(
    file: Annotated[
        Path,
        typer.Argument(
            help="A file of records: JSON or CSV with a header, compressed or not, Avro or Parquet.", metavar="FILE"
        ),
    ],
    limit: Annotated[
        int, typer.Option(help="Records to look at: the first of the file.", min=1, max=100_000, metavar="N")
    ] = 10_000,
    output: Annotated[
        Path | None, typer.Option(help="Write the draft to this new file; default: print it.", metavar="FILE")
    ] = None,
) -> None:
    """Draft the [source.NAME] sections for records of yours, as TOML with reasons.

    The draft works with check-events at once. Comments say why each field was chosen, and what is left to decide.
    """
    if output is not None and output.exists():
        raise SourceError(f"{output} exists, and may have been edited; name another file, or remove it")
    text, tried = drafted(file, limit)
    if output is None:
        print(text, end="")  # noqa: T201 a file of settings: nothing may wrap or style it
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SourceError(f"{output} cannot be written: {error.strerror or error}") from error
    console = terminal()
    console.print(f"{output}: {tried}", soft_wrap=True)
    console.print(f"Read its lines with `# check:`, then: adloom check-events {file} --config {output}", soft_wrap=True)


@dataclass
class Tried:
    """How records fit a draft.

    Attributes:
        records: how many were tried.
        verdicts: how many of the events in them have each.
        examples: of each verdict but ``ok``, the place of the first record and why.
    """

    records: int
    verdicts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> int:
        """How many fit."""
        return self.verdicts[OK]

    @property
    def events(self) -> int:
        """How many events there are in them."""
        return self.verdicts.total()

    def __str__(self) -> str:
        """How many fit, of how many."""
        of = "records that were tried" if self.events == self.records else f"events in {self.records:,} records"
        return f"{self.ok:,} of {self.events:,} {of} fit ({self.ok / self.events:.1%})"


def drafted(file: Path, limit: int) -> tuple[str, Tried]:
    """The draft for the first ``limit`` records of ``file`` as TOML, and how they fit it.

    Raises:
        SourceError: the file cannot be read, or holds no records.
    """
    from spark_jobs.mapping.suggest import NoRecordsError, as_toml, profile_of, suggest, suggest_for_elements

    shape, records = read_sample(file, limit)
    try:
        profile = profile_of(record for _, record in records)
    except NoRecordsError as error:
        raise SourceError(_no_records(file, error.records, records)) from error
    now = datetime.now(UTC)
    draft = suggest(profile, _stem(file), now)
    tried, checks = _tried(draft, records, now), _checks(shape, profile)
    for of_elements, elements in suggest_for_elements(draft, profile, _stem(file), now):
        its = _tried(of_elements, records, now)
        if its.ok > tried.ok:
            draft, profile, tried, checks = of_elements, elements, its, _checks(shape)
            checks.append(f"each element of {of_elements.sources[0].each} is taken for an event of its own.")
    head = [*_head(file, profile, tried), *(f"check: {check}" for check in checks)]
    return as_toml(draft, shape, profile, head), tried


def read_sample(file: Path, limit: int) -> "tuple[Shape, list[tuple[str, bytes]]]":
    """How the records lie in ``file``, and the first ``limit`` of them as JSON, each with its place.

    Raises:
        SourceError: it cannot be read, or is neither JSON nor CSV.
    """
    from spark_jobs.formats.files import FileReader
    from spark_jobs.ingest.samples import charset_of, sample_file
    from spark_jobs.ingest.text_samples import encoding_of

    if not file.exists():
        raise SourceError(f"there is no file {file}")
    if file.is_dir():
        raise SourceError(f"{file} is a folder; name one of its files")
    kind = format_of_file(file.name)
    if kind in (RecordFormat.AVRO, RecordFormat.PARQUET):
        return _read(file, limit, Encoding(kind))
    charset, is_table = charset_of(file), kind is RecordFormat.CSV
    values = Encoding(RecordFormat.JSON, charset=charset)
    first = [] if is_table else [one.raw for one in sample_file(file, 1, FileReader(values)) if not one.decoded]
    if not is_table and (not first or first[0].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")):
        shape, found = _read(file, limit, values)
        if shape.unread[0] and not found:
            raise SourceError(f"{file} cannot be read: {shape.unread[1]}")
        return shape, found
    encoding = encoding_of(file, charset)
    quotes = ('"', "") if encoding.format is RecordFormat.CSV else ('"',)
    # A quote that is a part of the text costs rows; one that encloses cells is worth its rows.
    tried = [_read(file, limit, replace(encoding, quote=quote)) for quote in quotes]
    shape, found = max(tried, key=lambda one: len(one[1]))
    if shape.unread[0] and not found:
        raise SourceError(f"{file}: none of its first {shape.unread[0]:,} rows can be read: {shape.unread[1]}")
    return shape, found


def _read(file: Path, limit: int, encoding: Encoding) -> "tuple[Shape, list[tuple[str, bytes]]]":
    """``file`` as one of ``encoding``, and its first records."""
    from spark_jobs.formats.files import FileReader
    from spark_jobs.mapping.suggest import Shape

    found, unread = _readable(file, limit, FileReader(encoding))
    ending = "".join(file.suffixes[-2:] if file.suffix in COMPRESSED else file.suffixes[-1:])
    files = "" if is_match(file.name, names_of_files(encoding.format)) else f"*{ending}"
    return Shape(encoding, unread, files), found


def _readable(file: Path, limit: int, reader: "FileReader") -> tuple[list[tuple[str, bytes]], tuple[int, str]]:
    """The first records of ``file`` as JSON; how many could not be read, and why the first one."""
    from spark_jobs.ingest.samples import sample_file

    found, left_out = list[tuple[str, bytes]](), list[str]()
    for one in sample_file(file, limit, reader):
        if one.decoded and one.decoded.verdict:
            left_out.append(f"{one.place}: {one.decoded.reason}")
        else:
            found.append((one.place, one.raw))
    return found, (len(left_out), left_out[0] if left_out else "")


def _no_records(file: Path, unreadable: int, records: list[tuple[str, bytes]]) -> str:
    if not unreadable:
        return f"{file} holds no record"
    return f"{file}: none of its first {len(records):,} values is a JSON object, as {_short(records[0][1])}"


def _short(record: bytes) -> str:
    return repr(record[:_SHOWN_BYTES].decode("utf-8", "replace"))


def _tried(draft: "Draft", records: Sequence[tuple[str, bytes]], now: datetime) -> Tried:
    from spark_jobs.ingest.in_python.judge import Judge

    chosen = records[:: max(1, len(records) // _TRIED)]
    judge, tried = Judge(Settings.model_validate({"source": draft.settings()})), Tried(len(chosen))
    for place, record in chosen:
        for judged in judge.judge(record, now):
            tried.verdicts[judged.verdict] += 1
            if judged.verdict != OK:
                tried.examples.setdefault(judged.verdict, f"{place} {judged.reason}".strip())
    return tried


def _checks(shape: "Shape", profile: "Profile | None" = None) -> list[str]:
    """The questions about the file as a whole that a person should decide."""
    from spark_jobs.mapping.suggest import list_of, lists_of_objects

    unread, why = shape.unread
    found = [f"{unread:,} rows could not be read, and the draft knows nothing of them: {why}"] if unread else []
    if shape.encoding.charset != UTF_8:
        found.append(
            f"the text is not UTF-8, and {shape.encoding.charset} is a guess: do names with accents look right?"
        )
    for column in lists_of_objects(profile) if profile else ():
        records = column.sizes.total()
        found.append(
            f"{column.expression} has up to {max(column.sizes)} elements, {column.elements:,} in {records:,} records: "
            f'as [0], only one of them is read; to make each an event, set each = "{list_of(column)}"'
        )
    return found


def _head(file: Path, profile: "Profile", tried: Tried) -> list[str]:
    lines = [f"Draft for {file.name}: {tried}."]
    wrong = [(verdict, count) for verdict, count in tried.verdicts.most_common() if verdict != OK]
    lines += [f"{verdict}: {count:,}, e.g. {tried.examples[verdict]}" for verdict, count in wrong[:_SHOWN]]
    if profile.repeated:
        lines.append(f"{profile.repeated:,} records are exactly like an earlier one.")
    lines.append("Each expression says above it what it rests on. What begins with `check:` is for you to decide.")
    lines.append(f"Then: adloom check-events {file} --config THIS_FILE")
    return lines


def _stem(file: Path) -> str:
    name = file.name
    while any(name.lower().endswith(ending) for ending in _ENDINGS):
        name = name[: name.rindex(".")]
    return name
