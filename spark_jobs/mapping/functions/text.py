"""Functions of text that have no patterns."""

from functools import partial

from spark_jobs.mapping import texts
from spark_jobs.mapping.casing import case_pairs, case_table
from spark_jobs.mapping.declare import Function, Implementation, Overload, Parameter, overload
from spark_jobs.mapping.errors import RefusalError
from spark_jobs.mapping.sqltext import quoted
from spark_jobs.mapping.types import Type

_TEXT, _INTEGER = Type.TEXT, Type.INTEGER
_MAX_LENGTH = 10_000


def _as_int(sql: str) -> str:
    return f"try_cast({sql} as int)"


def _case(*, to_upper: bool) -> tuple[Overload, ...]:
    # The table is made when it is first needed.
    def sql(text: str) -> str:
        old, new = case_pairs(to_upper=to_upper)
        return f"translate({text}, '{old}', '{new}')"

    return (overload("text TEXT", _TEXT, sql, lambda text: text.translate(case_table(to_upper=to_upper))),)


def _bind_translate(old: str, new: str) -> Implementation:
    if "\0" in old + new:
        raise RefusalError("translate takes no U+0000")
    table: dict[int, str | None] = {}
    for number, character in enumerate(old):
        table.setdefault(ord(character), new[number] if number < len(new) else None)
    return Implementation(
        lambda text: f"translate({text}, {quoted(old)}, {quoted(new)})", lambda text: text.translate(table)
    )


def _bind_pad(name: str, length: int, padding: str) -> Implementation:
    if not 0 <= length <= _MAX_LENGTH or not padding:
        raise RefusalError(f"{name} takes a length from 0 to {_MAX_LENGTH} and a padding that is not empty")
    return Implementation(
        lambda text: f"{name}({text}, {length}, {quoted(padding)})",
        partial(texts.padded, length=length, padding=padding, on_the_left=name == "lpad"),
    )


def _pad_overloads(name: str) -> tuple[Overload, ...]:
    taken = (
        Parameter("text", _TEXT),
        Parameter("length", _INTEGER, is_literal=True),
        Parameter("padding", _TEXT, is_literal=True, is_optional=True, default=" "),
    )
    return (Overload(taken, _TEXT, partial(_bind_pad, name)),)


def _bind_split_part(separator: str, number: int) -> Implementation:
    if not separator or not number or not texts.is_int(number):
        raise RefusalError("split_part takes a separator that is not empty and a number that is not 0")
    return Implementation(
        lambda text: f"split_part({text}, {quoted(separator)}, {number})",
        partial(texts.split_part, separator=separator, number=number),
    )


_LITERALS = (Parameter("from", _TEXT, is_literal=True), Parameter("to", _TEXT, is_literal=True))
_SUBSTRING = (
    overload("text TEXT, position INTEGER", _TEXT, lambda x, p: f"substring({x}, {_as_int(p)})", texts.substring),
    overload(
        "text TEXT, position INTEGER, length INTEGER",
        _TEXT,
        lambda x, p, n: f"substring({x}, {_as_int(p)}, {_as_int(n)})",
        texts.substring,
    ),
)
FUNCTIONS = (
    Function(
        "concat",
        "concat(text, …)",
        "The texts one after the other; null if one of them is.",
        ("concat('u-', '7')", "u-7"),
        (overload("text TEXT...", _TEXT, lambda *texts: f"concat({', '.join(texts)})", lambda *texts: "".join(texts)),),
    ),
    Function(
        "||",
        "text || text",
        "The same.",
        ("'u-' || '7'", "u-7"),
        (overload("left TEXT, right TEXT", _TEXT, "({} || {})", lambda left, right: left + right),),
        is_operator=True,
    ),
    Function(
        "concat_ws",
        "concat_ws(separator, text, …)",
        "The texts that are not null, with the separator between them.",
        ("concat_ws('/', 'a', null, 'b')", "a/b"),
        (
            overload(
                "separator TEXT, text TEXT...", _TEXT, lambda *texts: f"concat_ws({', '.join(texts)})", texts.concat_ws
            ),
        ),
        sees_null=True,
    ),
    Function(
        "lower",
        "lower(text)",
        "Every capital letter as its small one. Letters without exactly one counterpart stay, as do those newer than "
        "Unicode 3.2.",
        ("lower('ÄPFEL')", "äpfel"),
        _case(to_upper=False),
        aliases=("lcase",),
    ),
    Function(
        "upper",
        "upper(text)",
        "Every small letter as its capital, likewise: ß stays ß.",
        ("upper('äpfel')", "ÄPFEL"),
        _case(to_upper=True),
        aliases=("ucase",),
    ),
    Function(
        "trim",
        "trim(text)",
        "Without spaces (U+0020) at both ends.",
        ("trim('  a b ')", "a b"),
        (overload("text TEXT", _TEXT, "trim({})", lambda text: text.strip(" ")),),
    ),
    Function(
        "ltrim",
        "ltrim(text)",
        "Without spaces at the start.",
        ("ltrim('  a ')", "a "),
        (overload("text TEXT", _TEXT, "ltrim({})", lambda text: text.lstrip(" ")),),
    ),
    Function(
        "rtrim",
        "rtrim(text)",
        "Without spaces at the end.",
        ("rtrim('  a ')", "  a"),
        (overload("text TEXT", _TEXT, "rtrim({})", lambda text: text.rstrip(" ")),),
    ),
    Function(
        "substring",
        "substring(text, position[, length])",
        "From the position on, counted from 1, or from the end if it is negative. A position or length beyond 32 bits "
        "fails.",
        ("substring('banner', 2, 3)", "ann"),
        _SUBSTRING,
        can_fail=True,
        aliases=("substr",),
    ),
    Function(
        "left",
        "left(text, count)",
        "The first characters.",
        ("left('banner', 3)", "ban"),
        (overload("text TEXT, count INTEGER", _TEXT, lambda x, n: f"left({x}, {_as_int(n)})", texts.left),),
        can_fail=True,
    ),
    Function(
        "right",
        "right(text, count)",
        "The last characters.",
        ("right('banner', 3)", "ner"),
        (overload("text TEXT, count INTEGER", _TEXT, lambda x, n: f"right({x}, {_as_int(n)})", texts.right),),
        can_fail=True,
    ),
    Function(
        "length",
        "length(text)",
        "How many characters (code points) it has.",
        ("length('größe')", 5),
        (overload("text TEXT", _INTEGER, "cast(char_length({}) as bigint)", len),),
        aliases=("char_length", "character_length", "len"),
    ),
    Function(
        "replace",
        "replace(text, search, replacement)",
        "Every occurrence of `search` replaced; nothing if it is empty.",
        ("replace('a-b-c', '-', '/')", "a/b/c"),
        (overload("text TEXT, search TEXT, replacement TEXT", _TEXT, "replace({}, {}, {})", texts.replaced),),
    ),
    Function(
        "translate",
        "translate(text, 'from', 'to')",
        "Each character of `from` replaced by the one at its place in `to`; without one it is dropped.",
        ("translate('1.234,5', ',.', '.')", "1234.5"),
        (Overload((Parameter("text", _TEXT), *_LITERALS), _TEXT, _bind_translate),),
    ),
    Function(
        "lpad",
        "lpad(text, length[, 'padding'])",
        "Filled up on the left to the length, or cut off to it. The length is a literal.",
        ("lpad('7', 3, '0')", "007"),
        _pad_overloads("lpad"),
    ),
    Function(
        "rpad",
        "rpad(text, length[, 'padding'])",
        "The same on the right.",
        ("rpad('7', 3, '0')", "700"),
        _pad_overloads("rpad"),
    ),
    Function(
        "reverse",
        "reverse(text)",
        "The characters in reverse order.",
        ("reverse('abc')", "cba"),
        (overload("text TEXT", _TEXT, "reverse({})", lambda text: text[::-1]),),
    ),
    Function(
        "split_part",
        "split_part(text, 'separator', number)",
        "The part between separators, counted from 1, or from the end if it is negative; empty if it is missing.",
        ("split_part('a/b/c', '/', 2)", "b"),
        (
            Overload(
                (
                    Parameter("text", _TEXT),
                    Parameter("separator", _TEXT, is_literal=True),
                    Parameter("number", _INTEGER, is_literal=True),
                ),
                _TEXT,
                _bind_split_part,
            ),
        ),
    ),
    Function(
        "contains",
        "contains(text, part)",
        "Whether the part occurs in the text.",
        ("contains('banner', 'nn')", True),
        (overload("text TEXT, part TEXT", Type.BOOLEAN, "contains({}, {})", lambda text, part: part in text),),
    ),
    Function(
        "startswith",
        "startswith(text, part)",
        "Whether the text starts with the part.",
        ("startswith('banner', 'ban')", True),
        (overload("text TEXT, part TEXT", Type.BOOLEAN, "startswith({}, {})", str.startswith),),
    ),
    Function(
        "endswith",
        "endswith(text, part)",
        "Whether the text ends with the part.",
        ("endswith('banner', 'ner')", True),
        (overload("text TEXT, part TEXT", Type.BOOLEAN, "endswith({}, {})", str.endswith),),
    ),
    Function(
        "instr",
        "instr(text, part)",
        "Where the part first occurs, counted from 1; 0 if nowhere.",
        ("instr('banner', 'nn')", 3),
        (
            overload(
                "text TEXT, part TEXT",
                _INTEGER,
                "cast(instr({}, {}) as bigint)",
                lambda text, part: text.find(part) + 1,
            ),
        ),
    ),
    Function(
        "locate",
        "locate(part, text)",
        "The same, with the arguments the other way round.",
        ("locate('nn', 'banner')", 3),
        (
            overload(
                "part TEXT, text TEXT",
                _INTEGER,
                "cast(locate({}, {}) as bigint)",
                lambda part, text: text.find(part) + 1,
            ),
        ),
    ),
)
