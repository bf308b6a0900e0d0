"""The mapping language means the same to Spark and to Python, and raises in neither."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_jobs.mapping import (
    Evaluated,
    Expression,
    MappingError,
    Record,
    RecordSchema,
    Type,
    evaluate,
    failure_sql,
    parse_expression,
    to_sql,
)
from spark_jobs.mapping.functions import SECTIONS
from spark_jobs.mapping.times import EPOCH
from spark_jobs.mapping.types import Value
from tests.support.mappings import NUMBERS, PATHS, TEXTS, any_call, expressions, literal, records

_FUNCTIONS = [function for functions in SECTIONS.values() for function in functions]
_TYPES = (Type.TEXT, Type.INTEGER, Type.NUMBER, Type.BOOLEAN, Type.TIME)

# Each example is a job of Spark, so an example holds many expressions; shrinking would cost a job a step. The first
# example of hypothesis is the simplest one: all draws are alike.
run_rarely = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def outcomes_of_spark(spark: SparkSession, texts: Sequence[str], given: Sequence[Expression]) -> list[list[Evaluated]]:
    """By record, then by expression."""
    schema = RecordSchema.of(path for expression in given for path in expression.paths)
    rows = spark.createDataFrame(list(enumerate(texts)), "number int, text string").coalesce(1)
    columns = []
    for number, expression in enumerate(given):
        value = to_sql(expression, schema)
        columns.append(f"{f'unix_micros({value})' if expression.type is Type.TIME else value} as v{number}")
        columns.append(f"{failure_sql(expression, schema)} as f{number}")
    for name, sql in schema.columns_sql():
        rows = rows.selectExpr("*", f"{sql} as {name}")
    collected = sorted(rows.selectExpr("number", *columns).collect(), key=lambda row: row.number)
    return [
        [Evaluated(_value(row[f"v{n}"], expression.type), row[f"f{n}"]) for n, expression in enumerate(given)]
        for row in collected
    ]


def _value(value: Any, kind: Type) -> Value | None:
    return EPOCH + timedelta(microseconds=value) if kind is Type.TIME and isinstance(value, int) else value


def assert_engines_agree(spark: SparkSession, texts: Sequence[str], sources: Sequence[str]) -> None:
    given = [parse_expression(source) for source in dict.fromkeys(sources)]
    by_record = outcomes_of_spark(spark, texts, given)
    records_read = [Record(text) for text in texts]
    different = [
        (expression.text, record.text, f"Spark {of_spark}", f"Python {of_python}")
        for record, outcomes in zip(records_read, by_record, strict=True)
        for expression, of_spark in zip(given, outcomes, strict=True)
        if not _is_same(of_spark, of_python := evaluate(expression, record))
    ]
    assert different[:5] == []


def _is_same(left: Evaluated, right: Evaluated) -> bool:
    return (type(left.value), left) == (type(right.value), right)


def _parsable(sources: Sequence[str]) -> list[str]:
    """Random nesting can be refused: literals that are no numbers, and too much of it."""
    good = []
    for source in sources:
        try:
            parse_expression(source)
        except MappingError as error:
            if not any(
                words in error.reason for words in (" is no ", "too complex", "too deeply", "do not go together")
            ):
                raise
        else:
            good.append(source)
    return good


def test_parameters_of_addresses(spark: SparkSession) -> None:
    addresses = [
        *(
            "",
            "u=1",
            "?u=1&u=2",
            "&u=",
            "GET /a?x=1&u=b%40c+d HTTP/1.1",
            "https://n.example/?xu=1#u=2",
            "/a?u=%E4&v=%zz",
        ),
        *(
            "/a?U=1",
            "u",
            "=1",
            "/?u[0]=1&v.w=2&u-x=3&u%5B1%5D=4",
            "/?u=a=b&v=\u00e9\u00df",
            "\n?u=1\n2",
            "/?u=1\u00a02",
            "/?v=%EF%BF%BD",
        ),
    ]
    texts = [json.dumps({"a": address}) for address in [*addresses, None, 7]]
    names = ("u", "v", "u[0]", "v.w", "u-x", "U", "\u00e9", "x^]", "a|b")
    assert_engines_agree(spark, texts, [f"url_param($.a, '{name}')" for name in names])
    given = [evaluate(parse_expression("url_param($.a, 'u')"), Record(text)).value for text in texts[:7]]
    assert given == [None, "1", "1", None, "b@c d", None, "%E4"]


@pytest.mark.slow
@run_rarely
@given(texts=st.lists(records, min_size=60, max_size=60), data=st.data())
def test_random_expressions_have_the_same_value_in_both_engines(
    spark: SparkSession, texts: list[str], data: st.DataObject
) -> None:
    drawn = [data.draw(expressions(kind, depth=2)) for kind in _TYPES for _ in range(7)]
    sources = _parsable(drawn)
    assert len(sources) > len(drawn) // 2
    assert_engines_agree(spark, texts, sources)


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
@settings(run_rarely, max_examples=3)
@given(data=st.data())
def test_every_function_agrees_on_nasty_values(spark: SparkSession, section: str, data: st.DataObject) -> None:
    names = [function.name for function in SECTIONS[section] if function.overloads and function.name != "split"]
    sources = _parsable([data.draw(any_call(name)) for name in names for _ in range(10)])
    sources += [
        f"cast($.a as {kind})" for kind in ("bigint", "decimal", "boolean", "timestamp", "tinyint", "decimal(9,4)")
    ]
    values = [*NUMBERS, *("true", "null", "[1, 2.50]", '{"b": 1e3}'), *map(_quoted, TEXTS)]
    texts = [
        _record({key: values[number - shift] for shift, key in enumerate(("a", "b", "A", "n", "odd key", "l"))})
        for number in range(len(values))
    ]
    assert_engines_agree(spark, texts, sources)


def _record(members: dict[str, str]) -> str:
    whole = {**members, "l": f'[{members["a"]}, {{"b": {members["b"]}}}]'}
    return "{" + ", ".join(f'"{key}": {value}' for key, value in whole.items()) + "}"


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)


def test_every_path_agrees(spark: SparkSession) -> None:
    values = [*NUMBERS, "true", "null", "[]", "{}", '""', '"x"', '[[1, 2], {"b": "x"}]', '{"b": {"c": [1.0, 1e2]}}']
    values += [
        '{"z": 1, "b": -0.0, "\\ud83d\\ude00": "\\u001f\\u2028/\\/", "\\uffff": null, "z": 1E+2}',
        '"{\\"b\\": 1}"',
    ]
    texts = [f'{{"{key}": {value}, "odd key": {value}}}' for value in values for key in ("a", "l", "A", "n")]
    texts += ["{}", '{"a": 1, "a": 2}', '{"a": 1, "a": null}', '{"a": {"b": 1}, "a": {"c": 2}}', '{"a": "\\ud800"}']
    texts += [
        '{"a":' + "[" * 998 + "]" * 998 + "}",
        '{"a":' + "[" * 999 + "]" * 999 + "}",
        '{"a":1' + "0" * 1000 + "}",
    ]
    texts += [
        '{"a": tru}',
        '{"a": 01}',
        '{"a": 1} ',
        '{"a": NaN}',
        '{"a": "x\ty"}',
        "[1]",
        '"x"',
        "1",
        "x",
        "",
        '{"a": 1',
    ]
    assert_engines_agree(spark, texts, [*PATHS, "$", "$.a", "$.l[1]"])


def test_the_examples_of_all_functions_hold_in_both_engines(spark: SparkSession) -> None:
    given = [parse_expression(function.example[0]) for function in _FUNCTIONS]
    expected = [(function.name, Evaluated(function.example[1], has_failed=False)) for function in _FUNCTIONS]
    names = [function.name for function in _FUNCTIONS]
    assert list(zip(names, [evaluate(one, Record("{}")) for one in given], strict=True)) == expected
    assert list(zip(names, outcomes_of_spark(spark, ["{}"], given)[0], strict=True)) == expected


def test_the_examples_mean_the_same_as_plain_spark_sql(spark: SparkSession) -> None:
    alike = [function for function in _FUNCTIONS if function.is_sparks]
    columns = [
        f"unix_micros(cast({source} as timestamp))" if isinstance(expected, datetime) else source
        for source, expected in (function.example for function in alike)
    ]
    (row,) = spark.sql(f"select {', '.join(f'{column} as v{n}' for n, column in enumerate(columns))}").collect()
    found = [
        EPOCH + timedelta(microseconds=v) if isinstance(f.example[1], datetime) else v
        for f, v in zip(alike, row, strict=True)
    ]
    assert dict(zip([f.name for f in alike], found, strict=True)) == {f.name: f.example[1] for f in alike}


def test_an_element_of_another_type_takes_nothing_else_away(spark: SparkSession) -> None:
    given = [parse_expression(text) for text in ("$.a.b", "$.c", "$.l[1].b", "$.l[0].b")]
    (row,) = outcomes_of_spark(spark, ['{"a": "x", "c": 1, "l": ["y", {"b": 2}]}'], given)
    assert [outcome.value for outcome in row] == [None, "1", "2", None]


def test_money_passes_through_no_floating_point(spark: SparkSession) -> None:
    given = [parse_expression(text) for text in ("micros($.a)", "cast($.a as decimal)", "$.a")]
    texts = ['{"a": 9007199254740993.000001}', '{"a": 12345678901.123456e1}', '{"a": "0.0000014999999999999999999"}']
    values = [[outcome.value for outcome in row] for row in outcomes_of_spark(spark, texts, given)]
    assert values[0] == [None, Decimal("9007199254740993.000001"), "9007199254740993.000001"]
    assert values[1] == [123456789011234560, Decimal("123456789011.23456"), "12345678901.123456e1"]
    assert values[2][0] == 1
    assert literal("x") == "'x'"
