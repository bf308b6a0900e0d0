"""Encodings, hashes, and JSON within a text."""

import base64
import binascii
import hashlib
import re
from functools import partial
from urllib.parse import unquote_plus

from spark_jobs.mapping.declare import Function, Implementation, Overload, Parameter, overload
from spark_jobs.mapping.errors import MappingError, RefusalError
from spark_jobs.mapping.paths import Path, parse_path
from spark_jobs.mapping.record import array_length, json_value
from spark_jobs.mapping.schema import value_sql
from spark_jobs.mapping.sqltext import quoted
from spark_jobs.mapping.types import Type

_TEXT = Type.TEXT
_REPLACEMENT = "\ufffd"
"""The character that decoders put where bytes are no UTF-8."""
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
# Spark's own check is laxer. "!" in front makes it fail; the possessive group keeps Java from recursing.
_NOT_BASE64 = r"\A(?!(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\z)"
_BAD_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_SHA2 = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def _bind_sha2(bits: int) -> Implementation:
    if bits not in _SHA2:
        raise RefusalError(f"sha2 has no {bits} bits", f"use one of {', '.join(map(str, _SHA2))}")
    algorithm = _SHA2[bits]
    return Implementation(
        lambda text: f"sha2({text}, {bits})", lambda text: hashlib.new(algorithm, text.encode()).hexdigest()
    )


def _unbase64(text: str) -> str | None:
    if not _BASE64.fullmatch(text):
        return None
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _unbase64_sql(text: str) -> str:
    checked = f"regexp_replace({text}, {quoted(_NOT_BASE64)}, '!')"
    return f"try_validate_utf8(cast(try_to_binary({checked}, 'base64') as string))"


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


def _array_length_sql(text: str) -> str:
    return f"cast(array_size(try_variant_get(try_parse_json({text}), '$', 'array<variant>')) as bigint)"


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
        "The text that was encoded. What is no Base64 with its padding, or decodes to no UTF-8, fails.",
        ("unbase64('U3Bhcms=')", "Spark"),
        (overload("text TEXT", _TEXT, _unbase64_sql, _unbase64),),
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
        "get_json_object",
        "get_json_object(text, '$.path')",
        "The value at a path of JSON that is in a text, as a path into the record gives it; null if it has none or "
        "the text is not JSON.",
        ("""get_json_object('{"a": [1, 2]}', '$.a[1]')""", "2"),
        (Overload((Parameter("text", _TEXT), Parameter("path", _TEXT, is_literal=True)), _TEXT, _bind_json),),
    ),
    Function(
        "json_array_length",
        "json_array_length(text)",
        "How many elements the JSON array in a text has; null if it is none.",
        ("json_array_length('[1, 2]')", 2),
        (overload("text TEXT", Type.INTEGER, _array_length_sql, array_length),),
    ),
)
