"""Records that hold several events: each element of a list is judged as a record of its own.

::

    source        raw                              text            of the record
    t/0/5    ──▶  t/0/5[0]  {"u": 7, "e": [a, b]}   a               the values of the record that mappings read by $$
                  t/0/5[1]  {"u": 7, "e": [a, b]}   b               the same

A record without such a list, or with an empty one, stays a row by itself. The elements of a list within a list,
``t/0/5[1][0]``, are found by the same step once more; an element without one stays a row, and no source means it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.ingest import parse
from spark_jobs.mapping import Path, RecordSchema
from spark_jobs.mapping.paths import ListPath
from spark_jobs.mapping.schema import OtherRecord

LIST, IS_FURTHER = "list", "is_further"
"""The columns with the number of the list that a record is an element of, null if of none; and whether it comes from
the same record as another row before it."""
NO_LIST = -1
"""The number in place of a list's for an element that has no list within."""
_NUMBER, _ELEMENT = "element_number", "element"


@dataclass(frozen=True)
class ElementList:
    """A list whose elements are records.

    Attributes:
        path: where it lies in a record; without steps, the record itself is the list.
        is_read: whether a source that reads the record has its records there.
    """

    path: ListPath
    is_read: Column


def expanded(records: DataFrame, lists: Sequence[ElementList], schema: RecordSchema) -> DataFrame:
    """``records`` with a row for each element of the first of ``lists`` that a record has.

    Args:
        records: from :func:`spark_jobs.ingest.parse.measure`, with ``source`` and ``origin``.
        lists: of all sources, each once, in their order.
        schema: of all mappings.

    Returns:
        The columns of ``records``, of which ``source``, ``text`` and :data:`spark_jobs.ingest.parse.TO_PARSE` are those
        of the element; :data:`LIST`, :data:`IS_FURTHER`; and what mappings read of what lies around it.
    """
    found = F.array(_element(F.lit(None).cast("int")))
    for number, one in reversed([*enumerate(lists)]):
        is_there, elements = _elements(one.path.levels[0], schema, number)
        found = F.when(is_there & one.is_read, elements).otherwise(found)
    read = _read(records, schema.outer).withColumn(IS_FURTHER, F.lit(False))
    rows = _apart(read, [*records.columns, schema.outer.column, IS_FURTHER], found)
    columns, between = rows.columns, schema.between.column
    around = replace(schema.between, root="around")
    for depth in range(1, max(len(one.path.levels) for one in lists)):
        found = F.array(_element(F.col(LIST)))
        for number, one in enumerate(lists):
            if len(one.path.levels) > depth:
                is_there, elements = _elements(one.path.levels[depth], schema, number)
                within = F.when(is_there, elements).otherwise(F.array(_element(F.lit(NO_LIST))))
                found = F.when(F.col(LIST) == number, within).otherwise(found)
        # What lies directly around an element of a list that goes no deeper was read before.
        is_deeper = F.col(LIST).isin([number for number, one in enumerate(lists) if len(one.path.levels) > depth])
        nearest = F.when(is_deeper, F.col(around.column))
        read = _read(rows, around)
        read = read.withColumn(between, nearest if depth == 1 else nearest.otherwise(F.col(between)))
        rows = _apart(read, [*columns, between], found)
    return rows


def _read(records: DataFrame, other: OtherRecord) -> DataFrame:
    """``records``, parsed, with the part that is read of them for their elements."""
    read = parse.add_keys(records, all_own=False)
    for name, sql in other.columns_sql(parse.TO_PARSE):
        read = read.withColumn(name, F.expr(sql))
    return read


def _elements(path: Path, schema: RecordSchema, number: int) -> tuple[Column, Column]:
    """Whether a record has elements at ``path``, and they, of the list with that number."""
    is_whole = F.coalesce(F.expr(schema.is_whole_sql(parse.TO_PARSE)), F.lit(False))
    is_object = parse.is_object() & is_whole & ~parse.has_key_twice()
    is_list = F.startswith(F.col(parse.TO_PARSE), F.lit("[")) & is_whole
    texts = F.expr(schema.elements_sql(path, parse.TO_PARSE))
    is_there = (is_object if path.steps else is_list) & (F.size(texts) > 0)
    return is_there, F.transform(texts, _elements_of(number))


def _elements_of(number: int) -> Callable[[Column], Column]:
    return lambda text: _element(F.lit(number), parse.trimmed(text))


def _element(number: Column, text: Column | None = None) -> Column:
    """An element of the list with that number; without a text, the record itself."""
    return F.struct(number.alias(LIST), (F.lit(None).cast("string") if text is None else text).alias("text"))


def _apart(records: DataFrame, columns: Sequence[str], found: Column) -> DataFrame:
    """A row for each element that is ``found`` in a record."""
    rows = records.withColumn("elements", found).select(
        *columns, F.posexplode_outer("elements").alias(_NUMBER, _ELEMENT)
    )
    text = F.col(f"{_ELEMENT}.text")
    place = F.concat("source", F.lit("["), F.col(_NUMBER).cast("string"), F.lit("]"))
    return rows.withColumns(
        {
            LIST: F.col(f"{_ELEMENT}.{LIST}"),
            "source": F.when(text.isNotNull(), place).otherwise(F.col("source")),
            "text": F.coalesce(text, "text"),
            parse.TO_PARSE: F.coalesce(text, parse.TO_PARSE),
            IS_FURTHER: F.col(IS_FURTHER) | (F.col(_NUMBER) > 0),
        }
    ).drop(_NUMBER, _ELEMENT)
