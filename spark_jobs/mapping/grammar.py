"""The syntax: sqlglot reads it, and every function keeps the name that the user gave it."""

import re
from typing import NoReturn

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

from spark_jobs.mapping.errors import MappingError, RefusalError
from spark_jobs.mapping.paths import Path, cut_paths

MAX_LENGTH = 10_000
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a", "'": "'", '"': '"', "\\": "\\"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.)|\Z)", re.DOTALL)


class _Parser(SparkParser):
    """Spark's, but it translates no function into one of sqlglot's own."""

    FUNCTIONS = {}  # noqa: RUF012 as sqlglot declares them
    FUNCTION_PARSERS = {  # noqa: RUF012
        name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in {"CAST", "TRY_CAST"}
    }
    NO_PAREN_FUNCTIONS = {}  # noqa: RUF012
    NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
        name: parser for name, parser in SparkParser.NO_PAREN_FUNCTION_PARSERS.items() if name in {"CASE", "IF"}
    }


def parse_syntax(text: str) -> tuple[exp.Expr, dict[int, Path]]:
    """The syntax tree of ``text``, in which paths are columns, and the paths by where they start.

    Raises:
        MappingError: it is no expression.
    """
    if len(text) > MAX_LENGTH:
        raise MappingError(text, 0, f"the expression has {len(text)} characters, more than {MAX_LENGTH}")
    if not text.strip():
        raise MappingError(text, 0, "the expression is empty", "write a path such as $.id")
    cut, paths = cut_paths(text)
    dialect = Spark()
    try:
        tokens = dialect.tokenize(cut)
        parser = _Parser(dialect=dialect, error_level=ErrorLevel.IMMEDIATE)
        trees = [tree for tree in parser.parse_into(exp.Condition, tokens, cut) if tree is not None]
    except ParseError as error:
        _refuse(text, cut, error)
    except SqlglotError as error:
        raise MappingError(text, len(text), "a quote or comment is not closed") from error
    except RecursionError as error:
        raise MappingError(text, 0, "the expression is nested too deeply") from error
    if len(trees) != 1:
        raise MappingError(text, 0, "this is not one expression", "write one, without ;")
    return trees[0], paths


def _refuse(text: str, cut: str, error: ParseError) -> NoReturn:
    details = error.errors[0] if error.errors else {}
    lines = cut.split("\n")[: int(details.get("line") or 1)]
    # sqlglot counts columns to the end of what it did not expect.
    end = sum(len(line) + 1 for line in lines[:-1]) + int(details.get("col") or 0)
    highlight = str(details.get("highlight") or "")
    offset = max(min(end, len(text)) - max(len(highlight), 1), 0)
    what = str(details.get("description") or "it is malformed").partition(" missing for ")[0].rstrip(".")
    found = text[offset:end]
    reason = f"this is no expression of Spark SQL: {what[:1].lower()}{what[1:]}{f', found {found!r}' if found else ''}"
    raise MappingError(text, offset, reason) from error


def offset_of(tree: exp.Expr) -> int:
    """Where ``tree`` starts in the text, as well as sqlglot knows."""
    starts = [int(node.meta["start"]) for node in tree.walk() if "start" in node.meta]
    return min(starts, default=0)


def text_of_literal(source: str) -> str:
    r"""The text that the literal ``source``, with its quotes, stands for.

    Raises:
        RefusalError: an escape that Spark would drop silently, such as ``\d``.
    """
    if source[:1] in {"r", "R"}:
        return source[2:-1]

    def character(found: re.Match[str]) -> str:
        if code := found[1] or found[2]:
            return _code_point(code)
        if found[3] in {"%", "_"}:
            return found[0]
        if found[3] not in _ESCAPES:
            raise RefusalError(
                f"the literal {source} has \\{found[3] or ''}, which is no escape",
                f"write \\\\{found[3] or ''} for a backslash, or r'…' for a literal without escapes",
            )
        return _ESCAPES[found[3]]

    return _ESCAPE.sub(character, source[1:-1])


def _code_point(code: str) -> str:
    number = int(code, 16)
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:  # noqa: PLR2004 what Unicode has
        raise RefusalError(f"\\u{code} is no character")
    return chr(number)
