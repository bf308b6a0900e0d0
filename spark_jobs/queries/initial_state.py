"""The initial state of a query, copied once.

The first start copies the table or file into the lake and begins with the copy. A first batch that is repeated after a
crash, a reset and the ledger read the copy too, so the file is not needed again.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import cast

from delta import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from spark_jobs.contract.events import KEY
from spark_jobs.errors import SourceError
from spark_jobs.lake.at_rest import dates_there
from spark_jobs.lake.batches import has_rows
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import read_plan, version_opened
from spark_jobs.lake.store.files import LOCAL
from spark_jobs.queries.manifests import read_manifest
from spark_jobs.queries.places import checkpoint_batches, checkpoint_in_use, checkpoint_key, initial_key
from spark_jobs.queries.query import Query
from spark_jobs.queries.seeding import with_seeds
from spark_jobs.spark.open_lake import OpenLake

_FORMATS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".csv": "csv"}
_OPTIONS = {
    "json": {"primitivesAsString": "true", "mode": "FAILFAST"},
    "csv": {"header": "true", "mode": "FAILFAST"},
    "parquet": {},
}
_NULL = "null"


def is_ready(query: Query, lake: Lake) -> bool:
    """Whether ``query`` can start: the table that it reads exists.

    Initial events join the first batch, so for them the table must also hold a row.
    """
    table = query.table_read
    if table is None:
        return True
    if not lake.has(table):
        return False
    what = query.initial_state
    if what is None or what.known or not _is_due(lake, query, checkpoint_in_use(lake, query.name)):
        return True
    return has_rows(lake, table)


def copy_initial(lake: OpenLake, queries: Iterable[Query]) -> None:
    """Copies the initial states that the manifests of ``queries`` name into the lake, unless one may be in use already.

    Call it between the claim of the checkpoints and the start of the first query.

    Raises:
        SourceError: a table or file cannot be used.
    """
    for query in queries:
        version = checkpoint_in_use(lake, query.name)
        location = _location(lake, query, version)
        # A planned batch may have run: if it is repeated, it must find the same rows.
        if location and not checkpoint_batches(lake, query.name, version, "offsets"):
            _copy(lake, query, location)


def first_rows(
    lake: OpenLake, query: Query, version: int, sides: list[DataFrame]
) -> tuple[list[DataFrame], DataFrame | None]:
    """The input of the first batch of ``query``.

    Args:
        lake: the lake.
        query: the query.
        version: of its checkpoint.
        sides: its input.

    Returns:
        ``sides``, with the initial events if its initial state consists of events; and the initial state for
        :meth:`Query.rows`, None if it has none or has used it already.
    """
    what = query.initial_state
    if what is None or not _is_due(lake, query, version):
        return sides, None
    # Cached until the session ends: every batch plans it again, though only the first one uses it.
    rows = read_taken(lake, query).localCheckpoint()
    if what.known:
        return sides, what.known(lake.settings, rows)
    return [with_seeds(side, rows, _first_key(lake, query, version)) for side in sides], None


def read_taken(lake: OpenLake, query: Query) -> DataFrame:
    """The copy of the initial state of ``query``."""
    return lake.spark.read.format("delta").load(lake.uri(initial_key(query.name)))


def initial_events(lake: OpenLake, query: Query) -> DataFrame | None:
    """The initial events of ``query``, with ``event_date``; None: it has none."""
    if query.initial_state is None or query.initial_state.known or not has_taken(lake, query):
        return None
    return read_taken(lake, query).withColumn("event_date", F.to_date("event_time"))


def has_taken(lake: Lake, query: Query) -> bool:
    """Whether the checkpoint of ``query`` in use began with an initial state, or continues one that did."""
    version = checkpoint_in_use(lake, query.name)
    return bool(_location(lake, query, version) and checkpoint_batches(lake, query.name, version, "commits"))


def _is_due(lake: Lake, query: Query, version: int) -> bool:
    return bool(_location(lake, query, version)) and not checkpoint_batches(lake, query.name, version, "commits")


def _location(lake: Lake, query: Query, version: int) -> str:
    """The origin of the initial state, from the manifest of the checkpoint; empty: no initial state."""
    manifest = read_manifest(lake, query.name, version) if query.initial_state else None
    return manifest.initial_state if manifest else ""


def _copy(lake: OpenLake, query: Query, location: str) -> None:
    what = query.initial_state
    assert what is not None  # noqa: S101 the manifest names it
    if lake.is_local and not location.startswith(LOCAL):
        raise SourceError(
            f"{what.setting} {location} is in an object store and the lake {lake.shown()} is not, so the session has "
            "no connection to the store; copy the table or file to this machine"
        )
    rows = read_initial(lake.spark, location, what.columns, what.choices(lake.settings))
    writer = rows.coalesce(1).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.save(lake.uri(initial_key(query.name)))


def _first_key(lake: OpenLake, query: Query, version: int) -> tuple[str, str]:
    """The key of a row that is in the first batch of the checkpoint ``version``: the earliest that is there."""
    (table,) = query.reads
    planned = lake.files.read(f"{checkpoint_key(query.name, version)}/offsets/0")
    until = version_opened(read_plan(planned).reached[0]) if planned else lake.newest_commit(table.path)
    first, _ = dates_there(lake, table, until or 0) or (None, None)
    rows = lake.read(table, version=until).where(F.col("event_date") == F.lit(first))
    ((event_type, event_id),) = rows.orderBy("event_time", *KEY).select(*KEY).limit(1).collect()
    return event_type, event_id


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
