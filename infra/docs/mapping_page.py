"""``docs/mapping.md``: the mapping language, its functions from their declarations."""

from datetime import datetime

from infra.docs.markdown import code, page, table
from spark_jobs.mapping.declare import Function
from spark_jobs.mapping.functions import SECTIONS
from spark_jobs.mapping.times import text_of_time
from spark_jobs.mapping.types import MEANINGS, SQL_TYPES, Value

_HEAD = """\
A mapping says where in your JSON records adloom finds what it needs. It is an expression of a subset of Spark SQL over
one record:

```toml
event_time = "timestamp_millis($.ts)"
user_id = "coalesce($.uid, $.device.ifa)"
when = "$.type = 'click' and $.test is null"
cost_micros = "micros($.price)"
```

Expressions are checked when adloom starts; one that it does not know is refused with line, column and reason. For a
record, an expression never raises: what cannot be computed is null. It counts as a failure if a cast or function got a
value and could give none, in the branches that are taken."""
_PATHS = """\
## Paths

`$.user.device.ifa`, `$.tags[0]`, `$['odd key'].x`, and `$` for the whole record. `$.params[?key='page'].value` is the
value of the first element of a list whose `key` is `page`. In a source with `each`, `$` is the element and `$$` the
record around it; `$body` is the text that `let.body` gives, read as JSON; `$meta.key` is
[what Kafka has besides the value](events.md#keys-headers-and-files). A path gives TEXT:

- text as it is; `true` and `false`;
- a number in plain notation, without needless zeros: `0.00210` gives `0.0021`. One with an exponent or more than 38
  digits stays as it is written;
- an object or array as compact JSON, its keys in order, its numbers as above; `$` exactly as it was received;
- null if there is nothing at the path, or JSON's null. An element that has another type than the path needs takes
  nothing away from other paths. Of a key that occurs twice, the last counts."""
_TYPES = """\
TEXT becomes what is needed: an argument, a side of an operator, a branch. INTEGER becomes NUMBER. Everything else needs
a `cast`. Around a number or boolean in a text, white space is ignored; a boolean is `t`, `true`, `y`, `yes` or `1`, or
`f`, `false`, `n`, `no` or `0`, in any case. A time is `2024-05-01` or `2024-05-01T08:30:00`, with `T` or a space,
with or without seconds, up to nine digits of a fraction behind a point or comma, of which six count, and `Z`, `UTC`,
`GMT` or an offset: `+02:00`, `+0200` or `+02`; without one it is UTC. The region in `+02:00[Europe/Berlin]` is ignored.
On the first and the last day of the range there may be no offset. There is no floating point: money and ids never pass
through it."""
_DIFFERENCES = """\
## What differs from Spark SQL

- Nothing raises, and nothing depends on the clock, the order of rows or the session.
- `cast(x as decimal)` is a NUMBER, and not `decimal(10,0)`. `a / b` of INTEGERs is a NUMBER.
- `+`, `-` next to `||`, and comparisons within comparisons need parentheses.
- Backslashes in a literal escape as in Spark, but `\\d` is refused: write `\\\\d`, or `r'\\d'`.
- Aggregates, window functions, subqueries, generators, lambdas, user functions, intervals, and everything that is not
  listed here are refused.

Regular expressions are those that Java and Python read alike: characters, `.`, classes such as `[a-z_]` and `[^,]`,
`\\d \\w \\s` (ASCII) and their opposites, `^` at the start and `$` at the end, groups `(…)` and `(?:…)`, `|`, and the
quantifiers `? * + {n} {n,} {n,m}`, also lazy. A group may repeat 20 times at most."""


def mapping_page() -> str:
    """The page."""
    types = table(
        ("type", "in Spark", "what it is"),
        [(kind.value, code(name), MEANINGS[kind]) for kind, name in SQL_TYPES.items()],
    )
    functions = [f"## {section}\n\n{_rows(functions)}" for section, functions in SECTIONS.items()]
    return page("Mapping language", _HEAD, _PATHS, f"## Types\n\n{types}\n\n{_TYPES}", *functions, _DIFFERENCES)


def _rows(functions: tuple[Function, ...]) -> str:
    return table(
        ("function", "what it gives", "example"),
        [(_name(function), function.meaning, _example(function)) for function in functions],
    )


def _name(function: Function) -> str:
    names = [name for name in function.aliases if name.isidentifier() and name not in function.signature]
    return code(function.signature) + (f"; also {', '.join(map(code, names))}" if names else "")


def _example(function: Function) -> str:
    expression, value = function.example
    return f"{code(expression)} → {code(_shown(value))}"


def _shown(value: Value | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return text_of_time(value)
    return repr(value) if isinstance(value, str) else str(value)
