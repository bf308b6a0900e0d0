"""The initial state of a query, from a table or file that others wrote: it is checked before use."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import cast

from delta import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from spark_jobs.errors import SourceError
from spark_jobs.lake.store.files import LOCAL

_FORMATS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".csv": "csv"}
_OPTIONS = {
    "json": {"primitivesAsString": "true", "mode": "FAILFAST"},
    "csv": {"header": "true", "mode": "FAILFAST"},
    "parquet": {},
}
_NULL = "null"


def read_initial(spark: SparkSession, location: str, columns: str, choices: Mapping[str, Sequence[str]]) -> DataFrame:
    """The rows at ``location``, computed once and checked.

    Args:
        spark: the session.
        location: URI of the folder of a Delta table, or of a ``.parquet``, ``.jsonl``, ``.json`` or ``.csv`` file, or
            of a folder of such files that is named like one. JSON is one object per line; CSV has a header.
        columns: the wanted columns as a Spark SQL schema; ``NOT NULL`` ones must have a value. The file may have more.
        choices: by column, its allowed values.

    Returns:
        The wanted columns. Text is converted; a time without a zone is UTC.

    Raises:
        SourceError: it cannot be read, lacks a column, or has a value that is not allowed.
    """
    place = location.removeprefix(LOCAL)
    wanted = cast("StructType", StructType.fromDDL(columns)).fields
    try:
        found = _load(spark, location, place)
        if missing := [field.name for field in wanted if field.name not in found.columns]:
            raise SourceError(
                f"initial state {place} has no column {missing[0]}; it has {', '.join(found.columns) or 'none'}, and "
                f"the query needs {columns}"
            )
        # From text, so that a number is not taken for a time; the rows are kept, because the file may be deleted.
        texts = [F.col(f"`{field.name}`").cast("string").alias(_text(field)) for field in wanted]
        rows = found.select(*texts)
        rows = rows.select("*", *[F.col(_text(field)).try_cast(field.dataType).alias(field.name) for field in wanted])
        rows = rows.localCheckpoint()
        _check(rows, wanted, choices, place)
    except (PySparkException, Py4JJavaError) as error:
        raise SourceError(f"initial state {place} cannot be read: {_reason(error)}") from error
    return rows.select(*[field.name for field in wanted])


def _load(spark: SparkSession, location: str, place: str) -> DataFrame:
    # By its name first: Delta fails on a file, and Spark's Parquet reader refuses a Delta table.
    if kind := _FORMATS.get(PurePosixPath(location.removesuffix(".gz")).suffix):
        return spark.read.format(kind).options(**_OPTIONS[kind]).load(location)
    if not DeltaTable.isDeltaTable(spark, location):
        raise SourceError(
            f"initial state {place} is neither the folder of a Delta table nor named {', '.join(_FORMATS)}; give the "
            "table or a file of one of these kinds"
        )
    return spark.read.format("delta").load(location)


def _reason(error: PySparkException | Py4JJavaError) -> str:
    text = str(error.java_exception.toString() if isinstance(error, Py4JJavaError) else error)
    return text.strip().splitlines()[0]


def _check(rows: DataFrame, wanted: Sequence[StructField], choices: Mapping[str, Sequence[str]], place: str) -> None:
    # One pass: for each column the number of rows with a wrong value, and one such value.
    wrong = {field: _is_wrong(field, choices.get(field.name)) for field in wanted}
    counts = [F.count_if(is_wrong).alias(f"{field.name} rows") for field, is_wrong in wrong.items()]
    examples = [
        F.first(F.when(is_wrong, F.coalesce(_text(field), F.lit(_NULL))), ignorenulls=True).alias(f"{field.name} value")
        for field, is_wrong in wrong.items()
    ]
    found = rows.agg(*counts, *examples).collect()[0]
    for field in wanted:
        if count := found[f"{field.name} rows"]:
            allowed = choices.get(field.name)
            needed = f"one of {', '.join(allowed)}" if allowed else f"a value of type {field.dataType.simpleString()}"
            raise SourceError(
                f"initial state {place}: {field.name} is {found[f'{field.name} value']} in {count} row(s), and must be "
                f"{needed}; correct the rows or leave them out"
            )


def _is_wrong(field: StructField, allowed: Sequence[str] | None) -> Column:
    value, is_given = F.col(field.name), F.col(_text(field)).isNotNull()
    is_wrong = is_given & value.isNull()
    if not field.nullable:
        is_wrong |= ~is_given
    return is_wrong | F.coalesce(~value.isin(*allowed), F.lit(False)) if allowed else is_wrong


def _text(field: StructField) -> str:
    return f"{field.name} as text"
