"""Records that hold several events: each element of a list is judged as a record of its own.

::

    source        raw                              text            of the record
    t/0/5    ──▶  t/0/5[0]  {"u": 7, "e": [a, b]}   a               the values of the record that mappings read by $$
                  t/0/5[1]  {"u": 7, "e": [a, b]}   b               the same

A record without such a list, or with an empty one, stays a row by itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.ingest import parse
from spark_jobs.mapping import Path, RecordSchema

LIST, IS_FURTHER = "list", "is_further"
"""The columns with the number of the list that a record is an element of, null if of none; and whether it comes from
the same record as another row before it."""
_NUMBER, _ELEMENT = "element_number", "element"


@dataclass(frozen=True)
class ElementList:
    """A list whose elements are records.

    Attributes:
        path: where it lies in a record; without steps, the record itself is the list.
        is_read: whether a source that reads the record has its records there.
    """

    path: Path
    is_read: Column


def expanded(records: DataFrame, lists: Sequence[ElementList], schema: RecordSchema) -> DataFrame:
    """``records`` with a row for each element of the first of ``lists`` that a record has.

    Args:
        records: from :func:`spark_jobs.ingest.parse.measure`, with ``source`` and ``origin``.
        lists: of all sources, each once, in their order.
        schema: of all mappings.

    Returns:
        The columns of ``records``, of which ``source``, ``text`` and :data:`spark_jobs.ingest.parse.TO_PARSE` are those
        of the element; :data:`LIST`, :data:`IS_FURTHER`; and what mappings read of the record.
    """
    there, read = records.columns, parse.add_keys(records, all_own=False)
    outer = schema.outer
    for name, sql in outer.columns_sql(parse.TO_PARSE):
        read = read.withColumn(name, F.expr(sql))
    is_whole = F.coalesce(F.expr(schema.is_whole_sql(parse.TO_PARSE)), F.lit(False))
    is_object = parse.is_object() & is_whole & ~parse.has_key_twice()
    is_list = F.startswith(F.col(parse.TO_PARSE), F.lit("[")) & is_whole
    none = F.array(F.struct(F.lit(None).cast("int").alias(LIST), F.lit(None).cast("string").alias("text")))
    chain = F.when(F.lit(False), none)
    for number, one in enumerate(lists):
        texts = F.expr(schema.elements_sql(one.path, parse.TO_PARSE))
        is_there = (is_object if one.path.steps else is_list) & one.is_read & (F.size(texts) > 0)
        chain = chain.when(is_there, F.transform(texts, _elements_of(number)))
    read = read.withColumn("elements", chain.otherwise(none))
    rows = read.select(*there, outer.column, F.posexplode_outer("elements").alias(_NUMBER, _ELEMENT))
    is_element = F.col(f"{_ELEMENT}.{LIST}").isNotNull()
    place = F.concat("source", F.lit("["), F.col(_NUMBER).cast("string"), F.lit("]"))
    text = F.col(f"{_ELEMENT}.text")
    columns = {
        LIST: F.col(f"{_ELEMENT}.{LIST}"),
        IS_FURTHER: F.col(_NUMBER) > 0,
        "source": F.when(is_element, place).otherwise(F.col("source")),
        "text": F.when(is_element, text).otherwise(F.col("text")),
        parse.TO_PARSE: F.when(is_element, text).otherwise(F.col(parse.TO_PARSE)),
    }
    return rows.withColumns(columns).drop(_NUMBER, _ELEMENT)


def _elements_of(number: int) -> Callable[[Column], Column]:
    return lambda text: F.struct(F.lit(number).alias(LIST), parse.trimmed(text).alias("text"))
