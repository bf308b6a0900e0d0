"""Which parts of sqlglot's syntax the language has, and why it refuses the others."""

from sqlglot import exp

from spark_jobs.mapping.errors import RefusalError
from spark_jobs.mapping.nodes import Constant
from spark_jobs.mapping.numbers import number_of_literal
from spark_jobs.mapping.types import MAX_INTEGER, MIN_INTEGER, Type

OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.DPipe: "||",
    exp.RegexpLike: "rlike",
    exp.Like: "like",
}
COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_PREDICATES = (*COMPARISONS, exp.NullSafeEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.RegexpLike)
_NOT_THE_LANGUAGE = {
    exp.Window: ("a window function sees several records: a mapping sees one at a time", ""),
    exp.Query: ("a mapping has no subqueries: it sees one record", ""),
    exp.Lambda: ("mappings have no lambdas", "name one element: $.list[0]"),
    exp.Star: ("* has no meaning here: a mapping sees one record", ""),
    exp.Distinct: ("distinct has no meaning here: a mapping sees one record", ""),
    exp.Filter: ("filter belongs to aggregates: a mapping sees one record at a time", ""),
    exp.Interval: ("intervals are not of the mapping language", "add to unix_millis(…) and use timestamp_millis(…)"),
    exp.Placeholder: ("a mapping has no parameters", "a field is written $.name"),
    exp.Parameter: ("a mapping has no parameters", "a field is written $.name"),
    exp.JSONExtract: ("mappings have no lambdas and no ->", "use get_json_object(text, '$.path')"),
    exp.Concat: ("two literals stand side by side", "write || between them"),
    exp.ILike: ("ilike is not of the mapping language", "use lower(…) like 'pattern'"),
    exp.Escape: ("like has no escape clause here", "the escape is \\"),
}


def foreign(tree: exp.Expr) -> RefusalError:
    """Why ``tree``, which is no part of the language, is refused."""
    for kind, (reason, remedy) in _NOT_THE_LANGUAGE.items():
        if isinstance(tree, kind):
            return RefusalError(reason, remedy)
    if isinstance(tree, exp.Dot):
        return RefusalError("user functions and columns with a dot are not of the mapping language", "write $.a.b")
    return RefusalError(f"{tree.sql('spark')[:40]!r} is not of the mapping language", "see docs/mapping.md")


def check_nesting(tree: exp.Expr) -> None:
    """Refuses what Spark groups otherwise than sqlglot.

    Raises:
        RefusalError: parentheses are missing.
    """
    if isinstance(tree, _PREDICATES) and any(isinstance(child, _PREDICATES) for child in tree.iter_expressions()):
        raise RefusalError("a comparison stands in a comparison without parentheses", "write parentheses: (a = b) = c")
    if isinstance(tree, exp.DPipe) and any(
        isinstance(child, exp.Add | exp.Sub) for child in (tree.this, tree.expression)
    ):
        raise RefusalError("|| and + or - stand side by side without parentheses", "write parentheses: a || (b + c)")


def number_literal(source: str) -> Constant:
    """The number that stands as ``source`` in an expression.

    Raises:
        RefusalError: it is none that the language has.
    """
    if not source.lstrip("-").replace(".", "", 1).isdigit():
        raise RefusalError(f"{source} is a floating point: money and ids pass through none", "write all its digits")
    if "." not in source and MIN_INTEGER <= int(source) <= MAX_INTEGER:
        return Constant(Type.INTEGER, int(source))
    number = number_of_literal(source)
    if number is None:
        raise RefusalError(f"{source} is no NUMBER: it has 21 digits before the point and 9 behind it at most")
    return Constant(Type.NUMBER, number)
