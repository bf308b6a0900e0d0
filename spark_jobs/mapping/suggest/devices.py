"""Which columns say what a person's device is: its address, and how its browser names itself."""

from collections.abc import Callable
from ipaddress import ip_address

from spark_jobs.mapping.suggest import names
from spark_jobs.mapping.suggest.draft import DraftField
from spark_jobs.mapping.suggest.fields import GOOD_NAME, NEARLY_ALL, Scored, alternatives, field_of
from spark_jobs.mapping.suggest.names import Names, all_words, name_score
from spark_jobs.mapping.suggest.profile import Column, Profile, ValueKind


def device_fields(whole: Profile) -> dict[str, DraftField]:
    """By field, what was found among the columns of all records."""
    found = {
        "ip": _named(whole, names.IP, _is_address),
        "user_agent": _named(whole, names.USER_AGENT, lambda _: True),
    }
    return {name: field for name, field in found.items() if field}


def _named(whole: Profile, known: Names, fits: Callable[[str], bool]) -> DraftField | None:
    """The texts of a good name that nearly all fit."""
    found = [
        Scored(score, column)
        for column in whole.scalars
        if (score := name_score(column.keys, known)) >= GOOD_NAME
        and not all_words(column.keys) & names.NOT_THE_CLIENT
        and _is_text(column)
        and sum(map(fits, column.distinct)) >= NEARLY_ALL * len(column.distinct) > 0
    ]
    chosen, _ = alternatives(found, whole)
    return field_of(chosen, whole) if chosen else None


def _is_text(column: Column) -> bool:
    others = column.kinds.total() - column.kinds[ValueKind.TEXT] - column.kinds[ValueKind.NULL]
    return others <= (1 - NEARLY_ALL) * column.kinds.total()


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
