"""Functions with patterns, and lists of texts."""

import re
from functools import partial

from spark_jobs.mapping.declare import Function, Implementation, Overload, Parameter, overload
from spark_jobs.mapping.errors import RefusalError
from spark_jobs.mapping.record import array_contains, array_length
from spark_jobs.mapping.regex import Regex, parse_like, parse_regex
from spark_jobs.mapping.schema import array_sql, plain_text_sql
from spark_jobs.mapping.sqltext import quoted
from spark_jobs.mapping.types import Type

_TEXT, _BOOLEAN = Type.TEXT, Type.BOOLEAN
_MAX_INT = 2**31 - 1
_REFERENCE = re.compile(r"\$([0-9])(?![0-9])|[\\$]")
_SUBJECT = Parameter("text", _TEXT)
_PATTERN = Parameter("regex", _TEXT, is_literal=True)


def _bind_rlike(pattern: str) -> Implementation:
    regex = parse_regex(pattern)
    search = regex.compiled().search
    return Implementation(lambda text: f"rlike({text}, {quoted(regex.java)})", lambda text: search(text) is not None)


def _bind_like(pattern: str) -> Implementation:
    match = parse_like(pattern).match
    return Implementation(lambda text: f"({text} like {quoted(pattern)})", lambda text: match(text) is not None)


def _bind_extract(pattern: str, group: int) -> Implementation:
    regex = parse_regex(pattern)
    if not 0 <= group <= regex.groups:
        raise RefusalError(f"the regular expression {pattern!r} has no group {group}", "group 0 is the whole match")
    search = regex.compiled().search

    def python(text: str) -> str:
        found = search(text)
        return (found[group] or "") if found else ""

    return Implementation(lambda text: f"regexp_extract({text}, {quoted(regex.java)}, {group})", python)


def _bind_replace(pattern: str, replacement: str) -> Implementation:
    regex = _not_empty(pattern, "regexp_replace")
    for reference in _REFERENCE.finditer(replacement):
        if reference[1] is None or int(reference[1]) > regex.groups:
            raise RefusalError(
                f"the replacement {replacement!r} has {reference[0]!r}",
                "refer to groups as $1; \\ and $ cannot stand alone",
            )
    substitute = partial(regex.compiled().sub, partial(_filled, replacement))
    return Implementation(
        lambda text: f"regexp_replace({text}, {quoted(regex.java)}, {quoted(replacement)})",
        substitute,
    )


def _filled(replacement: str, found: re.Match[str]) -> str:
    return _REFERENCE.sub(lambda reference: found[int(reference[1])] or "", replacement)


def _not_empty(pattern: str, function: str) -> Regex:
    regex = parse_regex(pattern)
    if regex.can_be_empty:
        raise RefusalError(f"the regular expression {pattern!r} of {function} can match an empty text")
    return regex


def _bind_split(pattern: str) -> Implementation:
    regex = _not_empty(pattern, "split")
    compiled = regex.compiled()

    def python(text: str) -> list[str]:
        parts, start = [], 0
        for found in compiled.finditer(text):
            parts.append(text[start : found.start()])
            start = found.end()
        return [*parts, text[start:]]

    return Implementation(lambda text: f"split({text}, {quoted(regex.java)})", python)


def _bind_element(number: int) -> Implementation:
    if not number or abs(number) > _MAX_INT:
        raise RefusalError("element_at counts from 1, or from the end from -1 on")
    index = number - 1 if number > 0 else number
    return Implementation(lambda items: f"try_element_at({items}, {number})", partial(_element, index))


def _bind_index(index: int) -> Implementation:
    if not 0 <= index <= _MAX_INT:
        raise RefusalError("an index in brackets counts from 0", "element_at counts from the end from -1 on")
    return Implementation(lambda items: f"get({items}, {index})", partial(_element, index))


def _element(index: int, items: list[str]) -> str | None:
    return items[index] if -len(items) <= index < len(items) else None


def _array_length_sql(text: str) -> str:
    return f"cast(array_size({array_sql(text)}) as bigint)"


def _array_contains_sql(text: str, value: str) -> str:
    elements = array_sql(text)
    is_it = f"{plain_text_sql('e')} = {value}"
    return f"if({elements} is null or {value} is null, null, coalesce(exists({elements}, e -> {is_it}), false))"


FUNCTIONS = (
    Function(
        "rlike",
        "text rlike 'regex', rlike(text, 'regex')",
        "Whether the regular expression matches anywhere in the text.",
        ("'iPhone 15' rlike '^iP(hone|ad)'", True),
        (Overload((_SUBJECT, _PATTERN), _BOOLEAN, _bind_rlike),),
        aliases=("regexp_like", "regexp"),
    ),
    Function(
        "like",
        "text like 'pattern', like(text, 'pattern')",
        "Whether the whole text matches: `%` stands for any characters, `_` for one.",
        ("'banner-7' like 'banner-_'", True),
        (Overload((_SUBJECT, Parameter("pattern", _TEXT, is_literal=True)), _BOOLEAN, _bind_like),),
    ),
    Function(
        "regexp_extract",
        "regexp_extract(text, 'regex'[, group])",
        "What a group of the first match holds (the first group, unless said otherwise); empty if there is no match.",
        ("regexp_extract('cid=42&x=1', 'cid=([0-9]+)', 1)", "42"),
        (
            Overload(
                (
                    _SUBJECT,
                    _PATTERN,
                    Parameter("group", Type.INTEGER, is_literal=True, is_optional=True, default=1),
                ),
                _TEXT,
                _bind_extract,
            ),
        ),
    ),
    Function(
        "regexp_replace",
        "regexp_replace(text, 'regex', 'replacement')",
        "Every match replaced; `$1` in the replacement is the first group.",
        ("regexp_replace('ab12', '[0-9]+', '#')", "ab#"),
        (
            Overload(
                (_SUBJECT, _PATTERN, Parameter("replacement", _TEXT, is_literal=True)),
                _TEXT,
                _bind_replace,
            ),
        ),
    ),
    Function(
        "split",
        "split(text, 'regex')",
        "The list of the parts between matches. Only an element of it is a value.",
        ("split('a,b,c', ',')[1]", "b"),
        (Overload((_SUBJECT, _PATTERN), Type.LIST, _bind_split),),
    ),
    Function(
        "element_at",
        "element_at(list, number)",
        "An element, counted from 1, or from the end if it is negative; null if it is missing.",
        ("element_at(split('a,b,c', ','), -1)", "c"),
        (
            Overload(
                (Parameter("list", Type.LIST), Parameter("number", Type.INTEGER, is_literal=True)), _TEXT, _bind_element
            ),
        ),
    ),
    Function(
        "[]",
        "list[index]",
        "An element, counted from 0; null if it is missing.",
        ("split('a,b,c', ',')[0]", "a"),
        (
            Overload(
                (Parameter("list", Type.LIST), Parameter("index", Type.INTEGER, is_literal=True)), _TEXT, _bind_index
            ),
        ),
        is_operator=True,
    ),
    Function(
        "size",
        "size(list)",
        "How many elements a list has, or the JSON array in a text; null if the text is none.",
        ('size(\'["a", "b"]\')', 2),
        (
            overload("list LIST", Type.INTEGER, "cast(array_size({}) as bigint)", len),
            overload("text TEXT", Type.INTEGER, _array_length_sql, array_length),
        ),
        is_sparks=False,
        aliases=("array_size", "json_array_length"),
    ),
    Function(
        "array_contains",
        "array_contains(text, value)",
        "Whether the JSON array in a text has an element that is this text or number; null if the text is no array. "
        "Numbers with an exponent or more than 38 digits equal none.",
        ("array_contains('[\"a\", 7]', '7')", True),
        (overload("text TEXT, value TEXT", _BOOLEAN, _array_contains_sql, array_contains),),
        is_sparks=False,
    ),
)
