r"""A JSON record in Spark: one parse into a variant, and from it one TEXT per path.

``from_json`` would not do: it takes fractions through a floating point, gives null for a whole array if one element has
another type, and cannot read both ``$.a`` and ``$.a.b``. Of a variant, only numbers with an exponent or with more than
38 digits are floating points. If such a one is met, which is rare, its literal is marked as text and parsed again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from spark_jobs.mapping.paths import Path
from spark_jobs.mapping.sqltext import quoted

_MARK = "\ufdd0\ufdd1"
"""In front of a number that was turned into text. Unicode reserves these two for use within a program."""
_INEXACT = (
    r"-?(?:(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?[eE][+-]?[0-9]++|0\.[0-9]{39,}+|[1-9][0-9]{38,}+(?![.0-9])"
    r"|(?=[0-9.]{40})[1-9][0-9]*+\.[0-9]++)"
)
# Each match starts where the last one ended and skips strings and other numbers. The possessive group loops without
# recursion, so that no record is too long for Java's stack.
_TO_MARK = rf'(?s)\G((?:[^"0-9-]++|"(?:[^"\\]++|\\.)*+"|(?!{_INEXACT})-?[0-9]++(?:\.[0-9]++)?)*+)({_INEXACT})'
_MARKED = f'$1"{_MARK}$2"'
_TO_UNMARK = rf'"{_MARK}([^"]*+)"|\A{_MARK}(.*)\z'


@dataclass(frozen=True)
class RecordSchema:
    """The paths that all mappings of a source read.

    Attributes:
        paths: without the whole record, each once.
    """

    paths: tuple[Path, ...]

    @classmethod
    def of(cls, paths: Iterable[Path]) -> "RecordSchema":
        """The schema for ``paths``."""
        return cls(tuple(dict.fromkeys(path for path in paths if path.steps)))

    def variant_sql(self, text: str = "text") -> str:
        """SQL of the parsed record: select it as a column of its own, or every path parses the text again.

        Args:
            text: SQL of the JSON text, without white space around it.
        """
        return f"try_parse_json({text})"

    def record_sql(self, text: str = "text", variant: str = "variant") -> str:
        """SQL of the record: a struct with one STRING per path, ``p0``, ``p1`` and so on.

        If the text is not JSON, every path is null.

        Args:
            text: the column with the JSON text.
            variant: the column that :meth:`variant_sql` made.
        """
        fields = ", ".join(f"'p{number}', {value_sql(text, path, variant)}" for number, path in enumerate(self.paths))
        return f"named_struct({fields})" if fields else "named_struct('none', null)"

    def path_sql(self, path: Path, record: str = "record", text: str = "text") -> str:
        """SQL of the TEXT at ``path``.

        Args:
            path: one of :attr:`paths`, or the whole record.
            record: the column that :meth:`record_sql` made.
            text: the column with the JSON text.
        """
        return f"{record}.p{self.paths.index(path)}" if path.steps else text


def value_sql(text: str, path: Path, variant: str | None = None) -> str:
    """SQL of the value at ``path`` in the JSON of the SQL ``text``, which is mentioned several times.

    Args:
        text: SQL of the JSON text.
        path: into it.
        variant: SQL of the parsed text, where it is at hand.
    """
    parsed = variant or f"try_parse_json({text})"
    place = quoted("$" + "".join(_step(step) for step in path.steps))
    value = f"try_variant_get({parsed}, {place}, 'string')"
    kind = f"schema_of_variant(try_variant_get({parsed}, {place}, 'variant'))"
    has_fraction = f"(contains({value}, '.') or contains({value}, 'Infinity'))"
    may_be_inexact = f"startswith({value}, '{{') or startswith({value}, '[') or {kind} = 'DOUBLE'"
    marked = f"regexp_replace({text}, {quoted(_TO_MARK)}, {quoted(_MARKED)})"
    exact = f"try_variant_get(try_parse_json({marked}), {place}, 'string')"
    unmarked = f"regexp_replace({exact}, {quoted(_TO_UNMARK)}, '$1$2')"
    return f"case when {has_fraction} and ({may_be_inexact}) then {unmarked} else {value} end"


def _step(step: str | int) -> str:
    return f"[{step}]" if isinstance(step, int) else f"['{step}']"
