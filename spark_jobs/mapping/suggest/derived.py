"""Columns that are no paths: parts of a web address, parameters in a list, the name in a schema's address."""

import re
from collections import Counter
from collections.abc import Iterator

from spark_jobs.mapping import Path
from spark_jobs.mapping.expression import parse_expression
from spark_jobs.mapping.suggest.profile import Column, Profile, ValueKind, derived

_ADDRESS = re.compile(r"(?:https?://[^/?#\s]+)?/[^\s]*|https?://[^\s]+")
_PARAMETER = re.compile(r"[?&]([A-Za-z_][A-Za-z0-9_.-]*)=")
_SCHEMA = re.compile(r"iglu:[^/]+/[^/]+/[^/]+/[^/]+")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_. -]*")
_MOSTLY = 0.9
_LOOKED_AT = 500
_MAX_PARAMETERS = 20
_VALUE_FORMS = {
    "string_value": '"([^"]*)"',
    "int_value": '"?(-?[0-9]+)',
    "float_value": '"?(-?[0-9.]+)',
    "double_value": '"?(-?[0-9.]+)',
}
"""How the text of a value is taken out of a typed parameter of analytics events."""


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
    elif _are(_ADDRESS, texts):
        for pattern in ("^(?:https?://[^/?#]*)?/([^/?#.]*)", "^[^?#]*/([^/?#.]*)"):
            expression = f"regexp_extract({column.expression}, '{pattern}', 1)"
            yield derived(expression, (*column.keys, "action"), profile, column.given)
        found = Counter(name for text in texts for name in set(_PARAMETER.findall(text)))
        for name, _ in found.most_common(_MAX_PARAMETERS):
            pattern = f"[?&]{name.replace('.', '[.]')}=([^&#]*)"
            expression = f"nullif(url_decode(regexp_extract({column.expression}, '{pattern}', 1)), '')"
            yield derived(expression, (name,), profile, column.given)


def _are(pattern: re.Pattern[str], texts: list[str]) -> bool:
    return bool(texts) and sum(bool(pattern.fullmatch(text)) for text in texts) >= _MOSTLY * len(texts)


def _from_list(column: Column, profile: Profile) -> Iterator[Column]:
    """Parameters as ``[{"key": …, "value": {"string_value": …}}]``: where one stands differs from record to record."""
    path = parse_expression(column.expression).bare_path
    rows = list(column.values)
    # Some records show which keys a list has; the values are taken from all.
    found = Counter(one for row in rows[:_LOOKED_AT] for one in _typed(profile, row, path))
    forms: dict[str, str] = {}
    for (key, form), _ in found.most_common():
        forms.setdefault(key, form)
    if not forms or path is None:
        return
    texts = {row: profile.records[row].get(path) or "" for row in rows}
    for key, form in list(forms.items())[:_MAX_PARAMETERS]:
        name = key.replace(".", "[.]")
        pattern = f'[{{]"key":"{name}","value":[{{][^}}]*"{form}":{_VALUE_FORMS[form]}'
        expression = f"nullif(regexp_extract({column.expression}, '{pattern}', 1), '')"
        # As the expression gives them, but the text of a list is made once for all its keys.
        search = re.compile(pattern).search
        values = {row: match[1] for row, text in texts.items() if (match := search(text)) and match[1]}
        yield Column(expression, (key,), values, Counter({ValueKind.TEXT: len(values)}), is_derived=True)


def _typed(profile: Profile, row: int, path: Path | None) -> Iterator[tuple[str, str]]:
    found = profile.records[row].root()
    for step in path.steps if path else ():
        found = found.get(step) if isinstance(found, dict) else None
    for element in found if isinstance(found, list) else ():
        if not isinstance(element, dict) or element.keys() != {"key", "value"}:
            return
        key, value = element["key"], element["value"]
        if isinstance(key, str) and isinstance(value, dict) and _PLAIN_KEY.fullmatch(key):
            yield from ((key, form) for form in _VALUE_FORMS if value.get(form) is not None)
