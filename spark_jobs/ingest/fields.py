"""The fields of an event as a source gives them, before the rules of the contract."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from string import ascii_lowercase, ascii_uppercase

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.contract.events import CASELESS_IDS
from spark_jobs.ingest import parse

SOURCE_NAME = "source_name"
"""The column that names the source of a record in the settings."""

# RFC 3339; what is finer than a microsecond is cut off. \z, not $, which allows a line end after it.
_RFC_3339 = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})\z"
)


@dataclass(frozen=True)
class Given:
    """The value of a record at one place: ``label`` names the place, ``text`` is null if there is nothing."""

    label: str
    text: Column


Reason = Given | Column
"""Why a field is not as it should be: what the record has at the one place that it is read from, or any text."""


@dataclass(frozen=True)
class Field:
    """A field of an event, by columns.

    ``value`` has the type that the contract gives it, and is null if missing. ``is_missing``: the record does
    not give it. ``is_wrong``: the record gives something that is no value of its type; it may be null for false.
    ``reason`` says for people what the record gives.
    """

    value: Column
    is_missing: Column
    is_wrong: Column
    reason: Reason


def own_fields() -> dict[str, Field]:
    """The fields of records in adloom's own format, from the columns of :func:`spark_jobs.ingest.parse.parse`."""
    fields = {name: _own(name, is_wrong=~parse.is_text(name)) for name in parse.TEXT_FIELDS}
    for name, kind in parse.OTHER_TYPES.items():
        # A value of another type is null in the one and there in the other.
        text = F.coalesce(F.col(f"json.{name}").cast("string"), F.col(f"any_type.{name}").try_cast("string"))
        is_wrong = _is_of_other_type(name, kind)
        own = _own(name, is_wrong=is_wrong, text=text)
        fields[name] = replace(own, is_missing=own.is_missing & ~is_wrong)
    time = F.col("time")
    return fields | {"event_time": _own("event_time", value=time, is_wrong=time.isNull())}


def own_time() -> Column:
    """``event_time`` of a record in adloom's own format as a timestamp; null if it is none."""
    text = F.col("json.event_time")
    # RFC 3339 allows both cases, Spark only one. Not upper(): it loads Unicode tables, which takes seconds.
    upper = F.when(text.rlike("[tz]"), F.translate(text, "tz", "TZ")).otherwise(text)
    return F.when(text.rlike(_RFC_3339), upper.try_cast("timestamp"))


def _own(name: str, *, is_wrong: Column, value: Column | None = None, text: Column | None = None) -> Field:
    given = F.col(f"json.{name}")
    shown = Given(f"$.{name}", given if text is None else text)
    return Field(given if value is None else value, given.isNull(), is_wrong, shown)


def as_text(reason: Reason) -> Column:
    """``reason`` as a text."""
    return quoted(F.lit(reason.label), reason.text.cast("string")) if isinstance(reason, Given) else reason


def quoted(label: Column, text: Column) -> Column:
    """``label`` and what is there, as text for people: ``$.ts is "abc"``."""
    more = F.when(F.char_length(text) > _SHOWN, F.lit("…")).otherwise(F.lit(""))
    shown = F.concat(F.lit(' is "'), F.substring(text, 1, _SHOWN), more, F.lit('"'))
    return F.concat(label, F.when(text.isNull(), F.lit(" is missing")).otherwise(shown))


_SHOWN = 200
"""How much of a value a reason shows, in characters."""


def by_source(
    fields: Mapping[str, Mapping[str, Field]], types: Mapping[str, str], *, is_sure: bool
) -> dict[str, Field]:
    """The fields of records of several sources: those of the source that the record belongs to.

    Args:
        fields: by name of the source, its fields; one that it does not give is missing.
        types: by field, its SQL type.
        is_sure: there is one source, and every record belongs to it.
    """
    if is_sure:
        (only,) = fields.values()
        return {name: only.get(name, absent(sql_type)) for name, sql_type in types.items()}
    return {
        name: Field(*(_chosen(fields, name, sql_type, part) for part in (_value, _is_missing, _is_wrong, _reason)))
        for name, sql_type in types.items()
    }


def with_lower_ids(fields: Mapping[str, Field]) -> dict[str, Field]:
    """``fields`` with small ASCII letters in the ids of events and users; of others, Java and Python disagree."""
    return {
        name: replace(one, value=F.translate(one.value, ascii_uppercase, ascii_lowercase))
        if name in CASELESS_IDS
        else one
        for name, one in fields.items()
    }


def absent(sql_type: str) -> Field:
    """A field that a source never gives."""
    return Field(
        F.lit(None).cast(sql_type), F.lit(True), F.lit(False), F.lit("the mapping of the source does not give it")
    )


def _chosen(
    fields: Mapping[str, Mapping[str, Field]], name: str, sql_type: str, part: Callable[[Field], Column]
) -> Column:
    chosen: Column | None = None
    for source, own in fields.items():
        is_it, value = F.col(SOURCE_NAME) == source, part(own.get(name, absent(sql_type)))
        chosen = F.when(is_it, value) if chosen is None else chosen.when(is_it, value)
    assert chosen is not None, "there is a source"  # noqa: S101
    return chosen


def _value(field: Field) -> Column:
    return field.value


def _is_missing(field: Field) -> Column:
    return field.is_missing


def _is_wrong(field: Field) -> Column:
    return field.is_wrong


def _reason(field: Field) -> Column:
    return as_text(field.reason)


def _is_of_other_type(field: str, kind: str) -> Column:
    """Whether ``field`` is present, not null, and not of the JSON type ``kind``."""
    is_right = F.schema_of_variant(f"any_type.{field}").isin(kind, "VOID")
    return ~F.coalesce(is_right, F.lit(True))
