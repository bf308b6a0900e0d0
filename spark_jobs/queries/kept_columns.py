"""Columns that sources keep, as one value, so that state does not depend on the choice of columns."""

from collections.abc import Iterator, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.tables import SILVER_EVENTS

_PACKED = "map<string,string>"
_NO_NAME = "\0"
"""No column has this name."""


def kept_types(events: DataFrame) -> dict[str, str]:
    """The kept columns of ``events`` (the columns of silver and more), each with its type in Spark SQL."""
    types = dict(events.dtypes)
    return {name: types[name] for name in SILVER_EVENTS.kept(events.columns)}


def packed(events: DataFrame) -> Column:
    """The kept columns of ``events`` as one map of texts; null without columns or values."""
    entries = [part for name in kept_types(events) for part in (F.lit(name), F.col(name).cast("string"))]
    # Not a constant null without columns: Spark would leave a constant out of the state, and could not add it later.
    has_any = F.coalesce(*entries[1::2]).isNotNull() if entries else F.col("event_id").isNull()
    return F.when(has_any, F.create_map(*(entries or (F.lit(_NO_NAME), F.lit("").cast("string")))).cast(_PACKED))


def with_columns(events: DataFrame, types: Mapping[str, str]) -> DataFrame:
    """``events`` with columns of these names and types; missing ones are null."""
    missing = {name: F.lit(None).cast(kind) for name, kind in types.items() if name not in events.columns}
    return events.withColumns(missing) if missing else events


def null_reference(column: str) -> Column:
    """Null, but refers to the output of :func:`packed` in ``column``, so that Spark keeps it in the state."""
    return F.col(column)[_NO_NAME]


def unpacked(column: str, types: Mapping[str, str], prefix: str = "") -> Iterator[Column]:
    """The columns that :func:`packed` put into ``column``, named ``prefix`` and their name."""
    for name, sql_type in types.items():
        text = F.col(column)[name]
        yield (text if sql_type == "string" else text.try_cast(sql_type)).alias(f"{prefix}{name}")
