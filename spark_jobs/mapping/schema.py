r"""A JSON record in Spark: one parse into a variant, and from it one TEXT per path.

``from_json`` would not do: it takes fractions through a floating point, gives null for a whole array if one element has
another type, and cannot read both ``$.a`` and ``$.a.b``. Of a variant, only numbers with an exponent or with more than
38 digits are floating points. If such a one is met, which is rare, its literal is marked as text and parsed again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spark_jobs.mapping.objects import Objects
from spark_jobs.mapping.paths import BETWEEN_ROOT, OUTER_ROOT, OUTERMOST_ROOT, Path, Step, Where
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
_MAY_BE_INEXACT = r"[0-9][eE][+-]?[0-9]|[0-9.]{39}"
VARIANT, RECORD = "variant", "record"
"""The columns with a record that was parsed, as an array of it and a number, and with the values at its paths."""
_NOTHING = "'none', null"
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
        others: of other records, by their root: their paths, and whether they are read as a whole, too.
    """

    paths: tuple[Path, ...]
    others: Mapping[str, "OtherRecord"] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Iterable[Path]) -> "RecordSchema":
        """The schema for ``paths``."""
        found = list(dict.fromkeys(paths))
        by_root: dict[str, dict[Path, None]] = {}
        for path in found:
            by_root.setdefault(OUTER_ROOT if path.root == OUTERMOST_ROOT else path.root, {})[path.within] = None
        of_record = tuple(path for path in by_root.pop("", {}) if path.steps)
        others = {
            root: OtherRecord(root, tuple(path for path in paths if path.steps), any(not path.steps for path in paths))
            for root, paths in by_root.items()
        }
        # However it is called.
        return cls(of_record, others | ({OUTERMOST_ROOT: others[OUTER_ROOT]} if OUTER_ROOT in others else {}))

    @property
    def outer(self) -> "OtherRecord":
        """The part that is read of the record around one that is an element of its list."""
        return self.others.get(OUTER_ROOT, OtherRecord(OUTER_ROOT))

    @property
    def between(self) -> "OtherRecord":
        """The part that is read of the element around one that is an element of a list within a list."""
        return self.others.get(BETWEEN_ROOT, OtherRecord(BETWEEN_ROOT))

    @staticmethod
    def elements_sql(path: Path, text: str = "text") -> str:
        """SQL of the texts of the elements of the list at ``path`` of a record that was read; null without one."""
        # Hardly any record has such a number, and one look at its text says so.
        may_be_inexact = f"rlike({text}, {quoted(_MAY_BE_INEXACT)})"
        exact = _value_at(_parsed(_marked(f"concat('[', {text}, ']')")), path.steps, _ROOT, "array<variant>")
        element = "coalesce(try_variant_get(e, '$', 'string'), 'null')"
        as_read = _value_at(VARIANT, path.steps, _ROOT, "array<variant>")
        return (
            f"if({may_be_inexact}, transform({exact}, e -> {_unmarked(element)}), transform({as_read}, e -> {element}))"
        )

    def columns_sql(self, text: str = "text") -> list[tuple[str, str]]:
        """Name and SQL of the columns that read the record, each to be added to the ones before it.

        The last is :data:`RECORD`: a struct with one STRING per path, ``p0``, ``p1`` and so on. If the text is not
        JSON, every path is null. Were they not columns of their own, every path would parse the text again.

        Args:
            text: the column with the JSON text, without white space around it.
        """
        columns = [(VARIANT, _parsed(f"concat('[', {text}, ',', {_seal(text)}, ']')"))]
        if not self.paths:
            return [*columns, (RECORD, f"named_struct({_NOTHING})")]
        values = [f"{_AS_READ}.p{number}" for number in range(len(self.paths))]
        inexact = [_is_inexact(value, _kind_at(path)) for value, path in zip(values, self.paths, strict=True)]
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
            objects.value_sql(fields, path) if path in objects.paths else _text_at(variant, path, _ROOT)
            for path in self.paths
        ]

    @staticmethod
    def is_whole_sql(text: str = "text") -> str:
        """SQL of whether the JSON text is one value with nothing behind it, once it has been read; null for false."""
        return f"try_variant_get({VARIANT}, '$[1]', 'bigint') = {_seal(text)}"

    def kind_sql(self, path: Path) -> str:
        """SQL of the type of the value at ``path`` of a record that has been read: a name of ``schema_of_variant``."""
        return self.others[path.root].kind_sql(path.within) if path.root else _kind_at(path)

    def path_sql(self, path: Path, text: str = "text") -> str:
        """SQL of the TEXT at ``path``.

        Args:
            path: one of :attr:`paths`, or the whole record.
            text: the column with the JSON text.
        """
        if path.root:
            return self.others[path.root].path_sql(path.within)
        return f"{RECORD}.p{self.paths.index(path)}" if path.steps else text


@dataclass(frozen=True)
class OtherRecord:
    """The part that mappings read of another record than the one they are for, as one column.

    Attributes:
        root: of paths into it.
        paths: from there, without the whole record.
        reads_whole: whether that is read, too.
    """

    root: str
    paths: tuple[Path, ...] = ()
    reads_whole: bool = False

    @property
    def column(self) -> str:
        """The name of the column: a struct of TEXT and kind at each path, ``p0``, ``k0`` and so on; and the whole."""
        return f"of_{self.root}".replace(OUTER_ROOT, "outer").replace(".", "_")

    def columns_sql(self, text: str) -> list[tuple[str, str]]:
        """Name and SQL of the columns that read it, the last of which is :attr:`column`; the others are in between."""
        values = [f"'p{number}', {RECORD}.p{number}" for number in range(len(self.paths))]
        kinds = [f"'k{number}', {_kind_at(path)}" for number, path in enumerate(self.paths)]
        whole = [f"'text', {text}"] if self.reads_whole else []
        struct = f"named_struct({', '.join([*values, *kinds, *whole]) or _NOTHING})"
        return [*RecordSchema(self.paths).columns_sql(text), (self.column, struct)]

    def path_sql(self, path: Path) -> str:
        """SQL of the TEXT at ``path``."""
        return f"{self.column}.p{self.paths.index(path)}" if path.steps else f"{self.column}.text"

    def kind_sql(self, path: Path) -> str:
        """SQL of the type of the value at ``path``."""
        return f"{self.column}.k{self.paths.index(path)}"


def _kind_at(path: Path, variant: str = VARIANT, root: str = _ROOT) -> str:
    return f"schema_of_variant({_value_at(variant, path.steps, root, 'variant')})"


def value_sql(text: str, path: Path) -> str:
    """SQL of the value at ``path`` in the JSON of the SQL ``text``, which is mentioned several times."""
    variant = _parsed(text)
    value, kind = _text_at(variant, path), _kind_at(path, variant, "$")
    exact = _unmarked(_text_at(_parsed(_marked(text)), path))
    return f"case when {_is_inexact(value, kind)} then {exact} else {value} end"


def array_sql(text: str) -> str:
    """SQL of the elements of the JSON array that the SQL ``text`` is, as variants; null if it is none."""
    return f"try_variant_get({_parsed(text)}, '$', 'array<variant>')"


def plain_text_sql(variant: str) -> str:
    """SQL of the TEXT of a ``variant``, if that is a text, a boolean, or a number that a decimal holds; else null."""
    is_plain = f"not rlike(schema_of_variant({variant}), '^(DOUBLE|OBJECT|ARRAY)')"
    return f"if({is_plain}, try_variant_get({variant}, '$', 'string'), null)"


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


def _text_at(variant: str, path: Path, root: str = "$") -> str:
    return _value_at(variant, path.steps, root, "string")


def _value_at(variant: str, steps: Sequence[Step], root: str, kind: str) -> str:
    """SQL of the value at ``steps`` below ``root`` in a ``variant``, as the type ``kind``."""
    place = root
    for number, step in enumerate(steps):
        if isinstance(step, Where):
            elements = f"try_variant_get({variant}, {quoted(place)}, 'array<variant>')"
            key = plain_text_sql(f"try_variant_get(e, {quoted('$' + _place(step.keys))}, 'variant')")
            one = f"get(filter({elements}, e -> {key} = {quoted(step.value)}), 0)"
            return _value_at(one, steps[number + 1 :], "$", kind)
        place += _place([step])
    return f"try_variant_get({variant}, {quoted(place)}, '{kind}')"


def _place(steps: Iterable[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f"['{step}']" for step in steps)


def _is_inexact(value: str, kind: str) -> str:
    """SQL of whether ``value``, a text of the ``kind``, is or holds a number that went through a floating point."""
    has_fraction = f"(contains({value}, '.') or contains({value}, 'Infinity'))"
    may_be = f"startswith({value}, '{{') or startswith({value}, '[') or {kind} = 'DOUBLE'"
    return f"({has_fraction} and ({may_be}))"


def _marked(text: str) -> str:
    return f"regexp_replace({text}, {quoted(_TO_MARK)}, {quoted(_MARKED)})"


def _unmarked(value: str) -> str:
    return f"regexp_replace({value}, {quoted(_TO_UNMARK)}, '$1$2')"


def _struct(values: Sequence[str]) -> str:
    fields = ", ".join(f"'p{number}', {value}" for number, value in enumerate(values))
    return f"named_struct({fields})"
