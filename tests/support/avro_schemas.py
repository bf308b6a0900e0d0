"""Random Avro schemas, and for each random values as fastavro writes them and as JSON must show them."""

import base64
import io
import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]
_SCALARS: list[Any] = [
    "null",
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "string",
    "bytes",
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 4},
]


def encoded(schema: Any, value: Any) -> bytes:
    """``value`` as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


@st.composite
def schemas(draw: Draw, depth: int = 3) -> Any:
    """Schemas with records, enums, arrays, maps, unions and logical types in one another."""
    return _schema(draw, depth, [0])


def _schema(draw: Draw, depth: int, made: list[int], *, in_union: bool = False) -> Any:  # noqa: PLR0911 one for each kind
    kinds = ["scalar", "scalar", "enum", "fixed"]
    if depth:
        kinds += ["array", "map", "record"] + ([] if in_union else ["union"])
    kind = draw(st.sampled_from(kinds))
    made[0] += 1
    name = f"T{made[0]}"
    if kind == "scalar":
        return draw(st.sampled_from(_SCALARS))
    if kind == "enum":
        return {"type": "enum", "name": name, "symbols": ["A", "B", "C"]}
    if kind == "fixed":
        return {"type": "fixed", "name": name, "size": draw(st.integers(0, 5))}
    if kind == "array":
        return {"type": "array", "items": _schema(draw, depth - 1, made)}
    if kind == "map":
        return {"type": "map", "values": _schema(draw, depth - 1, made)}
    if kind == "union":
        # fastavro cannot be told which of two branches with the same type is meant.
        other = _schema(draw, depth - 1, made, in_union=True)
        return ["null", *([] if other == "null" else [other])]
    count = draw(st.integers(0, 4))
    fields = [{"name": f"f{number}", "type": _schema(draw, depth - 1, made)} for number in range(count)]
    return {"type": "record", "name": name, "fields": fields}


def value_of(draw: Draw, schema: Any) -> tuple[Any, Any]:
    """A value as it is given to fastavro, and what ``json.loads`` must give for its text."""
    if isinstance(schema, list):
        branch = draw(st.sampled_from(schema))
        return (None, None) if branch == "null" else value_of(draw, branch)
    kind = schema if isinstance(schema, str) else schema.get("logicalType", schema["type"])
    if kind in ("array", "map"):
        inner = schema["items" if kind == "array" else "values"]
        pairs = [value_of(draw, inner) for _ in range(draw(st.integers(0, 3)))]
        if kind == "array":
            return [written for written, _ in pairs], [shown for _, shown in pairs]
        keys = draw(st.lists(st.text(max_size=5), min_size=len(pairs), max_size=len(pairs), unique=True))
        both = list(zip(keys, pairs, strict=True))
        return {key: pair[0] for key, pair in both}, {key: pair[1] for key, pair in both}
    if kind == "record":
        both = [(field["name"], value_of(draw, field["type"])) for field in schema["fields"]]
        return {key: pair[0] for key, pair in both}, {key: pair[1] for key, pair in both}
    return _scalar(draw, kind, schema)


def _scalar(draw: Draw, kind: str, schema: Any) -> tuple[Any, Any]:
    if kind == "fixed":
        value = draw(st.binary(min_size=schema["size"], max_size=schema["size"]))
        return value, base64.b64encode(value).decode()
    strategy, shown = _VALUES[kind]
    value = draw(strategy)
    return value, shown(value)


def _float(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _instant(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


_TIMES = st.datetimes(datetime(1800, 1, 1), datetime(2999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
_VALUES: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], Any]]] = {
    "null": (st.none(), lambda value: value),
    "boolean": (st.booleans(), lambda value: value),
    "int": (st.integers(-(2**31), 2**31 - 1), lambda value: value),
    "long": (st.integers(-(2**63), 2**63 - 1), lambda value: value),
    "float": (st.floats(width=32), _float),
    "double": (st.floats(), _float),
    "string": (st.text(max_size=80), lambda value: value),
    "bytes": (st.binary(max_size=80), lambda value: base64.b64encode(value).decode()),
    "enum": (st.sampled_from("ABC"), lambda value: value),
    "date": (st.dates(date(1, 1, 1), date(9999, 12, 31)), date.isoformat),
    "time-micros": (st.times(), lambda value: value.isoformat()),
    "timestamp-millis": (_TIMES.map(lambda time: time - timedelta(microseconds=time.microsecond % 1000)), _instant),
    "timestamp-micros": (_TIMES, _instant),
    "uuid": (st.uuids(), str),
    "decimal": (
        st.integers(-(10**12) + 1, 10**12 - 1).map(lambda unscaled: Decimal(unscaled).scaleb(-4)),
        lambda value: f"{value:.4f}",
    ),
}


def canonical(value: Any) -> str:
    """A JSON value as text, so that 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)
