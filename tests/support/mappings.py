"""Random records and random expressions of the mapping language, nasty ones above all."""

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from spark_jobs.mapping.declare import Function, Overload
from spark_jobs.mapping.functions import FUNCTIONS, SECTIONS
from spark_jobs.mapping.types import Type

PATHS = (
    "$.a",
    "$.b",
    "$.A",
    "$.n",
    "$['odd key']",
    "$.a.b",
    "$.a.b.c",
    "$.l[0]",
    "$.l[1].b",
    "$.l[0][1]",
    "$.l",
    "$.a[0]",
    "$.l[?b='x']",
    "$.l[?b='1.5'].c",
    "$.l[?b.c='true'].b.c",
    "$.a.l[?a='a'][0]",
)
_KEYS = ("a", "b", "A", "n", "odd key", "c", "l", "ü", "")

NUMBERS = (
    *("0", "-0", "1", "-1", "7", "42", "0.5", "-0.5", "1.50", "0.00210", "1e3", "1E-7", "-2.5e+2", "1e400", "1e-400"),
    *("9223372036854775807", "-9223372036854775808", "9223372036854775808", "999999999999999999999.999999999"),
    *(
        "0.0000005",
        "0.00000049999999999999",
        "123456789012345678901234567890",
        "12345678901234567890123456789012345678.5",
    ),
    *(
        "0.1234567895",
        "1700000000123",
        "1700000000.1234567",
        "253402300799",
        "253402300800",
        "-62135596801",
        "2147483648",
    ),
    *("0." + "1" * 39, "1" * 45, "0." + "0" * 45 + "1", "10000000000", "3.000"),
)
TEXTS = (
    *(
        "",
        " ",
        "a",
        "b",
        "click",
        "A b",
        "äÖß",
        "\u0391\u03a3",
        "\u0130\u0131\u017f\u212a",
        "😀",
        "e\u0301",
        "\u1e9e",
        "a,b,,c",
        "a/b/c",
        "k=v&x=1",
        "null",
    ),
    *(
        "true",
        "FALSE",
        " yes ",
        "y",
        "1",
        "0",
        "t",
        "on",
        "12",
        " 12 ",
        "+5",
        "-7",
        "1.5",
        ".5",
        "5.",
        "1e3",
        "1e99",
        "٣",
    ),
    *(
        "12.5",
        "0x1F",
        "NaN",
        "Infinity",
        "9223372036854775808",
        "00000000000000000000000007",
        "\t3\n",
        "3\u00a0",
        "1_000",
    ),
    *("2024-01-01", "2024-01-01T00:00:00Z", "2024-02-30T00:00:00Z", "2024-02-29 23:59:59.999999", "0000-01-01"),
    *("2024-01-01T24:00:00Z", "2024-06-30T23:59:60Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"),
    *(
        "0001-01-01T00:00:00+01:00",
        "2024-03-31T02:30:00",
        "2024-10-27T02:30:00",
        "2024-03-10 02:30:00.5",
        "1969-12-31T23:59:59.5Z",
    ),
    *("2024-01-01T00:00:00+05:30", "2024-01-01T00:00:00-18:00", "2024-01-01T00:00:00+18:01", "2024-01-01t00:00:00z"),
    *("2024-01-01T00:00:00.1234567Z", "2024-1-1", "2024-01-01T00:00Z", "2024-01-01T00:00:00-00:00", "20240101"),
    *(
        "01.02.2024 03:04",
        "31.02.2024 03:04",
        "14/11/2023 22:13:20.123",
        "U3Bhcms=",
        "U3Bhcms",
        "/w==",
        "QR==",
        "====",
        "AAA=",
    ),
    *(
        "a%20b+c",
        "%",
        "%zz",
        "%ff",
        "%C3%A4",
        "%ED%A0%80",
        "%EF%BF%BD",
        "%+1",
        '{"b": [1, 2.50, "x"]}',
        '{"b": 1e5}',
        "[1, 2]",
    ),
    *(
        "[]",
        "[1,",
        '{"b":',
        "[1] x",
        '"[1]"',
        "line\nend\r\n",
        "tab\there",
        "\x00",
        "\x1f",
        "\u2028",
        "\ufeffx",
        "'",
        '"',
        "\\",
        "$1",
    ),
    *(
        "2024-05-01T08:30Z",
        "2024-05-01 08:30",
        "2024-05-01 08:30:00 UTC",
        "2024-05-01 08:30:00 GMT",
        "2024-05-01 08:30 +01",
    ),
    *(
        "2024-05-01T08:30:00.123456789Z",
        "2024-05-01T08:30:00,5+0530",
        "2024-05-01T08:30:00-0030",
        "2024-05-01T08:30:00+0060",
    ),
    *("2024-05-01T08:30:00+02:00[Europe/Berlin]", "2024-05-01T08:30:00[Europe/Berlin]", "2024-05-01[Europe/Berlin]"),
    *("9999-12-31T23:59:59,9999999", "9999-12-31T00:00-01", "2024-05-01T08:30:00Z[UTC]", "2024-05-01 08:30 utc"),
    *("1/2/24 3:04:05 pm", "12/31/2024 12:00:00 AM", "13/1/2024 0:00:00 AM", "01/Mar/2024:03:04:05 +0100"),
    *(
        "Fri, 01 MAR 2024 03:04:05 GMT",
        "Friday, 1 march 2024",
        "1700000000",
        "1.7e9",
        "1700000000123.9",
        "1700000000123456",
    ),
    *(
        "1700000000123456789",
        "99999999",
        "4102444800",
        "20240301",
        "-1700000000",
        "Europe/Berlin",
        "UTC",
        "Asia/Kolkata",
    ),
    *(
        "EUR",
        "JPY",
        "KWD",
        "CLF",
        "eur",
        "EUX",
        "AQA=",
        "_w",
        "-_8=",
        "MDk=",
        "gAAAAAAAAAA=",
        "AP__________8",
        "A",
        "ff",
        "Zz",
    ),
    *("f" * 16, "0" * 20 + "1", "537061726b", "5", "AAAAAAAAAAAAAAAAAAAAAA", "f" * 17, "S0yLqXWmS0yLqXWmS0yLqQ=="),
    *('["a", "b", 1.50, 1e3, true, null, {"a": 1}]', '["a,b,,c"]'),
    *("%_", "a\\b", "banner-7", "iPhone 15", "x" * 50, "\ud7ff\ue001\uffff"),
)

_texts = st.sampled_from(TEXTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def _json_text(text: str, *, is_escaped: bool) -> str:
    return json.dumps(text, ensure_ascii=is_escaped)


_scalars = (
    st.sampled_from(NUMBERS)
    | st.sampled_from(("true", "false", "null"))
    | st.builds(_json_text, _texts, is_escaped=st.booleans())
    | st.integers(-(10**20), 10**20).map(str)
    | st.decimals(-(10**12), 10**12, allow_nan=False, places=7).map(lambda number: f"{number:f}")
)


def _array(members: Sequence[str]) -> str:
    return "[" + ", ".join(members) + " ]"


def _object(members: Sequence[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{_json_text(key, is_escaped=True)} :{value}" for key, value in members) + "}"


_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(_array)
        | st.lists(st.tuples(st.sampled_from(_KEYS), inner), max_size=4).map(_object)
    ),
    max_leaves=8,
)
records = st.lists(st.tuples(st.sampled_from(_KEYS), _values), max_size=9).map(_object)
"""Texts of JSON objects: nested, with repeated keys and every kind of number."""


def literal(text: str) -> str:
    """``text`` as a literal of the language."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if c.isprintable() and c != "\ue000" else _code(c) for c in escaped) + "'"


def _code(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


_REGEXES = (
    *(
        "a",
        "[0-9]+",
        "^([a-z]+)",
        "(a|b)(c)?",
        "([^,]+),",
        "\\d{2,4}",
        "\\s",
        "\\w+?",
        "[a-c]{1,2}$",
        ".",
        "(?:ab|c){1,3}x?",
    ),
    *(
        "(.)(.)$",
        "[^ -z]",
        "\\.",
        "=([^&]*)",
        "\\S\\W",
        "[\\]\\-x]",
        "e\u0301",
        "$",
        "[ä-ü]",
        "😀",
        "[^😀]",
        "a|$",
        "\\\\",
    ),
)
_MAY_BE_EMPTY = ("$", "a|$")
_SPLITTERS = tuple(regex for regex in _REGEXES if regex not in _MAY_BE_EMPTY)
_WITH_GROUP = tuple(regex for regex in _REGEXES if "(" in regex.replace("(?:", ""))
_TEXT_LITERALS: dict[tuple[str, str], tuple[str, ...]] = {
    ("rlike", "regex"): _REGEXES,
    ("like", "pattern"): ("%", "a%", "%b%", "_", "a_b%", "\\%\\_", "ä__", "%\\\\%", "", "%\n%"),
    ("regexp_extract", "regex"): _WITH_GROUP,
    ("regexp_replace", "regex"): _SPLITTERS,
    ("regexp_replace", "replacement"): ("", "x", "$0$0", "ä😀"),
    ("split", "regex"): _SPLITTERS,
    ("split_part", "separator"): ("/", ",", "ab", "😀"),
    ("translate", "from"): ("abc", "aab", "😀ä", ""),
    ("translate", "to"): ("x", "xyz", "", "😀"),
    ("lpad", "padding"): ("0", "ab", "😀"),
    ("rpad", "padding"): ("0", "ab", "😀"),
    ("get_json_object", "path"): ("$.b", "$.b[1]", "$[1]", "$['odd key'].b"),
    ("to_timestamp", "pattern"): (
        "dd.MM.yyyy HH:mm",
        "dd/MM/yyyy HH:mm:ss.SSS",
        "yyyy-MM-dd",
        "yyyy-MM-dd'T'HH:mm:ssXXX",
        "yyyyMMdd",
        "M/d/yy h:mm:ss a",
        "MM/dd/yyyy hh:mm:ss a",
        "dd/MMM/yyyy:HH:mm:ss Z",
        "EEE, dd MMM yyyy HH:mm:ss z",
        "EEEE, d MMMM yyyy",
        "yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSSXXX",
        "yyyy-MM-dd HH:mm X",
    ),
    ("to_utc_timestamp", "zone"): (
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "UTC",
        "Africa/Casablanca",
    ),
    ("date_trunc", "unit"): ("second", "minute", "HOUR", "day", "month", "year"),
}
_INTEGER_LITERALS: dict[tuple[str, str], tuple[int, ...]] = {
    ("sha2", "bits"): (0, 224, 256, 384, 512),
    ("lpad", "length"): (0, 1, 5, 30),
    ("rpad", "length"): (0, 1, 5, 30),
    ("split_part", "number"): (1, 2, -1, -3, 9),
    ("regexp_extract", "group"): (0, 1),
    ("element_at", "number"): (1, 2, -1, -5, 9),
    ("[]", "index"): (0, 1, 7),
    ("conv", "from"): (2, 10, 16, 36),
    ("conv", "to"): (2, 10, 16, 36),
    ("decimal_of_bytes", "scale"): (0, 2, 9),
    ("round", "digits"): (0, 2, 9),
}
_INTEGERS = ("0", "1", "-1", "3", "-2", "1700000000123", "9223372036854775807", "-9223372036854775808", "2147483648")
_DECIMALS = ("0.5", "-1.5", "0.000000001", "999999999999999999999.999999999", "-3.0", "0.0", "1000000000.25")
_TIMES = ("'2024-03-31T02:30:00'", "'1969-12-31T23:59:59.5Z'", "'0001-01-01'", "'9999-12-31T23:59:59.999999Z'")
_CASTS = {
    Type.TEXT: ("string", (Type.INTEGER, Type.NUMBER, Type.BOOLEAN, Type.TIME)),
    Type.INTEGER: ("bigint", (Type.TEXT, Type.NUMBER, Type.BOOLEAN)),
    Type.NUMBER: ("decimal", (Type.TEXT, Type.INTEGER, Type.BOOLEAN)),
    Type.BOOLEAN: ("boolean", (Type.TEXT, Type.INTEGER, Type.NUMBER)),
    Type.TIME: ("timestamp", (Type.TEXT,)),
}
_COMPARABLE = (Type.TEXT, Type.INTEGER, Type.NUMBER, Type.BOOLEAN, Type.TIME)
_INFIX = ("+", "-", "*", "/", "%", "div", "||")
_FUNCTIONS = tuple(function for functions in SECTIONS.values() for function in functions if function.overloads)


@st.composite
def expressions(draw: st.DrawFn, kind: Type, depth: int = 3) -> str:
    """An expression of the type ``kind``, or a path where a text is coerced to it."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(_leaves(kind))
    choices = [(function, one) for function in _FUNCTIONS for one in function.overloads if one.result is kind]
    if kind is Type.LIST:
        return draw(calls(*choices[0], depth))
    form = draw(st.integers(0, len(choices) + 5))
    if form < len(choices):
        return draw(calls(*choices[form], depth))
    return draw(_forms(kind, depth))


def _leaves(kind: Type) -> st.SearchStrategy[str]:
    paths = st.sampled_from(PATHS)
    literals = {
        Type.TEXT: paths | paths | paths | st.sampled_from(TEXTS).map(literal),
        Type.INTEGER: st.sampled_from(_INTEGERS).map(lambda number: f"({number})"),
        Type.NUMBER: st.sampled_from(_DECIMALS).map(lambda number: f"({number})"),
        Type.BOOLEAN: st.sampled_from(("true", "false")),
        Type.TIME: st.sampled_from(_TIMES).map("cast({} as timestamp)".format),
        Type.LIST: paths.map("split({}, ',')".format),
    }
    names = {Type.INTEGER: "bigint", Type.NUMBER: "decimal", Type.BOOLEAN: "boolean", Type.TIME: "timestamp"}
    leaves = literals[kind]
    if kind in names:
        casts = paths.map(lambda path: f"cast({path} as {names[kind]})")
        leaves = casts | casts | leaves
    return leaves


@st.composite
def calls(draw: st.DrawFn, function: Function, one: Overload, depth: int = 2) -> str:
    """A call of ``function`` by one of its overloads."""
    arguments = []
    for parameter in one.parameters:
        key = (function.name, parameter.name)
        if parameter.is_literal:
            if parameter.is_optional and draw(st.booleans()):
                break
            pool = _TEXT_LITERALS.get(key)
            drawn = draw(st.sampled_from(pool)) if pool else None
            arguments.append(
                literal(drawn) if drawn is not None else str(draw(st.sampled_from(_INTEGER_LITERALS[key])))
            )
            continue
        count = draw(st.integers(1, 3)) if parameter.is_repeated else 1
        arguments += [f"({draw(expressions(parameter.type, depth - 1))})" for _ in range(count)]
    if function.name == "[]":
        return (
            f"{arguments[0][1:-1]}[{arguments[1]}]"
            if arguments[0].startswith("(split")
            else f"split({PATHS[0]}, ',')[{arguments[1]}]"
        )
    if function.name in _INFIX:
        return f"({arguments[0]} {function.name} {arguments[1]})"
    return f"{function.name}({', '.join(arguments)})"


@st.composite
def _forms(draw: st.DrawFn, kind: Type, depth: int) -> str:
    def of(wanted: Type) -> str:
        return "(" + draw(expressions(wanted, depth - 1)) + ")"

    forms = [
        lambda: f"coalesce({of(kind)}, {of(kind)}, {of(kind)})",
        lambda: f"if({of(Type.BOOLEAN)}, {of(kind)}, {of(kind)})",
        lambda: f"(case when {of(Type.BOOLEAN)} then {of(kind)} else {of(kind)} end)",
        lambda: f"(case when {of(Type.BOOLEAN)} then {of(kind)} when {of(Type.BOOLEAN)} then {of(kind)} end)",
        lambda: f"(case {of(Type.INTEGER)} when {of(Type.INTEGER)} then {of(kind)} end)",
        lambda: f"nullif({of(kind)}, {of(kind)})",
        lambda: f"{draw(st.sampled_from(('greatest', 'least')))}({of(kind)}, {of(kind)}, {of(kind)})",
        lambda: f"cast({of(draw(st.sampled_from(_CASTS[kind][1])))} as {_CASTS[kind][0]})",
    ]
    if kind is Type.NUMBER:
        forms.append(lambda: f"cast({of(Type.TEXT)} as decimal(12, 2))")
    if kind is Type.INTEGER:
        forms.append(lambda: f"cast({of(Type.NUMBER)} as int)")
    if kind is Type.BOOLEAN:
        forms += [lambda: _comparison(draw, depth) for _ in range(8)]
    return draw(st.sampled_from(forms))()


def _comparison(draw: st.DrawFn, depth: int) -> str:
    kind = draw(st.sampled_from(_COMPARABLE))

    def side() -> str:
        return "(" + draw(expressions(kind, depth - 1)) + ")"

    def condition() -> str:
        return "(" + draw(expressions(Type.BOOLEAN, depth - 1)) + ")"

    forms = [
        lambda: f"({side()} {draw(st.sampled_from(('=', '<>', '<', '<=', '>', '>=', '<=>')))} {side()})",
        lambda: f"({side()} {draw(st.sampled_from(('=', '<', '<=>')))} {draw(st.sampled_from(PATHS))})",
        lambda: f"({side()} in ({side()}, null, {side()}))",
        lambda: f"({side()} not in ({side()}, {side()}))",
        lambda: f"({side()} between {side()} and {side()})",
        lambda: f"({side()} is {draw(st.sampled_from(('', 'not ')))}null)",
        lambda: f"({condition()} is {draw(st.sampled_from(('true', 'not false')))})",
        lambda: f"({condition()} and {condition()})",
        lambda: f"({condition()} or {condition()})",
        lambda: f"(not {condition()})",
    ]
    return draw(st.sampled_from(forms))()


def any_call(name: str) -> st.SearchStrategy[str]:
    """A call of the function ``name`` by any of its overloads, on paths and nasty values."""
    function = FUNCTIONS[name]
    return st.sampled_from(function.overloads).flatmap(lambda one: calls(function, one, depth=1))
