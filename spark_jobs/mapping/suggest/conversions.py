"""Which columns of conversions are the fields that only they have."""

import re
from collections.abc import Set as AbstractSet

from spark_jobs.contract.events import CURRENCY_PATTERN
from spark_jobs.mapping.suggest import names
from spark_jobs.mapping.suggest.draft import DraftField
from spark_jobs.mapping.suggest.fields import (
    GOOD_NAME,
    NEARLY_ALL,
    Scored,
    amount_field,
    described,
    field_of,
    is_id_like,
)
from spark_jobs.mapping.suggest.names import Names, name_score
from spark_jobs.mapping.suggest.profile import Column, Profile

_CODE = re.compile(CURRENCY_PATTERN)
_UNITS = "taken for units of the currency; for cents, divide by 100"


def conversion_fields(group: Profile, taken: AbstractSet[str]) -> dict[str, DraftField | None]:
    """By field, what was found among the columns that are not ``taken``."""
    value = amount_field(group, taken, names.VALUE, _UNITS)
    taken = taken | set(value.columns if value else ())
    return {
        "conversion_type": _by_name(group, names.CONVERSION_TYPE, taken),
        "value_micros": value,
        "currency": _currency(group),
        "order_id": _by_name(group, names.ORDER_ID, taken),
        "revokes": _by_name(group, names.REVOKES, taken),
    }


def _by_name(group: Profile, known: Names, taken: AbstractSet[str]) -> DraftField | None:
    """An id by its name, however few records have it: orders and refunds are rare."""
    found = [
        Scored(score, column)
        for column in group.scalars
        if (score := name_score(column.keys, known)) >= GOOD_NAME
        and column.distinct
        and column.expression not in taken
        and is_id_like(column)
    ]
    if not found:
        return None
    return field_of([max(found, key=lambda one: one.score).column], group)


def _currency(group: Profile) -> DraftField | None:
    for column in group.scalars:
        if name_score(column.keys, names.CURRENCY) >= GOOD_NAME and (expression := _code_of(column)):
            return DraftField(expression, described(column, group), (), (column.expression,))
    return None


def _code_of(column: Column) -> str:
    """The expression that gives the codes of a column; empty if it holds none."""
    for expression, codes in (
        (column.or_null, column.distinct),
        (f"upper({column.or_null})", {code.upper() for code in column.distinct}),
    ):
        if codes and sum(_CODE.fullmatch(code) is not None for code in codes) >= NEARLY_ALL * len(codes):
            return expression
    return ""
