"""Which column of a group of records is which field."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from spark_jobs.contract.events import MAX_ID_CHARACTERS
from spark_jobs.contract.nobody import Nobody
from spark_jobs.mapping import MappingError
from spark_jobs.mapping.expression import evaluate
from spark_jobs.mapping.suggest import names
from spark_jobs.mapping.suggest.draft import DraftField
from spark_jobs.mapping.suggest.names import Names, all_words, name_score, words
from spark_jobs.mapping.suggest.profile import Column, Profile, ValueKind
from spark_jobs.mapping.suggest.times import TimeReading, as_type
from spark_jobs.mapping.types import Type

NEARLY_ALL = 0.98
GOOD_NAME = 5.0
_FAIR = 0.9
_SOME = 0.3
_ADDED = 0.01
_MAX_ALTERNATIVES = 3
_MANY = 50
_FREQUENT = 0.2
"""The share of records from which on one id is suspected to stand for no person."""
_FEW_USERS = 10
_LONG_TEXT = 20
_GROUPED_BY_COMMAS = re.compile(r"-?[0-9]{1,3}(?:,[0-9]{3})+(?:[.][0-9]+)?")
_GROUPED_BY_POINTS = re.compile(r"-?[1-9][0-9]{0,2}(?:[.][0-9]{3})+")


@dataclass(frozen=True)
class Scored:
    """A column that may be a field, and how well it fits."""

    score: float
    column: Column


def described(column: Column, group: Profile) -> str:
    """The content of a column, in a few words."""
    kind = next(kind.value for kind, _ in column.kinds.most_common() if kind is not ValueKind.NULL)
    if not column.is_scalar:
        return f"{kind} in {column.share(group.rows):.1%} of the {group.of}"
    examples = ", ".join(f'"{_short(value)}"' for value in column.examples(2))
    count = len(column.distinct)
    return f"{kind} in {column.share(group.rows):.1%} of the {group.of}, {count:,} different, e.g. {examples}"


def _short(text: str) -> str:
    return f"{text[:48]}…" if len(text) > 48 else text  # noqa: PLR2004 what fits a line


def is_id_like(column: Column) -> bool:
    """Whether its values can be ids: text or whole numbers, not too long."""
    good = column.kinds[ValueKind.TEXT] + column.kinds[ValueKind.INTEGER]
    all_of_them = column.kinds.total() - column.kinds[ValueKind.NULL]
    if not column.is_scalar or good < NEARLY_ALL * all_of_them:
        return False
    return sum(len(value) <= MAX_ID_CHARACTERS for value in column.distinct) >= NEARLY_ALL * len(column.distinct)


def user_field(group: Profile, readings: Mapping[str, TimeReading]) -> tuple[DraftField | None, AbstractSet[int]]:
    """The user, and the records that have one."""
    columns = [one for one in group.scalars if one.distinct and is_id_like(one) and one.expression not in readings]
    found = [Scored(score, one) for one in columns if (score := _user_score(one, group.rows)) > 0]
    checks = []
    strong = [one for one in found if one.score >= GOOD_NAME]
    if not strong and found:
        strong = [max(found, key=lambda one: (one.score, one.column.share(group.rows)))]
        checks.append("nothing is named like a user; this one has ids that repeat: is it whom sessions belong to?")
    chosen, covered = alternatives(strong, group)
    checks += [check for one in chosen for check in _frequent_ids(one, group.rows)]
    return (field_of(chosen, group, checks) if chosen else None), covered


def _frequent_ids(column: Column, rows: int) -> Iterator[str]:
    """A note on each id in a large share of the records: it may mean that no user is known."""
    if rows <= _MANY:
        return
    nobody, counts = Nobody(), Counter({one: column.counts[one] for one in column.distinct})
    for value, count in counts.most_common(int(1 / _FREQUENT)):
        if count < _FREQUENT * rows:
            return
        said = f'"{_short(value)}" is in {count / rows:.0%} of the records: '
        if nobody.is_meant_by(value):
            yield said + "it means nobody (ingest.nobody), so they have no user"
        else:
            yield said + "if it means that nobody is known, add it to ingest.nobody, or all of them become one person"


def _user_score(column: Column, rows: int) -> float:
    score = name_score(column.keys, names.USER_ID)
    if not score and words(column.keys[-1])[-1:] == ("id",) and not all_words(column.keys) & names.NOT_A_USER:
        score = 1.5 if column.uniqueness < _FAIR and len(column.distinct) > 1 else 0.0
    if rows > _MANY and len(column.distinct) == 1:
        return 0.0  # a flag, or a constant: a user is not alone
    return score - 3.0 if rows > _MANY and column.uniqueness > NEARLY_ALL else score  # a user comes back


def alternatives(found: Sequence[Scored], group: Profile) -> tuple[list[Column], AbstractSet[int]]:
    """The best column that nearly all records have, or else the best ones, one for where the other lacks."""
    in_order = sorted(found, key=lambda one: -one.score)
    for one in in_order:
        if one.column.share(group.rows) >= NEARLY_ALL:
            return [one.column], set(one.column.given)
    chosen: list[Column] = []
    covered: set[int] = set()
    for one in in_order:
        if len(one.column.given - covered) >= _ADDED * group.rows and len(chosen) < _MAX_ALTERNATIVES:
            chosen.append(one.column)
            covered |= one.column.given
    return chosen, covered


def field_of(columns: Sequence[Column], group: Profile, checks: Iterable[str] = ()) -> DraftField:
    """The first of ``columns`` that a record has."""
    each = [column.or_null for column in columns]
    expression = each[0] if len(each) == 1 else f"coalesce({', '.join(each)})"
    why = "; ".join(
        f"{column.expression if len(columns) > 1 else ''} {described(column, group)}".strip() for column in columns
    )
    return DraftField(expression, why, tuple(checks), tuple(column.expression for column in columns))


def named_field(group: Profile, known: Names, taken: AbstractSet[str], user: Column | None) -> DraftField | None:
    """An id by its name, of a column that is not ``taken`` and names nothing of the ``user``."""
    found = []
    for column in group.scalars:
        score = name_score(column.keys, known)
        if score < GOOD_NAME or column.expression in taken or not is_id_like(column):
            continue
        if column.distinct and not (user and _is_of_one_user(column, user, group)):
            found.append(Scored(score, column))
    chosen, covered = alternatives(found, group)
    if not chosen or len(covered) < _SOME * group.rows:
        return None
    return field_of(chosen, group)


def _is_of_one_user(column: Column, user: Column, group: Profile) -> bool:
    """Whether each value occurs with one user only, such as an advertising id: what is shown is shown to many."""
    pairs = {(value, user.values.get(row)) for row, value in column.values.items()}
    is_many = group.rows > _MANY and len(user.distinct) > _FEW_USERS
    return is_many and len(pairs) == len(column.counts) and len(column.distinct) * 2 > len(user.distinct)


def cost_field(group: Profile, taken: AbstractSet[str]) -> DraftField | None:
    """The cost of an impression, in millionths."""
    return amount_field(
        group, taken, names.COST, "taken for units of the currency per impression; for CPM, divide by 1000"
    )


def amount_field(group: Profile, taken: AbstractSet[str], known: Names, in_units: str) -> DraftField | None:
    """An amount of money by its name, in millionths; ``in_units`` is to be checked if nothing shows its unit."""
    best: tuple[float, DraftField] | None = None
    for column in group.scalars:
        score = name_score(column.keys, known)
        if score < GOOD_NAME or column.expression in taken or column.kinds[ValueKind.BOOLEAN]:
            continue
        expression, checks = _amount_expression(column, in_units)
        if _gives_amounts(expression, column, group) and (best is None or score > best[0]):
            why = f"{described(column, group)}; {_range_of(expression, column, group)}"
            best = score, DraftField(expression, why, checks, (column.expression,))
    return best[1] if best else None


def _amount_expression(column: Column, in_units: str) -> tuple[str, tuple[str, ...]]:
    path, sign = _with_point(column)
    expression, check = _in_millionths(path, column, in_units)
    return expression, tuple(filter(None, (sign, check)))


def _with_point(column: Column) -> tuple[str, str]:
    """The expression with a point before the decimals, and what is to be checked of it."""
    path, texts = column.or_null, sorted(column.distinct)
    signed = [text for text in texts if "," in text]
    if not signed:
        grouped = [text for text in texts if _GROUPED_BY_POINTS.fullmatch(text)]
        if grouped and len(grouped) == len(texts):
            return path, f'the point in "{grouped[0]}" is taken for that before the decimals'
        return path, ""
    shown = signed[0]
    if all(map(_GROUPED_BY_COMMAS.fullmatch, signed)):
        return f"replace({path}, ',', '')", f'the comma in "{shown}" is taken for a mark of thousands, not of decimals'
    plain = f"replace({path}, '.', '')" if any("." in text for text in signed) else path
    return f"replace({plain}, ',', '.')", f'the comma in "{shown}" is taken for that before the decimals'


def _in_millionths(path: str, column: Column, in_units: str) -> tuple[str, str]:
    found = all_words(column.keys)
    if found & {"micros", "micro"}:
        return path, ""
    if found & {"nanos", "nano"}:
        return f"cast(round({path} / 1000) as bigint)", ""
    if found & {"cpm", "ecpm"}:
        return f"micros({path} / 1000)", "named CPM: taken for the price of a thousand impressions"
    if "seatbid" in column.keys:
        return f"micros({path} / 1000)", "an OpenRTB bid: taken for the price of a thousand impressions (CPM)"
    if found & {"cents", "cent"}:
        return f"micros({path} / 100)", ""
    return f"micros({path})", in_units


def _range_of(expression: str, column: Column, group: Profile) -> str:
    """The smallest, median and largest amount, each with the text that it comes from."""
    parsed, found = as_type(expression, Type.INTEGER), []
    for row in column.given:
        value = evaluate(parsed, group.records[row]).value
        if isinstance(value, int):
            found.append((value, column.values[row]))
    found.sort()
    chosen = {"smallest": 0, "median": len(found) // 2, "largest": -1} if found else {}
    return ", ".join(f'{name} "{_short(found[at][1])}" = {found[at][0]:,} micros' for name, at in chosen.items())


def _gives_amounts(expression: str, column: Column, group: Profile) -> bool:
    try:
        parsed = as_type(expression, Type.INTEGER)
    except MappingError:
        return False
    rows = list(column.given)
    tried = rows[:: max(1, len(rows) // 400)]
    values = [evaluate(parsed, group.records[row]).value for row in tried]
    good = [value for value in values if isinstance(value, int) and value >= 0]
    return len(good) >= NEARLY_ALL * len(tried) > 0


def last_field(group: Profile) -> DraftField | None:
    """Whether an event ends the session."""
    for column in group.scalars:
        is_boolean = not column.kinds.keys() - {ValueKind.BOOLEAN, ValueKind.NULL}
        if is_boolean and name_score(column.keys, names.IS_LAST) >= GOOD_NAME:
            return field_of([column], group)
    return None


def data_field(group: Profile, taken: AbstractSet[str]) -> DraftField | None:
    """The free text of an activity event: by its name, or because it reads like a text."""
    found = []
    for column in group.columns.values():
        holds_others = any(path.startswith((f"{column.expression}.", f"{column.expression}[")) for path in taken)
        if column.expression in taken or column.is_derived or holds_others or column.share(group.rows) < _SOME:
            continue
        score = name_score(column.keys, names.DATA) or (1.0 if _is_prose(column) else 0.0)
        if score:
            found.append(Scored(score + column.share(group.rows), column))
    if not found:
        return None
    best = max(found, key=lambda one: one.score).column
    return field_of([best], group)


def _is_prose(column: Column) -> bool:
    texts = column.examples(_MANY)
    is_long = bool(texts) and sum(map(len, texts)) >= _LONG_TEXT * len(texts)
    return is_long and column.is_scalar and sum(" " in text for text in texts) >= _FAIR * len(texts)
