"""Changes of the fields of events and of the rules about records."""

from collections.abc import Set as AbstractSet

from spark_jobs.contract.changes import input_kinds as kinds
from spark_jobs.contract.changes.change import Change, Changes
from spark_jobs.contract.changes.kind import ChangeKind
from spark_jobs.contract.contract import Contract, FieldTerms, RecordTerms


def event_changes(old: Contract, new: Contract) -> Changes:
    """The differences in the event schema."""
    before, now = {one.name: one for one in old.fields}, {one.name: one for one in new.fields}
    known = {kind for one in old.fields for kind in one.event_types}
    for name in dict.fromkeys([*before, *now]):
        yield from _field(f"event.{name}", before.get(name), now.get(name), known)
    rules_before, rules_now = ({one.verdict: one for one in terms.records} for terms in (old, new))
    for verdict in dict.fromkeys([*rules_before, *rules_now]):
        yield from _record(f"record.{verdict}", rules_before.get(verdict), rules_now.get(verdict))


def _field(what: str, old: FieldTerms | None, new: FieldTerms | None, known: AbstractSet[str]) -> Changes:
    """``known``: the event types that had fields of their own."""
    if old is None or new is None:
        if new:
            yield Change(_added(new, known), what, "", new.type)
        elif old:
            yield Change(kinds.FIELD_REMOVED, what, old.type, "")
        return
    if (old.type, set(old.event_types)) != (new.type, set(new.event_types)):
        yield Change(kinds.FIELD_TYPE, what, _typed(old), _typed(new))
    if old.required != new.required:
        kind = kinds.REQUIRED if new.required else kinds.OPTIONAL
        yield Change(kind, what, _need(old), _need(new))
    if old.max_length != new.max_length:
        yield _limit(f"{what}.max_length", old.max_length, new.max_length, (kinds.FIELD_TIGHTER, kinds.FIELD_LOOSER))
    if old.minimum != new.minimum:
        is_tighter = new.minimum is not None and (old.minimum is None or new.minimum > old.minimum)
        kind = kinds.FIELD_TIGHTER if is_tighter else kinds.FIELD_LOOSER
        yield Change(kind, f"{what}.minimum", shown(old.minimum), shown(new.minimum))


def _added(field: FieldTerms, known: AbstractSet[str]) -> ChangeKind:
    if field.event_types and known.isdisjoint(field.event_types):
        return kinds.FIELD_OF_NEW_TYPE
    return kinds.NEEDED_FIELD_ADDED if field.required else kinds.FIELD_ADDED


def _typed(field: FieldTerms) -> str:
    return f"{field.type} of {', '.join(field.event_types) or 'all events'}"


def _need(field: FieldTerms) -> str:
    return "required" if field.required else "optional"


def _record(what: str, old: RecordTerms | None, new: RecordTerms | None) -> Changes:
    if old is None or new is None:
        if new:
            yield Change(kinds.RECORD_RULE_ADDED, what, "", new.meaning)
        elif old:
            yield Change(kinds.RECORD_RULE_REMOVED, what, old.meaning, "")
    elif old.unit != new.unit:
        yield Change(kinds.RECORD_RULE_ADDED, what, old.unit, new.unit)
    elif old.limit != new.limit:
        yield _limit(what, old.limit, new.limit, (kinds.RECORD_TIGHTER, kinds.RECORD_LOOSER), f" {new.unit}")


def _limit(
    what: str, before: int | None, now: int | None, judged: tuple[ChangeKind, ChangeKind], unit: str = ""
) -> Change:
    """A change of an upper limit; None: no limit."""
    tighter, looser = judged
    is_tighter = now is not None and (before is None or now < before)
    return Change(tighter if is_tighter else looser, what, shown(before, unit), shown(now, unit))


def shown(limit: int | None, unit: str = "") -> str:
    """A limit for people."""
    return "no limit" if limit is None else f"{limit:,}{unit}"
