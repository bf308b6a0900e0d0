"""Columns that are no paths: parts of a web address, parameters in a list, the name in a schema's address."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from spark_jobs.mapping import Path
from spark_jobs.mapping.suggest.profile import Column, Profile, ValueKind, derived, parsed_expression

_ADDRESS = re.compile(r"(?:https?://[^/?#\s]+)?/[^\s]*|https?://[^\s]+")
_REQUEST = re.compile(r"[A-Z]{3,7} \S+ HTTP/[0-9.]+")
_PARAMETER = re.compile(r"[?&]([A-Za-z_][A-Za-z0-9_.-]*)=")
_SCHEMA = re.compile(r"iglu:[^/]+/[^/]+/[^/]+/[^/]+")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_. -]*")
_MOSTLY = 0.9
_LOOKED_AT = 500
_MAX_PARAMETERS = 20
_VALUE_FORMS = ("string_value", "int_value", "float_value", "double_value")
"""Where a typed parameter of analytics events has its value."""
_KEY_NAMES, _VALUE_NAMES = ("key", "name", "k"), ("value", "val", "v")
"""How the two members of an element are called in lists that stand for a table."""


def with_derived(profile: Profile) -> Profile:
    """``profile`` with the columns that can be derived from its paths."""
    more: list[Column] = []
    for column in profile.columns.values():
        if column.is_scalar:
            more.extend(_from_text(column, profile))
        elif column.kinds[ValueKind.ARRAY] and not column.expression.endswith("]"):
            more.extend(_from_list(column, profile))
    return profile.with_columns(more)


def _from_text(column: Column, profile: Profile) -> Iterator[Column]:
    texts = [text for text, _ in zip(column.distinct, range(_LOOKED_AT), strict=False)]
    if _are(_SCHEMA, texts):
        yield derived(f"split_part({column.expression}, '/', 2)", (*column.keys, "event_name"), profile, column.given)
    elif _are(_REQUEST, texts):
        yield from _parameters_of(column, texts, profile)
    elif _are(_ADDRESS, texts):
        for pattern in ("^(?:https?://[^/?#]*)?/([^/?#.]*)", "^[^?#]*/([^/?#.]*)"):
            expression = f"regexp_extract({column.expression}, '{pattern}', 1)"
            yield derived(expression, (*column.keys, "action"), profile, column.given)
        yield from _parameters_of(column, texts, profile)


def _parameters_of(column: Column, texts: Iterable[str], profile: Profile) -> Iterator[Column]:
    found = Counter(name for text in texts for name in set(_PARAMETER.findall(text)))
    for name, _ in found.most_common(_MAX_PARAMETERS):
        yield derived(f"url_param({column.expression}, '{name}')", (name,), profile, column.given)


def _are(pattern: re.Pattern[str], texts: list[str]) -> bool:
    return bool(texts) and sum(bool(pattern.fullmatch(text)) for text in texts) >= _MOSTLY * len(texts)


def _from_list(column: Column, profile: Profile) -> Iterator[Column]:
    """Parameters as ``[{"key": …, "value": …}]``: where one stands differs from record to record."""
    rows = list(column.values)
    path = parsed_expression(column.expression).bare_path
    # Some records show which keys a list has; the values are taken from all.
    found = Counter(one for row in rows[:_LOOKED_AT] for one in _parameters(profile, row, path))
    forms: dict[str, list[str]] = {}
    for (key, form), _ in found.most_common():
        forms.setdefault(key, []).append(form)
    for key, places in list(forms.items())[:_MAX_PARAMETERS]:
        # The same parameter may be a whole number in one record and a fraction in another.
        paths = [column.expression + place for place in places]
        yield derived(paths[0] if len(paths) == 1 else f"coalesce({', '.join(paths)})", (key,), profile, rows)


def is_table(column: Column, profile: Profile) -> bool:
    """Whether a list holds keys with their values."""
    path, rows = parsed_expression(column.expression).bare_path, list(column.values)
    return any(next(_parameters(profile, row, path), None) for row in rows[:_LOOKED_AT])


def _parameters(profile: Profile, row: int, path: Path | None) -> Iterator[tuple[str, str]]:
    """The keys of a list, each with the steps to its value."""
    record = profile.records[row]
    found = record.others.get(path.root, record).root() if path else None
    for step in path.steps if path else ():
        found = found.get(step) if isinstance(found, dict) else None
    for element in found if isinstance(found, list) else ():
        names = _names_in(element)
        if names is None:
            return
        (key_name, key), (value_name, value) = names
        step = f"[?{key_name}='{key}'].{value_name}"
        if isinstance(value, dict):
            yield from ((key, f"{step}.{form}") for form in _VALUE_FORMS if value.get(form) is not None)
        elif value is not None and not isinstance(value, list):
            yield key, step


def _names_in(element: object) -> tuple[tuple[str, str], tuple[str, object]] | None:
    """Name and content of the two members of an ``element``: its key, which a path can name, and its value."""
    if not isinstance(element, dict) or len(element) != 2:  # noqa: PLR2004 a key and a value
        return None
    key_name = next((name for name in _KEY_NAMES if name in element), "")
    value_name = next((name for name in _VALUE_NAMES if name in element), "")
    key = element.get(key_name)
    if not value_name or type(key) is not str or not _PLAIN_KEY.fullmatch(key):
        return None
    return (key_name, key), (value_name, element[value_name])
