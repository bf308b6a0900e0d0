"""The mapping language in Python: what it refuses and where, and what it gives."""

import subprocess
import sys
import time
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from spark_jobs.mapping import (
    Evaluated,
    MappingError,
    Path,
    Record,
    RecordSchema,
    Type,
    evaluate,
    failure_sql,
    parse_expression,
    to_sql,
)
from spark_jobs.mapping.casing import case_pairs

_RECORD = """{"id": "u-1", "n": 42, "price": 0.00210, "on": true, "none": null, "small": 5.0E-4, "n": 43,
 "big": 12345678901234567890123456789012345678901, "odd key": {"x": 1}, "tags": ["x", ["y"]],
 "user": {"z": [1, 2.50, {"k": "v"}], "a": "\\u00e4\\n"}}"""


def value_of(text: str, record: str = _RECORD) -> object:
    outcome = evaluate(parse_expression(text), Record(record))
    assert not outcome.has_failed, text
    return outcome.value


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.id", "u-1"),
        ("$.n", "43"),
        ("$.price", "0.0021"),
        ("$.on", "true"),
        ("$.none", None),
        ("$.absent", None),
        ("$.big", "12345678901234567890123456789012345678901"),
        ("$.small", "5.0E-4"),
        ("$.user.z[2].k", "v"),
        ("$.user", '{"a":"ä\\n","z":[1,2.5,{"k":"v"}]}'),
        ("$.tags[0]", "x"),
        ("$.tags[1]", '["y"]'),
        ("$.tags[2]", None),
        ("$.tags.a", None),
        ("$.id[0]", None),
        ("$.id.a", None),
        ("$['odd key'].x", "1"),
        ('$["odd key"].x', "1"),
        ("$", _RECORD),
    ],
)
def test_a_path_gives_text(path: str, expected: str | None) -> None:
    assert value_of(path) == expected


@pytest.mark.parametrize(
    ("text", "line", "column", "reason", "remedy"),
    [
        ("sum($.x)", 1, 1, "sum is an aggregate: a mapping sees one record at a time", ""),
        ("max($.x)", 1, 1, "max is an aggregate", "greatest"),
        ("count(*)", 1, 1, "count is an aggregate", ""),
        ("row_number()", 1, 1, "row_number is a window function", ""),
        ("1 + sum($.x) over (partition by $.y)", 1, 5, "a window function", ""),
        ("(select 1)", 1, 9, "no subqueries", ""),
        ("$.a in (select 1)", 1, 1, "no subqueries", ""),
        ("explode($.x)", 1, 1, "explode gives several rows", "$.list[0]"),
        ("reflect('a', 'b')", 1, 1, "foreign code", ""),
        ("java_method('a', 'b')", 1, 1, "foreign code", ""),
        ("rand()", 1, 1, "rand is not deterministic: a replayed batch would give other rows", ""),
        ("uuid()", 1, 1, "not deterministic", ""),
        ("now()", 1, 1, "not deterministic", ""),
        ("$.a < current_timestamp", 1, 7, "not deterministic", ""),
        ("current_timestamp()", 1, 1, "not deterministic", ""),
        ("transform($.x, y -> y)", 1, 1, "no lambdas", ""),
        ("concat($.a, y -> y)", 1, 13, "no lambdas", ""),
        ("sqrt($.x)", 1, 1, "floating point", "NUMBER"),
        ("cast($.a as double)", 1, 6, "double is refused: money and ids pass through no floating point", "use decimal"),
        ("1e3", 1, 1, "1e3 is a floating point", "write all its digits"),
        ("1.5d", 1, 1, "double is refused", ""),
        ("cast($.a as date)", 1, 6, "no cast to date", "timestamp"),
        ("cast($.a as decimal(38, 18))", 1, 6, "decimal(38,18) does not fit", ""),
        ("uppr($.x)", 1, 1, "uppr is no function", "did you mean upper?"),
        ("db.upper($.x)", 1, 1, "user functions", ""),
        ("$.a = foo", 1, 7, "unknown column 'foo'", "$.foo"),
        ("`foo`", 1, 1, "unknown column", "$.foo"),
        ("$.a\n  || bar", 2, 6, "unknown column 'bar'", ""),
        ("lpad($.x)", 1, 1, "lpad does not take 1 argument", "lpad(text, length[, 'padding'])"),
        ("coalesce()", 1, 1, "coalesce does not take 0 arguments", ""),
        ("concat($.a, 5)", 1, 13, "this is an INTEGER, and a TEXT is needed", "cast(… as string)"),
        ("round($.a, $.b)", 1, 12, "only a literal", ""),
        ("round($.a, 12)", 1, 12, "0 to 9 digits", ""),
        ("$.a + 'x'", 1, 7, "'x' is no NUMBER", ""),
        ("if($.a, 1, 'x')", 1, 12, "'x' is no INTEGER", ""),
        ("1 = true", 1, 1, "BOOLEAN and INTEGER do not go together", ""),
        ("not 5", 1, 5, "an INTEGER, and a BOOLEAN is needed", ""),
        ("cast(5 as timestamp)", 1, 6, "an INTEGER cannot become a TIME", "timestamp_seconds"),
        ("'abc' rlike '('", 1, 13, "a ( without its )", ""),
        ("$.a rlike '(a+)+'", 1, 11, "may repeat more than 20 times", ""),
        ("$.a rlike r'\\bx'", 1, 11, "the escape \\b", ""),
        ("$.a rlike '(?=x)'", 1, 11, "another kind", ""),
        ("$.a rlike '\\d'", 1, 11, "\\d, which is no escape", "\\\\d"),
        ("$.a rlike $.b", 1, 11, "only a literal", ""),
        ("regexp_extract($.a, 'x', 1)", 1, 21, "no group 1", ""),
        ("regexp_replace($.a, 'x*', '')", 1, 21, "can match an empty text", ""),
        ("split($.a, ',')", 1, 1, "a LIST cannot become a TEXT", "list[0]"),
        ("$.a [0]", 1, 1, "an element of a list", "$.list[0]"),
        ("to_utc_timestamp($.a, 'Europe/Berln')", 1, 23, "no time zone", ""),
        ("to_timestamp($.a, 'yyy-MM-dd')", 1, 19, "'yyy' at character 1", "yyyy"),
        ("date_trunc('week', $.a)", 1, 12, "no unit 'week'", ""),
        ("$.a = $.b = $.c", 1, 1, "without parentheses", ""),
        ("'a' || 1 + 2", 1, 1, "without parentheses", ""),
        ("$.a[-1]", 1, 4, "no indexes from the end", ""),
        ("$.a[*].b", 1, 4, "no wildcards", ""),
        ("$[0].a", 1, 2, "a record is an object", ""),
        ("$a", 1, 1, "no let a", "$.name"),
        ("$A", 1, 2, "cannot follow $", "$.name"),
        ("$$.a", 1, 1, "has no each", ""),
        ("$$$.a", 1, 1, "no each with [*]", ""),
        ("$.", 1, 2, "malformed", ""),
        ("", 1, 1, "empty", ""),
        ("'abc", 1, 5, "not closed", ""),
        ("$.a $.b", 1, 5, "no expression of Spark SQL", ""),
        ("upper($.a", 1, 7, "no expression of Spark SQL: expecting )", ""),
        ("$.a; $.b", 1, 1, "not one expression", ""),
        ("interval 1 day", 1, 1, "intervals", ""),
        ("9999999999999999999999", 1, 1, "no NUMBER", ""),
        ("0.0000000001", 1, 1, "no NUMBER", ""),
        ("(" * 3000 + "1" + ")" * 3000, 1, 1, "nested too deeply", ""),
        ("url_decode(" * 9 + "$.a" + ")" * 9, 1, 1, "too complex", ""),
        ("x" * 10_001, 1, 1, "10001 characters", ""),
    ],
)
def test_what_is_not_of_the_language_is_refused(text: str, line: int, column: int, reason: str, remedy: str) -> None:
    with pytest.raises(MappingError) as refused:
        parse_expression(text)
    assert (refused.value.line, refused.value.column) == (line, column), str(refused.value)
    assert reason in refused.value.reason
    assert remedy in refused.value.remedy


_T = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cast($.price as decimal) * 1000000", Decimal(2100)),
        ("cast(cast($.price as decimal) * 1000000 as bigint)", 2100),
        ("micros($.price)", 2100),
        ("micros($.small)", 500),
        ("micros('0.00000049999999999999')", 0),
        ("micros('0.0000005')", 1),
        ("micros('-0.0000005')", -1),
        ("$.n + 1", Decimal(44)),
        ("$.n > 5", True),
        ("'1.5' > 1", True),
        ("1 / 3", Decimal("0.333333330")),
        ("2.0 / 3", Decimal("0.666666670")),
        ("0.001 * 0.0015", Decimal("0.000002")),
        ("-7 div 2", -3),
        ("-7 % 3", -1),
        ("cast(1.50 as string)", "1.5"),
        ("cast(100.0 as string)", "100"),
        ("cast(-1.9 as bigint)", -1),
        ("cast('2024-01-01T00:00:00.120+01:00' as timestamp) = '2023-12-31 23:00:00.12Z'", True),
        ("cast(cast('2024-01-01T00:00:00.120Z' as timestamp) as string)", "2024-01-01 00:00:00.12"),
        ("to_utc_timestamp('2024-03-31 02:30:00', 'Europe/Berlin') = '2024-03-31T01:30:00Z'", True),
        ("to_utc_timestamp('2024-10-27 02:30:00', 'Europe/Berlin') = '2024-10-27T00:30:00Z'", True),
        ("timestamp_millis('1700000000000')", _T),
        ("to_timestamp('14.11.2023 23:13:20 +01:00', 'dd.MM.yyyy HH:mm:ss XXX')", _T),
        ("unix_seconds('1969-12-31T23:59:59.5Z')", -1),
        ("$.absent is null and not $.on is null", True),
        ("null and false", False),
        ("null = 1", None),
        ("3 in (1, null)", None),
        ("3 not in (1, 2)", True),
        ("case when $.absent then 'a' when $.on then 'b' end", "b"),
        ("case $.id when 'u-1' then 1 else 0 end", 1),
        ("coalesce($.absent, $.n, '0')", "43"),
        ("coalesce($.absent, 0)", 0),
        ("split('a1b22c', '[0-9]+')[2]", "c"),
        ("split('a', ',')[1]", None),
        ("'$.id' || $.id -- $.x\n", "$.idu-1"),
        ("regexp_extract($.id, r'(\\d+)')", "1"),
        ("'a\nb' rlike 'a.b'", False),
        ("'x\r\n' rlike 'x$'", True),
        ("'x\r\ny' like 'x%y'", True),
        ("upper('straße')", "STRAßE"),
        ("url_decode('a%20b+%C3%A4')", "a b ä"),
        ("url_param('/a?x=1&u=a%20b&u=c', 'u')", "a b"),
        ("get_json_object('{\"a\": [1.50, 1e5]}', '$.a')", "[1.5,1e5]"),
        ("json_array_length('{}')", None),
        ("greatest(1, null, 2.5)", Decimal("2.5")),
        ("substring('banner', -3, 2)", "ne"),
        ("concat('a', null)", None),
        ("null", None),
    ],
)
def test_an_expression_gives(text: str, expected: object) -> None:
    value = value_of(text)
    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("cast($.a as bigint)", '{"a": "x"}'),
        ("cast($.a as bigint)", '{"a": 1.5}'),
        ("cast($.a as int)", '{"a": 2147483648}'),
        ("cast($.a as timestamp)", '{"a": "2024-02-30"}'),
        ("$.a + 1", '{"a": "x"}'),
        ("cast($.a as bigint) + 1", '{"a": 9223372036854775807}'),
        ("1 / $.a", '{"a": 0}'),
        ("micros($.a)", '{"a": "1e30"}'),
        ("timestamp_seconds($.a)", '{"a": 253402300800}'),
        ("unbase64($.a)", '{"a": "x"}'),
        ("coalesce(cast($.a as bigint), 0)", '{"a": "x"}'),
        ("to_utc_timestamp($.a, 'Europe/Berlin')", '{"a": "1969-12-31"}'),
    ],
)
def test_what_cannot_be_computed_is_a_failure(text: str, record: str) -> None:
    assert evaluate(parse_expression(text), Record(record)).has_failed


@pytest.mark.parametrize(
    "text",
    [
        "cast($.absent as bigint)",
        "coalesce('a', cast($.a as string), cast(cast($.a as bigint) as string))",
        "if($.a rlike '^[0-9]+$', cast($.a as bigint), null)",
        "$.a rlike '^[0-9]+$' and cast($.a as bigint) > 5",
        "$.a = 'x' or cast($.a as bigint) > 5",
        "split($.a, ',')[7]",
        "nullif($.a, 'x')",
    ],
)
def test_what_is_absent_or_not_evaluated_is_no_failure(text: str) -> None:
    assert not evaluate(parse_expression(text), Record('{"a": "x"}')).has_failed


def test_an_expression_tells_what_it_reads() -> None:
    expression = parse_expression("coalesce($.b, $.a.b[0], $.b)")
    assert expression.paths == (Path(("b",)), Path(("a", "b", 0)))
    assert (expression.type, expression.bare_path) == (Type.TEXT, None)
    assert parse_expression(" ($.a) ").bare_path == Path(("a",))


def test_sql_mentions_the_columns_that_it_is_given() -> None:
    expression = parse_expression("concat($.b, $.a, $)")
    schema = RecordSchema.of([*parse_expression("$.a").paths, *expression.paths])
    assert to_sql(expression, schema, text="t") == "concat(record.p1, record.p0, t)"
    assert failure_sql(expression, schema) == "false"


@pytest.mark.parametrize(
    "text", ["", "[1]", '"x"', "1", '{"a": 1', '{"a": NaN}', '{"a": 01}', '{"a": "\\ud800"}', "\ufeff{}"]
)
def test_a_text_that_is_no_object_has_nothing_at_a_path(text: str) -> None:
    assert evaluate(parse_expression("$.a"), Record(text)) == Evaluated(None, has_failed=False)


def test_deep_json_is_read_as_deeply_as_spark_reads_it() -> None:
    assert value_of("$.a", '{"a":' + "[" * 998 + "]" * 998 + "}") == "[" * 998 + "]" * 998
    assert value_of("$.a", '{"a":' + "[" * 999 + "]" * 999 + "}") is None


def test_the_letters_with_a_case_are_the_same_in_every_version_of_python() -> None:
    upper, lower = case_pairs(to_upper=True), case_pairs(to_upper=False)
    assert (len(upper[0]), len(lower[0])) == (731, 748)
    assert "ß" not in upper[0]


def test_importing_the_language_loads_no_parser() -> None:
    script = "import sys, spark_jobs.mapping; print('sqlglot' in sys.modules, 'pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_ten_fields_of_ten_thousand_records_take_less_than_two_seconds() -> None:
    texts = ["$.id", "upper($.user.a)", "micros($.price)", "cast($.n as bigint)", "$.on", "$.user.z[2].k"]
    texts += [
        "timestamp_millis($.n)",
        "coalesce($.absent, $.tags[0])",
        "$.id = 'u-1' and $.none is null",
        "$['odd key'].x",
    ]
    mapping = [parse_expression(text) for text in texts]
    payload = _RECORD[:-1] + f', "payload": "{"x" * 200}"}}'
    start = time.process_time()
    for _ in range(10_000):
        record = Record(payload)
        for expression in mapping:
            evaluate(expression, record)
    assert time.process_time() - start < 2
