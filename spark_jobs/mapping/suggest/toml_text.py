"""A draft as TOML, with comments that say what it rests on."""

import json
from collections.abc import Iterable, Iterator

from spark_jobs.mapping.suggest.draft import Draft, DraftField, Shape, SourceDraft
from spark_jobs.mapping.suggest.profile import Column, Profile, ValueKind

_WIDTH = 118
_MAX_LISTED = 80
_MAX_EXAMPLE = 40


def as_toml(draft: Draft, shape: Shape, profile: Profile, head: Iterable[str]) -> str:
    """The settings of ``draft``, ready for ``check-events``.

    Args:
        draft: what was chosen.
        shape: how the records lie in the file.
        profile: of the sample; its paths are listed at the end.
        head: what the first comments say.
    """
    lines = [line for text in head for line in _comment(text)]
    for source in draft.sources:
        lines += ["", *_source(source, shape)]
    lines += ["", *_listing(profile)]
    return "\n".join(lines) + "\n"


def _source(source: SourceDraft, shape: Shape) -> Iterator[str]:
    yield f"[source.{source.name}]"
    yield from _checks(source.checks)
    if not shape.encoding.format.is_json:
        yield f"format = {_text(shape.encoding.format)}"
    if shape.files:
        yield f"files = {_text(shape.files)}"
    for name, value in shape.encoding.differing.items():
        yield f"{name} = {_text(value)}"
    if source.each:
        yield f"each = {_text(source.each)}"
    if source.when:
        yield f"when = {_text(source.when)}"
    if source.also:
        yield f"also = {_text(', '.join(source.also))}"
    yield from _assignment("event_type", source.event_type)
    if source.may_lack_user:
        yield 'may_lack = "user_id"'
    yield ""
    yield f"[source.{source.name}.map]"
    for name, field in source.fields.items():
        yield from _assignment(name, field)


def _assignment(name: str, field: DraftField) -> Iterator[str]:
    yield from _comment(field.why)
    yield from _checks(field.checks)
    yield f"{name} = {_text(field.expression)}"


def _checks(checks: tuple[str, ...]) -> Iterator[str]:
    for check in checks:
        yield from _comment(f"check: {check}")


def _listing(profile: Profile) -> Iterator[str]:
    yield from _comment("What the records hold (of an array, the first element):")
    columns = [column for column in profile.columns.values() if not column.is_derived]
    for column in columns[:_MAX_LISTED]:
        yield from _comment(f"  {_path_line(column, profile)}")
    if len(columns) > _MAX_LISTED:
        yield from _comment(f"  and {len(columns) - _MAX_LISTED} more paths")
    if profile.left_out:
        yield from _comment("  Records have more paths than were looked at.")


def _path_line(column: Column, profile: Profile) -> str:
    kinds = " or ".join(kind.value for kind, _ in column.kinds.most_common() if kind is not ValueKind.NULL) or "null"
    share = f"{column.share(profile.rows):.1%}"
    if not column.is_scalar:
        return f"{column.expression}: {kinds}, {share}"
    examples = ", ".join(_text(_cut(value)) for value in column.examples(2))
    return f"{column.expression}: {kinds}, {share}, {len(column.distinct):,} different, e.g. {examples}"


def _cut(text: str) -> str:
    return f"{text[:_MAX_EXAMPLE]}…" if len(text) > _MAX_EXAMPLE else text


def _comment(text: str) -> Iterator[str]:
    """``text`` as comments; what TOML does not allow there is escaped."""
    safe = "".join(one if one.isprintable() else _text(one)[1:-1] for one in text)
    while len(safe) > _WIDTH and " " in safe[:_WIDTH].strip():
        cut = safe.rindex(" ", 1, _WIDTH)
        yield f"# {safe[:cut].rstrip()}"
        safe = f"  {safe[cut:].strip()}"
        if len(safe) <= _WIDTH:
            break
    yield f"# {safe}"


def _text(text: str) -> str:
    """As a string of TOML: as in JSON, and what cannot be printed is escaped, too."""
    return "".join(one if one.isprintable() else f"\\U{ord(one):08X}" for one in json.dumps(text, ensure_ascii=False))
