"""Changes of the named sources."""

import re
from collections.abc import Sequence

from spark_jobs.contract.changes import input_kinds as kinds
from spark_jobs.contract.changes.change import Change, Changes
from spark_jobs.contract.contract import KeptTerms, SourceTerms
from spark_jobs.contract.events import UnknownFields

_TEXT = "string"
_PATH = re.compile(r"\$(?:\.\w+|\[[0-9]+\]|\['[^']*'\])*")
_Sources = Sequence[SourceTerms]
_ENDS_SESSION = "is_last"
_QUOTED_OR_SPACE = re.compile(
    r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)|(?:\s|--[^\n]*|/\*.*?\*/)+""", re.DOTALL
)


def source_changes(old: _Sources, new: _Sources) -> Changes:
    """The differences in the sources."""
    before, now = {one.name: one for one in old}, {one.name: one for one in new}
    last = {name for name in before if all(names[-1] == name for names in _readers(old).values() if name in names)}
    for name in dict.fromkeys([*before, *now]):
        if name not in now:
            yield Change(kinds.SOURCE_REMOVED, f"source.{name}", _inputs(before[name]), "")
        elif name not in before:
            yield Change(kinds.SOURCE_ADDED, f"source.{name}", "", _inputs(now[name]))
        else:
            yield from _source(before[name], now[name], is_last=name in last)
    yield from _order(old, new)


def _order(old: _Sources, new: _Sources) -> Changes:
    """The sources that read an input may only get others after them: the first one that fits a record wins."""
    now = _readers(new)
    for place, names in _readers(old).items():
        readers = now.get(place, [])
        kept = [name for name in names if name in readers]
        if readers[: len(kept)] != kept:
            what = f"sources of {place}" if place else "sources"
            yield Change(kinds.ORDER, what, ", ".join(names), ", ".join(readers))


def _readers(sources: _Sources) -> dict[str, list[str]]:
    """By topic or folder, the names of the sources that read it, in the order in which they are tried."""
    found: dict[str, list[str]] = {}
    for one in sources:
        for place in one.inputs:
            found.setdefault(place, []).append(one.name)
    return found


def _inputs(source: SourceTerms) -> str:
    return ", ".join(source.inputs) or "the folder of a run"


def _source(old: SourceTerms, new: SourceTerms, *, is_last: bool) -> Changes:
    what = f"source.{old.name}"
    added = [one for one in new.inputs if one not in old.inputs]
    if removed := [one for one in old.inputs if one not in new.inputs]:
        yield Change(kinds.INPUT_REMOVED, what, ", ".join(removed) or "the folder of a run", ", ".join(added))
    elif added:
        yield Change(kinds.INPUT_ADDED, what, _inputs(old), _inputs(new))
    if old.format != new.format:
        yield Change(kinds.FORMAT, f"{what}.format", old.format, new.format)
    else:
        for name in sorted({*old.encoding, *new.encoding}):
            was, now = old.encoding.get(name, ""), new.encoding.get(name, "")
            if was != now:
                yield Change(kinds.ENCODING, f"{what}.{name}", was, now)
    if old.each != new.each:
        yield Change(kinds.EACH, f"{what}.each", old.each or "whole records", new.each or "whole records")
    if old.also != new.also:
        yield Change(kinds.ALSO, f"{what}.also", ", ".join(old.also) or "none", ", ".join(new.also) or "none")
    if old.unknown != new.unknown:
        is_stricter = new.unknown == UnknownFields.QUARANTINE
        kind = kinds.UNKNOWN_QUARANTINE if is_stricter else kinds.UNKNOWN_KEEP
        yield Change(kind, f"{what}.unknown", old.unknown, new.unknown)
    yield from _when(what, old, new, is_last=is_last)
    yield from _changed_sets(what, old, new)
    yield from _expressions(what, old, new)
    yield from _kept(what, old, new)


def _when(what: str, old: SourceTerms, new: SourceTerms, *, is_last: bool) -> Changes:
    if same(old.when, new.when):
        return
    is_dropped = not new.when.strip() and is_last and not _refuses_unknown(new)
    kind = kinds.WHEN_DROPPED if is_dropped else kinds.WHEN_CHANGED
    yield Change(kind, f"{what}.when", old.when or "all records", new.when or "all records")


def _changed_sets(what: str, old: SourceTerms, new: SourceTerms) -> Changes:
    for name, more, fewer in (
        ("may_lack", kinds.MAY_LACK, kinds.MUST_HAVE),
        ("lenient", kinds.LENIENT, kinds.STRICT),
    ):
        before, now = getattr(old, name), getattr(new, name)
        for kind, names in ((more, set(now) - set(before)), (fewer, set(before) - set(now))):
            if names:
                yield Change(kind, f"{what}.{name}", ", ".join(before), ", ".join(now))


def _expressions(what: str, old: SourceTerms, new: SourceTerms) -> Changes:
    for name in old.let.keys() & new.let.keys():
        if not same(old.let[name], new.let[name]):
            yield Change(kinds.LET_CHANGED, f"{what}.let.{name}", old.let[name], new.let[name])
    for field in dict.fromkeys([*old.expressions, *new.expressions]):
        before, now = old.expressions.get(field), new.expressions.get(field)
        if field == _ENDS_SESSION and not same(before or "", now or ""):
            kind = kinds.IDENTITY_CHANGED  # without an expression, no event ends its session
        elif before is None or now is None:
            kind = kinds.FIELD_MAPPED if before is None else kinds.FIELD_UNMAPPED
        elif same(before, now):
            continue
        elif field in kinds.IDENTITY:
            kind = kinds.IDENTITY_CHANGED
        else:
            kind = kinds.MAPPING_UNDER_QUARANTINE if _refuses_unknown(new) else kinds.VALUE_CHANGED
        yield Change(kind, f"{what}.{field}", before or "", now or "")


def _kept(what: str, old: SourceTerms, new: SourceTerms) -> Changes:
    before, now = {one.name: one for one in old.keep}, {one.name: one for one in new.keep}
    for name in dict.fromkeys([*before, *now]):
        yield from _column(f"{what}.keep.{name}", before.get(name), now.get(name), is_strict=_refuses_unknown(new))


def _column(what: str, old: KeptTerms | None, new: KeptTerms | None, *, is_strict: bool) -> Changes:
    if old is None or new is None:
        if new:
            kind = kinds.KEPT if _never_fails(new) else kinds.KEPT_COMPUTED
            yield Change(kind, what, "", f"{new.expression} as {new.type}")
        elif old:
            yield Change(kinds.NOT_KEPT, what, f"{old.expression} as {old.type}", "")
        return
    if old.type != new.type:
        yield Change(kinds.KEPT_TYPE, what, old.type, new.type)
    if not same(old.expression, new.expression):
        changed = kinds.KEPT_PATH if _never_fails(new) else kinds.KEPT_EXPRESSION
        kind = kinds.MAPPING_UNDER_QUARANTINE if is_strict else changed
        yield Change(kind, what, old.expression, new.expression)


def _never_fails(column: KeptTerms) -> bool:
    """Whether each record gives a value of the column's type, or none."""
    return column.type == _TEXT and _PATH.fullmatch(column.expression.strip()) is not None


def _refuses_unknown(source: SourceTerms) -> bool:
    return source.unknown == UnknownFields.QUARANTINE


def same(one: str, other: str) -> bool:
    """Whether two expressions are the same but for white space and comments outside of quotes."""
    return _normal(one) == _normal(other)


def _normal(expression: str) -> str:
    return _QUOTED_OR_SPACE.sub(lambda found: found[1] or " ", expression).strip()
