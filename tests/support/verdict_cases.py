"""Records and the verdict due on each: one or more for every rule of the event contract and each side of its bounds.

``VERDICT_CASES`` holds (case id, the record's bytes, verdict). No two records are alike and none holds a line feed, so
the whole table can be one input file. The verdicts hold at any receipt from 2025 to 2098.
"""

from typing import Final

from spark_jobs.contract.events import DEFAULT_MAX_RECORD_BYTES, OPTIONAL_FIELDS, VERDICTS
from spark_jobs.contract.nobody import NOBODY

VerdictCase = tuple[str, bytes, str]

_IMPRESSION: Final = {
    "event_type": '"impression"',
    "event_id": '"e1"',
    "event_time": '"2024-05-01T12:00:00Z"',
    "user_id": '"u1"',
    "campaign_id": '"c1"',
    "ad_id": '"ad1"',
}
_CLICK: Final = {**_IMPRESSION, "event_type": '"click"', "impression_id": '"i1"'}
_ACTIVITY: Final = {**_IMPRESSION, "event_type": '"activity"'}
_CONVERSION: Final = {
    **_IMPRESSION,
    "event_type": '"conversion"',
    "conversion_type": '"purchase"',
    "value_micros": "25000000",
    "currency": '"EUR"',
}
for _fields in (_CLICK, _ACTIVITY, _CONVERSION):
    del _fields["campaign_id"], _fields["ad_id"]

_cases: list[VerdictCase] = []


def _case(case_id: str, record: bytes | str, verdict: str) -> None:
    assert verdict in VERDICTS
    _cases.append((case_id, record if isinstance(record, bytes) else record.encode(), verdict))


def _json(base: dict[str, str], **changes: str | None) -> str:
    """``base`` with ``changes``, values being JSON text; None takes the field out."""
    fields = {name: text for name, text in {**base, **changes}.items() if text is not None}
    return "{" + ", ".join(f'"{name}": {text}' for name, text in fields.items()) + "}"


def _imp(**changes: str | None) -> str:
    return _json(_IMPRESSION, **changes)


def _clk(**changes: str | None) -> str:
    return _json(_CLICK, **changes)


def _act(**changes: str | None) -> str:
    return _json(_ACTIVITY, **changes)


def _cnv(**changes: str | None) -> str:
    return _json(_CONVERSION, **changes)


def _padded_to(size: int) -> str:
    empty = _act(data='""')
    return _act(data='"' + "x" * (size - len(empty)) + '"')


def _nested(levels: int, **changes: str | None) -> str:
    """An activity whose ignored field makes the whole record ``levels`` deep."""
    return _act(deep="[" * (levels - 1) + "]" * (levels - 1), **changes)


def _good_records() -> None:
    _case("impression", _imp(), "ok")
    _case("click", _clk(), "ok")
    _case("activity", _act(), "ok")
    _case("conversion", _cnv(), "ok")
    _case("all fields of a conversion", _cnv(is_last="true", order_id='"o1"', revokes='"e0"'), "ok")
    _case("all fields of an impression", _imp(is_last="true", cost_micros="1500"), "ok")
    _case("no spaces at all", _act().replace(" ", ""), "ok")
    _case("spaces and tabs around", f" \t{_act()} \t", "ok")
    _case("trailing carriage return", f"{_act()}\r", "ok")
    _case("carriage returns between tokens", _act().replace(", ", ",\r"), "ok")
    _case("byte order mark", b"\xef\xbb\xbf" + _act().encode(), "ok")
    _case("unknown fields", _act(extra='{"a": [1, 2.5e-3, null, "x"]}', other="-0.0"), "ok")
    _case("unknown number too large for a double", _act(extra="1e400"), "ok")
    _case("unknown integer of 900 digits", _act(extra="7" * 900), "ok")
    _case("empty key", _act(**{"": "1"}), "ok")
    _case("escaped field name", _act().replace("event_id", r"\u0065vent_id"), "ok")
    _case("names differ in case from known ones", _act(EVENT_ID='"other"', Event_Time="7", Data="[]"), "ok")
    _case("repeated key below the root", _act(extra='{"a": 1, "a": 2}'), "ok")
    _case("known name below the root", _act(extra='{"event_id": null, "event_time": 5}'), "ok")
    _case("line separators inside a string", _act(data='"a\u2028b\u2029c\u0085d\u00a0e"'), "ok")
    _case("delete character inside a string", _act(data='"\x7f"'), "ok")
    _case("text beyond ASCII", _act(user_id='"Zoë 李 \U0001f600"'), "ok")
    _case("escaped surrogate pair", _act(user_id=r'"\ud83d\ude00"'), "ok")
    _case("escaped backslash before u", _act(data=r'"\\ud800"'), "ok")
    _case("all short escapes", _act(data=r'"\"\\\/\b\f\n\r\t"'), "ok")
    _case("as deep as allowed", _nested(1000), "ok")
    _case("brackets in a string are not depth", _act(data='"' + "[" * 3000 + '"'), "ok")
    _case("as large as allowed", _padded_to(DEFAULT_MAX_RECORD_BYTES), "ok")


def _records_that_are_no_object() -> None:
    _case("one byte too large", _padded_to(DEFAULT_MAX_RECORD_BYTES + 1), "record_too_large")
    _case("ten megabytes", _padded_to(10 * 1024 * 1024), "record_too_large")
    _case("two megabytes that are not JSON", b"z" * 2 * 1024 * 1024, "record_too_large")
    _case("too large and not UTF-8", b"\xff" * (DEFAULT_MAX_RECORD_BYTES + 1), "record_too_large")
    _case("too large only in bytes", '"' + "é" * (DEFAULT_MAX_RECORD_BYTES // 2) + '"', "record_too_large")
    _case("invalid byte", _act(data='"?"').encode().replace(b"?", b"\xff"), "invalid_utf8")
    _case("Latin-1 text", _act(user_id='"Zoë"').encode("latin-1"), "invalid_utf8")
    _case("cut inside a character", _act(data='"é"').encode().split(b"\xa9")[0], "invalid_utf8")
    _case("overlong encoding", _act(data='"?"').encode().replace(b"?", b"\xc0\xaf"), "invalid_utf8")
    _case("encoded surrogate", _act(data='"?"').encode().replace(b"?", b"\xed\xa0\x80"), "invalid_utf8")
    _case("beyond the last code point", _act(data='"?"').encode().replace(b"?", b"\xf4\x90\x80\x80"), "invalid_utf8")
    _case("UTF-16", _act(data='"sixteen"').encode("utf-16"), "invalid_utf8")
    _case("invalid byte in an array", b"[\xfe]", "invalid_utf8")
    _case("escaped high surrogate alone", _act(data=r'"\ud800"'), "invalid_utf8")
    _case("escaped low surrogate alone", _act(data=r'"\udc00"'), "invalid_utf8")
    _case("escaped surrogates the wrong way round", _act(data=r'"\ude00\ud83d"'), "invalid_utf8")
    _case("escaped surrogates apart", _act(data=r'"\ud83d \ude00"'), "invalid_utf8")
    _case("escaped high surrogate twice", _act(data=r'"\uD83D\ud83d\ude00"'), "invalid_utf8")
    _case("escaped surrogate in an unknown field", _act(extra=r'{"k": ["\uDFFF"]}'), "invalid_utf8")
    _case("escaped surrogate in a key", _act(**{r"k\ud800": "1"}), "invalid_utf8")
    for root in ("[]", "[{}]", f"[{_act()}]", '"text"', '""', "17", "-1.5e3", "true", "false", "null"):
        _case(f"root {root[:12]}", root, "not_an_object")
    _case("a key twice", _act()[:-1] + ', "user_id": "u2"}', "duplicate_key")
    _case("a key twice, same value", _act()[:-1] + ', "user_id": "u1"}', "duplicate_key")
    _case("a key twice, first null", '{"event_type": null, ' + _act()[1:], "duplicate_key")
    _case("a key twice, once escaped", _act()[:-1] + r', "user\u005fid": "u1"}', "duplicate_key")
    _case("a key twice, and white space before its colon", _act()[:-1] + ', "user_id" \t: "u1"}', "duplicate_key")
    time = r'"2024-05-01T12\u003a00:00Z"'
    _case("a key twice, and an escape for a colon", _act(event_time=time)[:-1] + ', "user_id": "u1"}', "duplicate_key")
    _case("a key twice, with colons", _act()[:-1] + ', "data": "a:b", "data": ""}', "duplicate_key")
    _case("a key twice, and a null", '{"cost_micros": null, ' + _act()[1:-1] + ', "user_id": "u1"}', "duplicate_key")
    _case("an escape for a colon", _act(event_time=time), "ok")
    _case("colons in all texts", _act(event_id='"a:b"', user_id='":"', data='"::"'), "ok")
    _case("an unknown key twice", _act(extra="1")[:-1] + ', "extra": 2}', "duplicate_key")
    _case("the empty key twice", '{"": 1, "": 1}', "duplicate_key")
    _case("a key twice and a field missing", '{"a": 1, "a": 2}', "duplicate_key")


def _malformed_records() -> None:
    whole = _imp()
    for end in (1, 2, 15, 30, len(whole) // 2, len(whole) - 1):
        _case(f"truncated after {end} characters", whole[:end], "malformed_json")
    for name, text in {
        "plain words": "not json",
        "a closing brace": "}",
        "two objects": _act() + _act(),
        "two objects with a carriage return between": f"{_act()}\r{_act()}",
        "a comma behind": _act() + ",",
        "two objects with a comma between": f"{_act()},{_act()}",
        "numbers behind": _act() + ",1,2",
        "a closing bracket behind": _act() + "]",
        "a number and a closing bracket behind": _act() + ",1]",
        "an array closed and another begun": _act() + ",1],[" + _act(),
        "a NUL behind": _act() + "\0",
        "a no-break space behind": _act() + "\u00a0",
        "a form feed before": "\f" + _act(),
        "only a vertical tab": "\v",
        "a byte order mark behind": _act() + "\ufeff",
        "trailing comma": _act()[:-1] + ",}",
        "trailing comma in an array": _act(extra="[1,]"),
        "no comma": '{"event_type": "activity" "event_id": "e1"}',
        "no colon": '{"event_type" "activity"}',
        "single quotes": _act().replace('"', "'"),
        "bare key": _act()[:-1] + ", extra: 1}",
        "a number as key": _act()[:-1] + ", 1: 1}",
        "a comment": _act()[:-1] + "/* why */}",
        "a line comment": _act() + " // why",
        "raw tab in a string": _act(data='"a\tb"'),
        "raw carriage return in a string": _act(data='"a\rb"'),
        "raw NUL in a string": _act(data='"a\0b"'),
        "raw control character in a string": _act(data='"a\x1fb"'),
        "raw control character in a key": _act(**{"a\x01b": "1"}),
        "unknown escape": _act(data=r'"\x41"'),
        "escaped single quote": _act(data=r'"\'"'),
        "short unicode escape": _act(data=r'"\u12"'),
        "unicode escape with a sign": _act(data=r'"\u+123"'),
        "unterminated string": _act(data='"abc'),
        "five thousand levels": _nested(5000),
        "one level too deep": _nested(1001),
        "one level too deep, objects": _act(deep='{"a":' * 1000 + "1" + "}" * 1000),
        "a hundred thousand open brackets": "[" * 100_000,
        "mismatched brackets": _act(extra="[1}"),
    }.items():
        _case(name, text, "malformed_json")
    literals = ("NaN", "Infinity", "-Infinity", "nan", "True", "None", "undefined", "tru", "")
    numbers = ("01", "-01", "+1", ".5", "1.", "-", "1e", "1e+", "0x1F", "1_000", "\u0661", "--1", "1.e5")
    for value in (*literals, *numbers):
        _case(f"value {value or 'absent'}", _imp(cost_micros=value), "malformed_json")


def _ids() -> None:
    good = {
        "one character": '"a"',
        "a space": '" "',
        "128 characters": '"' + "x" * 128 + '"',
        "128 characters beyond the basic plane": '"' + "\U0001f600" * 128 + '"',
        "128 escaped characters": '"' + r"\ud83d\ude01" * 128 + '"',
        "integer": "42",
        "negative integer": "-42",
        "minus zero": "-0",
        "integer beyond 64 bits": "123456789012345678901234567890",
        "integer of 128 digits": "9" * 128,
        "infinity in quotes": r'"\"Infinity\""',
    }
    bad = {
        "empty": '""',
        "129 characters": '"' + "x" * 129 + '"',
        "129 characters beyond the basic plane": '"' + "\U0001f600" * 129 + '"',
        "very long": '"' + "x" * 100_000 + '"',
        "integer of 129 digits": "9" * 129,
        "NUL": r'"a\u0000b"',
        "true": "true",
        "fraction": "1.5",
        "whole fraction": "1.0",
        "exponent": "1e3",
        "exponent beyond a double": "1e400",
        "fraction beyond a double": "-" + "9" * 400 + ".5",
        "object": '{"id": "e1"}',
        "array": '["e1"]',
        "empty array": "[]",
    }
    for field, build in (
        ("event_id", _act),
        ("user_id", _act),
        ("campaign_id", _imp),
        ("ad_id", _imp),
        ("impression_id", _clk),
        ("conversion_type", _cnv),
        ("order_id", _cnv),
        ("revokes", _cnv),
    ):
        lacking = "ok" if field in OPTIONAL_FIELDS else f"missing_{field}"
        _case(f"{field} absent", build(**{field: None}, other=f'"{field}"'), lacking)
        _case(f"{field} null", build(**{field: "null"}), lacking)
        for name, text in good.items():
            _case(f"{field} {name}", build(**{field: text}), "ok")
        for name, text in bad.items():
            _case(f"{field} {name}", build(**{field: text}), f"invalid_{field}")


def _ids_of_nobody() -> None:
    for text in NOBODY:
        _case(f"user_id {text} means nobody", _clk(user_id=f'"{text}"'), "ok")
    for text in ("NULL", "Unknown", "(NOT SET)", "N/A"):
        _case(f"user_id {text} means nobody", _act(user_id=f'"{text}"'), "ok")
    for text in ("null ", "unknown2", "--", "00000000-0000-0000-0000-000000000001", "un\u212anown"):
        _case(f"user_id {text} means somebody", _act(user_id=f'"{text}"'), "ok")
    _case("user_id zero means nobody", _act(user_id="0"), "ok")
    for field, build in (("event_id", _act), ("campaign_id", _imp), ("impression_id", _clk), ("order_id", _cnv)):
        _case(f"{field} of nobody", build(**{field: '"unknown"'}), "ok")


def _times() -> None:
    good = (
        "2024-05-01T12:00:00.1Z",
        "2024-05-01T12:00:00.123456Z",
        "2024-05-01T12:00:00.1234567Z",
        "2024-05-01T12:00:00.999999999+01:00",
        "2024-05-01T12:00:00.000000000Z",
        "2024-05-01t12:00:00z",
        "2024-05-01T12:00:00+00:00",
        "2024-05-01T12:00:00-00:00",
        "2024-05-01T12:00:00.5+05:45",
        "2024-05-01T12:00:00+18:00",
        "2024-05-01T12:00:00-18:00",
        "2024-05-01T12:00:00-17:59",
        "2024-02-29T00:00:00Z",
        "2000-02-29T23:59:59.999999Z",
        "2000-01-01T00:00:00Z",
        "1999-12-31T23:00:00-01:00",
    )
    too_old = (
        "1970-01-01T00:00:00.000001Z",
        "1970-01-01T00:00:01Z",
        "1969-12-31T23:30:00-01:00",
        "1980-01-06T00:00:00Z",
        "1999-12-31T23:59:59.999999Z",
        "2000-01-01T00:00:00+00:01",
    )
    bad = (
        "",
        "yesterday",
        "2024-05-01",
        "12:00:00Z",
        "2024-05-01T12:00:00",
        "2024-05-01T12:00Z",
        "2024-05-01 12:00:00Z",
        "2024-05-01T12:00:00 Z",
        " 2024-05-01T12:00:00Z",
        "2024-05-01T12:00:00Z ",
        "2024-05-01T12:00:00Z\\n",
        "2024-05-01T12:00:00.Z",
        "2024-05-01T12:00:00.1234567890Z",
        "2024-05-01T12:00:00,5Z",
        "2024-5-1T12:00:00Z",
        "2024-05-01T9:00:00Z",
        "20240501T120000Z",
        "2024-W18-3T12:00:00Z",
        "2024-00-01T12:00:00Z",
        "2024-13-01T12:00:00Z",
        "2024-05-00T12:00:00Z",
        "2024-04-31T12:00:00Z",
        "2023-02-29T12:00:00Z",
        "1900-02-29T12:00:00Z",
        "2024-05-01T24:00:00Z",
        "2024-05-01T12:60:00Z",
        "2024-05-01T12:00:60Z",
        "2016-12-31T23:59:60Z",
        "2024-05-01T12:00:00+0100",
        "2024-05-01T12:00:00+01",
        "2024-05-01T12:00:00+1:00",
        "2024-05-01T12:00:00+00:60",
        "2024-05-01T12:00:00+18:01",
        "2024-05-01T12:00:00-18:01",
        "2024-05-01T12:00:00+19:00",
        "2024-05-01T12:00:00UTC",
        "2024-05-01T12:00:00[UTC]",
        "2024-05-01T12:00:00+01:00[Europe/Paris]",
        "\uff12\uff10\uff12\uff14-05-01T12:00:00Z",
        "1970-01-01T00:00:00Z",
        "1970-01-01T01:00:00+01:00",
        "1970-01-01T00:59:59+01:00",
        "1969-12-31T23:59:59.999999Z",
        "0001-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "-2024-05-01T12:00:00Z",
        "+2024-05-01T12:00:00Z",
        "12024-05-01T12:00:00Z",
        "99999-01-01T00:00:00Z",
        "1714564800",
        "-1",
        "now",
    )
    for text in good:
        _case(f"time {text}", _act(event_time=f'"{text}"'), "ok")
    for text in too_old:
        _case(f"time {text}", _act(event_time=f'"{text}"'), "event_time_too_old")
    for text in bad:
        _case(f"time '{text}'", _act(event_time=f'"{text}"'), "invalid_event_time")
    for value in ("1714564800", "1714564800000", "1714564800.5", "-1", "0", "1e9", "true", "[]", "{}"):
        _case(f"time as {value}", _act(event_time=value), "invalid_event_time")
    for text in ("2099-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2100-02-28T00:00:00-05:00"):
        _case(f"time {text}", _act(event_time=f'"{text}"'), "event_time_in_future")
    _case("time absent", _act(event_time=None), "missing_event_time")
    _case("time null", _act(event_time="null"), "missing_event_time")


def _other_fields() -> None:
    _case("an empty object", "{}", "missing_event_type")
    _case("type absent", _act(event_type=None), "missing_event_type")
    _case("type null", _act(event_type="null"), "missing_event_type")
    _case("type only under another case", _act(event_type=None, Event_Type='"activity"'), "missing_event_type")
    for value in ('""', '"heartbeat"', '"Click"', '" click"', '"click "', '"view"', "1", "true", '["click"]', "{}"):
        _case(f"type {value}", _clk(event_type=value), "invalid_event_type")
    for value in ("true", "false", "null"):
        _case(f"is_last {value}", _act(is_last=value), "ok")
    for value in ('"true"', '""', "1", "0", "[]", "{}", "1.0"):
        _case(f"is_last {value}", _act(is_last=value), "invalid_is_last")
    for value in ("0", "1", "null", "1000000000000"):
        _case(f"cost {value}", _imp(cost_micros=value), "ok")
    too_large = ("1000000000001", "9223372036854775807", "9223372036854775808", "9999999999999999999", "1" + "0" * 300)
    for value in (*too_large, "-1", "-9223372036854775808", "1.5", "5.0", "1e3", "1E0", '"100"', "true", "[]", "{}"):
        _case(f"cost {value[:24]}", _imp(cost_micros=value), "invalid_cost_micros")
    for value in ('""', '"text"', r'"a\u0000b"', "17", "-0", "9" * 200, "null", '"' + "d" * 5000 + '"'):
        _case(f"data {value[:24]}", _act(data=value), "ok")
    for value in ("true", "1.5", "1e3", "1e400", "-1e400", "[]", '{"a": 1}'):
        _case(f"data {value}", _act(data=value), "invalid_data")
    _case("data as deep as allowed", _act(data="[" * 999 + "]" * 999), "invalid_data")
    _case("another type's fields are ignored, impression", _imp(impression_id="[]", data="1.5"), "ok")
    _case("another type's fields are ignored, click", _clk(cost_micros="-1", campaign_id='""', data="{}"), "ok")
    _case("another type's fields are ignored, activity", _act(cost_micros='"x"', ad_id="1.5", impression_id="[]"), "ok")


def _conversions() -> None:
    for value in ("0", "1", "1000000000000000", "-0"):
        _case(f"value {value}", _cnv(value_micros=value), "ok")
    too_large = ("1000000000000001", "9223372036854775807", "9223372036854775808", "1" + "0" * 300)
    for value in (*too_large, "-1", "1.5", "5.0", "1e3", '"100"', "true", "[]", "{}"):
        _case(f"value {value[:24]}", _cnv(value_micros=value), "invalid_value_micros")
    _case("no value at all", _cnv(value_micros=None), "missing_value_micros")
    _case("value null", _cnv(value_micros="null"), "missing_value_micros")
    for code in ("USD", "JPY", "XXX", "ZZZ"):
        _case(f"currency {code}", _cnv(currency=f'"{code}"'), "ok")
    for code in (
        '"eur"',
        '"EU"',
        '"EURO"',
        '"EUR "',
        '"E1R"',
        '"ÉUR"',
        r'"EUR\n"',
        '""',
        "978",
        "true",
        "[]",
        "{}",
        '["EUR"]',
    ):
        _case(f"currency {code}", _cnv(currency=code), "invalid_currency")
        _case(f"currency {code} of nothing", _cnv(currency=code, value_micros="0"), "invalid_currency")
    _case("currency absent", _cnv(currency=None), "missing_currency")
    _case("currency null", _cnv(currency="null"), "missing_currency")
    _case("currency absent, smallest value", _cnv(currency=None, value_micros="1"), "missing_currency")
    _case("currency absent, no value", _cnv(currency=None, value_micros="0"), "ok")
    _case("currency null, no value", _cnv(currency="null", value_micros="0"), "ok")
    _case("revokes itself", _cnv(revokes='"e1"'), "invalid_revokes")
    _case("revokes itself, by number", _cnv(event_id='"17"', revokes="17"), "invalid_revokes")
    _case("another type's fields are ignored, conversion", _cnv(cost_micros="-1", ad_id="[]", data="1.5"), "ok")
    own = {"conversion_type": "[]", "value_micros": "-2", "currency": "7", "order_id": "[]", "revokes": '{"of": 1}'}
    for position, name in enumerate(own):
        rest = {later: own[later] for later in list(own)[position:]}
        _case(f"first of many: {name}", _cnv(**rest), f"invalid_{name}")
    _case("value before currency", _cnv(value_micros='"x"', currency=None), "invalid_value_micros")
    for build, of in ((_imp, "impression"), (_clk, "click"), (_act, "activity")):
        _case(f"a conversion's fields are ignored, {of}", build(**own), "ok")


def _devices() -> None:
    for field, most, build in (("ip", 64, _imp), ("user_agent", 1024, _clk)):
        good = {
            "null": "null",
            "one character": '"a"',
            "a space": '" "',
            "IPv4": '"192.0.2.17"',
            "IPv6": '"2001:db8::17"',
            "with a NUL": r'"a\u0000b"',
            "like a fraction": '"1.5"',
            "like an exponent": '"1e3"',
            "like true": '"true"',
            "like an object": '"{}"',
            "like an array": '"[1]"',
            "integer": "3221225985",
            "minus zero": "-0",
            "as long as allowed": '"' + "x" * most + '"',
            "as long as allowed beyond the basic plane": '"' + "\U0001f600" * most + '"',
            "empty": '""',
            "too long": '"' + "x" * (most + 1) + '"',
            "too long beyond the basic plane": '"' + "\U0001f600" * (most + 1) + '"',
        }
        bad = {
            "true": "true",
            "false": "false",
            "fraction": "192.5",
            "whole fraction": "1.0",
            "exponent": "1e3",
            "exponent with a sign": "1.5E-7",
            "exponent beyond a double": "-1E400",
            "object": '{"v4": "192.0.2.17"}',
            "array": '["192.0.2.17"]',
            "empty array": "[]",
        }
        for name, text in good.items():
            _case(f"{field} {name}", build(**{field: text}), "ok")
        for name, text in bad.items():
            _case(f"{field} {name}", build(**{field: text}), f"invalid_{field}")
        for event_type, other in (("impression", _imp), ("click", _clk), ("activity", _act), ("conversion", _cnv)):
            _case(f"{field} of {event_type}", other(**{field: '"of each type"'}), "ok")
            _case(f"{field} of {event_type}, wrong", other(**{field: '{"of": "each type"}'}), f"invalid_{field}")
    _case("ip integer as long as allowed", _imp(ip="9" * 64), "ok")
    _case("ip integer too long", _imp(ip="9" * 65), "ok")


def _the_first_rule_broken_names_the_verdict() -> None:
    in_future = '"2099-01-01T00:00:00Z"'
    wrong = {"event_type": "7", "event_id": "[]", "event_time": "7", "user_id": "[]", "is_last": "7"}
    wrong |= {"ip": "[]", "user_agent": "{}"}
    own = {"campaign_id": "[]", "ad_id": "[]", "cost_micros": "-2"}
    names = list(wrong | own)
    for position, name in enumerate(names):
        rest = {later: (wrong | own)[later] for later in names[position:]}
        _case(f"first of many: {name}", _imp(**rest), f"invalid_{name}")
    _case("future before user", _imp(event_time=in_future, user_id=None), "event_time_in_future")
    _case("id before future", _imp(event_time=in_future, event_id=None), "missing_event_id")
    _case("type's own fields last", _clk(is_last="7", impression_id=None), "invalid_is_last")
    _case("missing after invalid", _imp(campaign_id="[]", ad_id=None), "invalid_campaign_id")


_good_records()
_records_that_are_no_object()
_malformed_records()
_ids()
_ids_of_nobody()
_times()
_other_fields()
_conversions()
_devices()
_the_first_rule_broken_names_the_verdict()

VERDICT_CASES: Final[tuple[VerdictCase, ...]] = tuple(_cases)
