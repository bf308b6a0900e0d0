"""Encodings, hashes, and JSON within a text."""

import base64
import hashlib
import re
from decimal import Decimal
from functools import partial
from urllib.parse import unquote_plus

from spark_jobs.mapping.declare import Function, Implementation, Overload, Parameter, overload, parameters
from spark_jobs.mapping.errors import MappingError, RefusalError
from spark_jobs.mapping.numbers import EXACT, in_range, rounded
from spark_jobs.mapping.paths import Path, parse_path
from spark_jobs.mapping.record import json_value
from spark_jobs.mapping.schema import value_sql
from spark_jobs.mapping.sqltext import quoted
from spark_jobs.mapping.types import NUMBER_SCALE, SQL_TYPES, Type

_TEXT = Type.TEXT
_REPLACEMENT = "\ufffd"
"""The character that decoders put where bytes are no UTF-8."""
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?")
# Spark's own check is laxer. "!" in front makes it fail; the possessive group keeps Java from recursing.
_NOT_BASE64 = r"\A(?!(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?\z)"
_MOST_BYTES = 16
"""Of a number in bytes: more than a NUMBER holds."""
_WORD = 2**64
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_BAD_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_SEPARATES = re.compile(r"[&#=?\s]", re.ASCII)
_SHA2 = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def _bind_sha2(bits: int) -> Implementation:
    if bits not in _SHA2:
        raise RefusalError(f"sha2 has no {bits} bits", f"use one of {', '.join(map(str, _SHA2))}")
    algorithm = _SHA2[bits]
    return Implementation(
        lambda text: f"sha2({text}, {bits})", lambda text: hashlib.new(algorithm, text.encode()).hexdigest()
    )


def _bytes(text: str) -> bytes | None:
    """The bytes that Base64 is, by either alphabet, with or without padding."""
    plain = text.translate(str.maketrans("-_", "+/"))
    if not _BASE64.fullmatch(plain):
        return None
    unpadded = plain.rstrip("=")
    return base64.b64decode(unpadded + "=" * (-len(unpadded) % 4))


def _bytes_sql(text: str) -> str:
    plain = f"regexp_replace(translate({text}, '-_', '+/'), {quoted(_NOT_BASE64)}, '!')"
    return f"try_to_binary(concat(rtrim('=', {plain}), repeat('=', pmod(-length(rtrim('=', {plain})), 4))), 'base64')"


def _utf8(encoded: bytes | None) -> str | None:
    try:
        return None if encoded is None else encoded.decode()
    except UnicodeDecodeError:
        return None


def _utf8_sql(encoded: str) -> str:
    return f"try_validate_utf8(cast({encoded} as string))"


def _unbase64(text: str) -> str | None:
    return _utf8(_bytes(text))


def _unbase64_sql(text: str) -> str:
    return _utf8_sql(_bytes_sql(text))


def _unhex(text: str) -> str | None:
    return _utf8(bytes.fromhex(text)) if _HEX.fullmatch(text) else None


def _unhex_sql(text: str) -> str:
    return f"if({text} rlike {quoted(_HEX_SQL)}, {_utf8_sql(f'unhex({text})')}, null)"


_HEX = re.compile("(?:[0-9A-Fa-f]{2})*")
_HEX_SQL = r"\A(?:[0-9A-Fa-f]{2})*+\z"


def _number_of_bytes(text: str) -> int | None:
    found = _bytes(text)
    return int.from_bytes(found, signed=True) if found and len(found) <= _MOST_BYTES else None


def _unscaled_sql(text: str) -> str:
    """SQL of the number as ``decimal(38,0)``: two halves of 64 bits, the first with the sign."""
    digits = f"hex({_bytes_sql(text)})"
    filled = f"lpad({digits}, {2 * _MOST_BYTES}, if({digits} >= '8', 'F', '0'))"
    first, last = (
        f"cast(conv(substring({filled}, {at}, 16), 16, {to}) as decimal(38,0))" for at, to in ((1, -10), (17, 10))
    )
    whole = f"try_add(try_multiply({first}, {_WORD}bd), {last})"
    return f"if(length({digits}) between 2 and {2 * _MOST_BYTES}, {whole}, null)"


def _int_of_bytes(text: str) -> int | None:
    number = _number_of_bytes(text)
    return None if number is None else in_range(number)


def _bind_decimal_of_bytes(scale: int) -> Implementation:
    if not 0 <= scale <= NUMBER_SCALE:
        raise RefusalError(f"decimal_of_bytes has no scale {scale}", f"a NUMBER has 0 to {NUMBER_SCALE} decimals")

    def python(text: str) -> Decimal | None:
        number = _number_of_bytes(text)
        # As many digits as a decimal of Spark has.
        if number is None or abs(number) >= 10**38:
            return None
        return rounded(Decimal(number).scaleb(-scale, EXACT))

    def sql(text: str) -> str:
        # As a text: the product of two decimals has too few digits behind the point.
        return f"try_cast(concat(cast({_unscaled_sql(text)} as string), 'e-{scale}') as {SQL_TYPES[Type.NUMBER]})"

    return Implementation(sql, python)


def _bind_conv(base: int, to: int) -> Implementation:
    least, most = 2, len(_DIGITS)
    if not (least <= base <= most and least <= to <= most):
        raise RefusalError(f"conv has no base {base if not least <= base <= most else to}", f"use {least} to {most}")
    # Of as many digits, every number fits in 64 bits.
    digits, count = _DIGITS[:base], max(n for n in range(1, 65) if base**n <= _WORD)
    known = rf"0*[{digits}{digits[10:].upper()}]{{1,{count}}}"
    matches, whole = re.compile(known).fullmatch, quoted(rf"\A{known}\z")

    def python(text: str) -> str | None:
        return _in_base(int(text, base), to) if matches(text) else None

    return Implementation(lambda text: f"if({text} rlike {whole}, conv({text}, {base}, {to}), null)", python)


def _in_base(number: int, base: int) -> str:
    written = ""
    while number:
        number, digit = divmod(number, base)
        written = _DIGITS[digit].upper() + written
    return written or "0"


def _url_decode(text: str) -> str | None:
    if _BAD_PERCENT.search(text):
        return None
    try:
        decoded = unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        return None
    return None if _REPLACEMENT in decoded else decoded


def _url_decode_sql(text: str) -> str:
    decoded = f"try_url_decode(regexp_replace({text}, {quoted(_BAD_PERCENT.pattern)}, '%zz'))"
    return f"if(contains({decoded}, {quoted(_REPLACEMENT)}), null, {decoded})"


def _bind_parameter(name: str) -> Implementation:
    if not name or _SEPARATES.search(name):
        raise RefusalError(f"{name!r} is no name of a parameter", "give it as in url_param($.url, 'user')")
    pattern = rf"[?&]{re.escape(name)}=([^&#\s]*)"
    search = re.compile(pattern, re.ASCII).search

    def python(text: str) -> str | None:
        found = search(f"&{text}")
        written = found[1] if found else ""
        decoded = _url_decode(written)
        return (written if decoded is None else decoded) or None

    def sql(text: str) -> str:
        written = f"regexp_extract(concat('&', {text}), {quoted(pattern)}, 1)"
        return f"nullif(coalesce({_url_decode_sql(written)}, {written}), '')"

    return Implementation(sql, python)


def _bind_json(path: str) -> Implementation:
    try:
        parsed = parse_path(path)
    except MappingError as error:
        raise RefusalError(f"in the path {path!r}: {error.reason}", error.remedy) from error
    if not parsed.steps:
        # Spark and Python judge what follows a number that stands alone differently.
        raise RefusalError("the path '$' of get_json_object names nothing", "name a step: '$.key' or '$[0]'")
    return Implementation(lambda text: value_sql(text, parsed), partial(_value_at, parsed))


def _value_at(path: Path, text: str) -> str | None:
    return json_value(text, path)


FUNCTIONS = (
    Function(
        "sha2",
        "sha2(text, bits)",
        "SHA-2 of the text as UTF-8, in hexadecimal. `bits` is 224, 256, 384 or 512; 0 is 256.",
        ("sha2('a', 256)", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
        (Overload((Parameter("text", _TEXT), Parameter("bits", Type.INTEGER, is_literal=True)), _TEXT, _bind_sha2),),
    ),
    Function(
        "sha1",
        "sha1(text)",
        "SHA-1, likewise.",
        ("sha1('a')", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        (overload("text TEXT", _TEXT, "sha1({})", lambda text: hashlib.sha1(text.encode()).hexdigest()),),  # noqa: S324
        aliases=("sha",),
    ),
    Function(
        "md5",
        "md5(text)",
        "MD5, likewise.",
        ("md5('a')", "0cc175b9c0f1b6a831c399e269772661"),
        (overload("text TEXT", _TEXT, "md5({})", lambda text: hashlib.md5(text.encode()).hexdigest()),),  # noqa: S324
    ),
    Function(
        "hex",
        "hex(text or integer)",
        "The bytes of a text as UTF-8, or an INTEGER, in hexadecimal.",
        ("hex('Spark')", "537061726B"),
        (
            overload("number INTEGER", _TEXT, "hex({})", lambda number: f"{number & (2**64 - 1):X}"),
            overload("text TEXT", _TEXT, "hex({})", lambda text: text.encode().hex().upper()),
        ),
    ),
    Function(
        "base64",
        "base64(text)",
        "The text as UTF-8 in Base64, without line ends.",
        ("base64('Spark')", "U3Bhcms="),
        (
            overload(
                "text TEXT",
                _TEXT,
                r"replace(base64(cast({} as binary)), '\r\n', '')",
                lambda text: base64.b64encode(text.encode()).decode(),
            ),
        ),
    ),
    Function(
        "unbase64",
        "unbase64(text)",
        "The text that was encoded, in the alphabet of URLs too, and with or without padding. What is no Base64, or "
        "decodes to no UTF-8, fails.",
        ("unbase64('U3Bhcms')", "Spark"),
        (overload("text TEXT", _TEXT, _unbase64_sql, _unbase64),),
        can_fail=True,
        is_sparks=False,
    ),
    Function(
        "unhex",
        "unhex(text)",
        "The text whose bytes are given in hexadecimal. What decodes to no UTF-8 fails.",
        ("unhex('537061726B')", "Spark"),
        (overload("text TEXT", _TEXT, _unhex_sql, _unhex),),
        can_fail=True,
        is_sparks=False,
    ),
    Function(
        "conv",
        "conv(text, base, base)",
        "The digits of a whole number in another base, 2 to 36, as of a hexadecimal id. It has 64 bits at most, and no "
        "sign.",
        ("conv('ff', 16, 10)", "255"),
        (Overload(parameters("text TEXT, =from INTEGER, =to INTEGER"), _TEXT, _bind_conv),),
        can_fail=True,
    ),
    Function(
        "int_of_bytes",
        "int_of_bytes(text)",
        "The INTEGER whose bytes are given in Base64, the most significant first, with a sign.",
        ("int_of_bytes('AQA=')", 256),
        (
            overload(
                "text TEXT", Type.INTEGER, lambda text: f"try_cast({_unscaled_sql(text)} as bigint)", _int_of_bytes
            ),
        ),
        can_fail=True,
        is_sparks=False,
    ),
    Function(
        "decimal_of_bytes",
        "decimal_of_bytes(text, scale)",
        "Likewise a NUMBER with that number of decimals: what Debezium and Avro make of a decimal.",
        ("decimal_of_bytes('MDk=', 2)", Decimal("123.45")),
        (Overload(parameters("text TEXT, =scale INTEGER"), Type.NUMBER, _bind_decimal_of_bytes),),
        can_fail=True,
        is_sparks=False,
    ),
    Function(
        "url_decode",
        "url_decode(text)",
        "`%20` and `+` decoded. What decodes to no UTF-8, or to U+FFFD, fails.",
        ("url_decode('a%20b%C3%A4')", "a bä"),
        (overload("text TEXT", _TEXT, _url_decode_sql, _url_decode),),
        can_fail=True,
    ),
    Function(
        "url_param",
        "url_param(text, 'name')",
        "The first parameter of that name in an address, the first line of a request, or a query string, decoded; what "
        "cannot be decoded stays as it is. Null if it is missing or empty.",
        ("url_param('GET /a?id=1&u=b%40c HTTP/1.1', 'u')", "b@c"),
        (Overload(parameters("text TEXT, =name TEXT"), _TEXT, _bind_parameter),),
        is_sparks=False,
    ),
    Function(
        "get_json_object",
        "get_json_object(text, '$.path')",
        "The value at a path of JSON that is in a text, as a path into the record gives it; null if it has none or "
        "the text is not JSON.",
        ("""get_json_object('{"a": [1, 2]}', '$.a[1]')""", "2"),
        (Overload((Parameter("text", _TEXT), Parameter("path", _TEXT, is_literal=True)), _TEXT, _bind_json),),
    ),
)
