"""Changes of the expectations of a table."""

from collections.abc import Sequence

from spark_jobs.contract.changes import output_kinds as kinds
from spark_jobs.contract.changes.change import Change, Changes
from spark_jobs.contract.changes.kind import ChangeKind
from spark_jobs.contract.contract import Expectation

CRITICAL = "critical"
"""The severity of a rule that is a promise."""
_IN_SET = "in_set"


def expectation_changes(table: str, old: Sequence[Expectation], new: Sequence[Expectation]) -> Changes:
    """The differences in the expectations of ``table``. Another wording of the same rule is no difference."""
    before, now = {one.name: one for one in old}, {one.name: one for one in new}
    for name in dict.fromkeys([*before, *now]):
        was, is_now, what = before.get(name), now.get(name), f"{table}: {name}"
        if is_now is None or was is None:
            if is_now:
                yield Change(kinds.RULE_ADDED, what, "", is_now.meaning)
            elif was:
                is_promise = was.severity == CRITICAL
                kind = kinds.RULE_REMOVED if is_promise else kinds.WARNING_CHANGED
                yield Change(kind, what, was.meaning, "")
        elif _content(was) != _content(is_now):
            before_text, now_text = _shown(was), _shown(is_now)
            yield Change(_judge(was, is_now), what, before_text, now_text)


def _content(rule: Expectation) -> tuple[object, ...]:
    """The check of a rule."""
    values = frozenset(rule.values)
    bounds = rule.minimum, rule.maximum, rule.mostly
    return rule.kind, rule.column, rule.when, values, *bounds, rule.severity


def _judge(old: Expectation, new: Expectation) -> ChangeKind:
    if old.severity != CRITICAL:
        return kinds.RULE_TIGHTER if new.severity == CRITICAL else kinds.WARNING_CHANGED
    if (old.kind, old.column) != (new.kind, new.column) or new.when not in (old.when, None):
        return kinds.RULE_OTHER
    is_kept = new.severity == CRITICAL and new.mostly >= old.mostly and _is_within(old, new)
    return kinds.RULE_TIGHTER if is_kept else kinds.RULE_LOOSER


def _is_within(old: Expectation, new: Expectation) -> bool:
    """Whether every value that ``new`` allows was allowed by ``old``."""
    if old.kind == _IN_SET and not set(new.values) <= set(old.values):
        return False
    is_above = old.minimum is None or (new.minimum is not None and new.minimum >= old.minimum)
    is_below = old.maximum is None or (new.maximum is not None and new.maximum <= old.maximum)
    return is_above and is_below


def _shown(rule: Expectation) -> str:
    parts = [f"{rule.column} {rule.kind}", rule.severity]
    if rule.values:
        parts.append(f"one of {', '.join(rule.values)}")
    if rule.minimum is not None:
        parts.append(f"at least {rule.minimum:,}")
    if rule.maximum is not None:
        parts.append(f"at most {rule.maximum:,}")
    if rule.mostly != 1.0:
        parts.append(f"for {rule.mostly:.0%} of the rows")
    if rule.when:
        parts.append(f"where {rule.when}")
    return ", ".join(parts)
