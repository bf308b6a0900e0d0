r"""A JSON record in Spark: one parse into a variant, and from it one TEXT per path.

``from_json`` would not do: it takes fractions through a floating point, gives null for a whole array if one element has
another type, and cannot read both ``$.a`` and ``$.a.b``. Of a variant, only numbers with an exponent or with more than
38 digits are floating points. If such a one is met, which is rare, its literal is marked as text and parsed again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spark_jobs.mapping.objects import Objects
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
VARIANT, RECORD = "variant", "record"
"""The columns with a record that was parsed, as an array of it and a number, and with the values at its paths."""
_AS_READ, _EXACT = "as_read", "exact"
"""In between: the values as the variant has them, and a variant where those that are inexact there are marked."""
_FIELDS, _EXACT_FIELDS = "fields", "exact_fields"
"""In between: the objects of the two variants, see :mod:`spark_jobs.mapping.objects`."""
_ROOT = "$[0]"


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

    def columns_sql(self, text: str = "text") -> list[tuple[str, str]]:
        """Name and SQL of the columns that read the record, each to be added to the ones before it.

        The last is :data:`RECORD`: a struct with one STRING per path, ``p0``, ``p1`` and so on. If the text is not
        JSON, every path is null. Were they not columns of their own, every path would parse the text again.

        Args:
            text: the column with the JSON text, without white space around it.
        """
        columns = [(VARIANT, _parsed(f"concat('[', {text}, ',', {_seal(text)}, ']')"))]
        if not self.paths:
            return [*columns, (RECORD, "named_struct('none', null)")]
        places = [_place(path, _ROOT) for path in self.paths]
        values = [f"{_AS_READ}.p{number}" for number in range(len(places))]
        inexact = [_is_inexact(value, VARIANT, place) for value, place in zip(values, places, strict=True)]
        marked = _parsed(_marked(f"concat('[', {text}, ']')"))
        objects = Objects.of(self.paths)
        exact = [
            f"if({got} = {value}, {value}, {_unmarked(got)})"
            for got, value in zip(self._texts(objects, _EXACT_FIELDS, _EXACT), values, strict=True)
        ]
        return [
            *columns,
            (_FIELDS, _fields(objects, VARIANT)),
            (_AS_READ, _struct(self._texts(objects, _FIELDS, VARIANT))),
            (_EXACT, f"case when {' or '.join(inexact)} then {marked} end"),
            (_EXACT_FIELDS, _fields(objects, _EXACT)),
            (RECORD, f"case when {_EXACT} is null then {_AS_READ} else {_struct(exact)} end"),
        ]

    def _texts(self, objects: Objects, fields: str, variant: str) -> list[str]:
        """SQL of the text at each path: from the column ``fields`` if it is there, or else from ``variant``."""
        return [
            objects.value_sql(fields, path) if path in objects.paths else _text_at(variant, _place(path, _ROOT))
            for path in self.paths
        ]

    @staticmethod
    def is_whole_sql(text: str = "text") -> str:
        """SQL of whether the JSON text is one value with nothing behind it, once it has been read; null for false."""
        return f"try_variant_get({VARIANT}, '$[1]', 'bigint') = {_seal(text)}"

    @staticmethod
    def kind_sql(path: Path) -> str:
        """SQL of the type of the value at ``path`` of a record that has been read: a name of ``schema_of_variant``."""
        return _kind(VARIANT, _place(path, _ROOT))

    def path_sql(self, path: Path, text: str = "text") -> str:
        """SQL of the TEXT at ``path``.

        Args:
            path: one of :attr:`paths`, or the whole record.
            text: the column with the JSON text.
        """
        return f"{RECORD}.p{self.paths.index(path)}" if path.steps else text


def value_sql(text: str, path: Path) -> str:
    """SQL of the value at ``path`` in the JSON of the SQL ``text``, which is mentioned several times."""
    place, variant = _place(path), _parsed(text)
    value = _text_at(variant, place)
    exact = _unmarked(_text_at(_parsed(_marked(text)), place))
    return f"case when {_is_inexact(value, variant, place)} then {exact} else {value} end"


def _seal(text: str) -> str:
    """SQL of a number that follows the record in the parsed array.

    Spark's parser ignores what follows a value. The array is closed behind the number, so a text with more than one
    value in it, or with half of another, would have to hold its own hash to pass for one value.
    """
    return f"xxhash64({text})"


def _parsed(text: str) -> str:
    return f"try_parse_json({text})"


def _fields(objects: Objects, variant: str) -> str:
    if not objects.paths:
        return "null"
    return f"try_variant_get({variant}, {quoted(_ROOT)}, {quoted(objects.type_sql)})"


def _place(path: Path, root: str = "$") -> str:
    return quoted(root + "".join(_step(step) for step in path.steps))


def _step(step: str | int) -> str:
    return f"[{step}]" if isinstance(step, int) else f"['{step}']"


def _text_at(variant: str, place: str) -> str:
    return f"try_variant_get({variant}, {place}, 'string')"


def _kind(variant: str, place: str) -> str:
    return f"schema_of_variant(try_variant_get({variant}, {place}, 'variant'))"


def _is_inexact(value: str, variant: str, place: str) -> str:
    """SQL of whether ``value``, the text at ``place``, is or holds a number that went through a floating point."""
    has_fraction = f"(contains({value}, '.') or contains({value}, 'Infinity'))"
    may_be = f"startswith({value}, '{{') or startswith({value}, '[') or {_kind(variant, place)} = 'DOUBLE'"
    return f"({has_fraction} and ({may_be}))"


def _marked(text: str) -> str:
    return f"regexp_replace({text}, {quoted(_TO_MARK)}, {quoted(_MARKED)})"


def _unmarked(value: str) -> str:
    return f"regexp_replace({value}, {quoted(_TO_UNMARK)}, '$1$2')"


def _struct(values: Sequence[str]) -> str:
    fields = ", ".join(f"'p{number}', {value}" for number, value in enumerate(values))
    return f"named_struct({fields})"
